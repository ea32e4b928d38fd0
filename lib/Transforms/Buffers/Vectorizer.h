// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns what depends on the coordinate of one loop into vectors.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_VECTORIZER_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_VECTORIZER_H

#include "LaneByLane.h"
#include "LaneTiles.h"

namespace lacis {

class Vectorizer {
public:
  Vectorizer(LoopOp loop, const LaneTiles &tiles)
      : loop(loop), width(*loop.getVectorize()), tiles(tiles), b(loop) {}

  llvm::LogicalResult run();

private:
  llvm::LogicalResult sumLanes();
  llvm::LogicalResult block(mlir::Block &source, mlir::Value count);
  bool isConsecutive(mlir::Value value) const { return consecutive.contains(value); }
  bool varies(mlir::Value value) const {
    return isConsecutive(value) || vectors.contains(value) || counts.contains(value) || bands.contains(value) ||
           apart.contains(value);
  }
  mlir::Value asVector(mlir::Value value);
  llvm::LogicalResult operation(mlir::Operation &op, mlir::Value count);
  /// A coordinate as a number: that of the first lane, and one more for each after it.
  void number(mlir::arith::IndexCastOp op);
  /// Coordinates stay consecutive under addition; a comparison with a bound counts the active lanes.
  llvm::LogicalResult arithmetic(mlir::Operation &op);
  /// Conditions whose active lanes are counted, or that hold for all lanes or none.
  bool isGuard(mlir::Value condition) const {
    return condition.getType().isInteger(1) && (counts.contains(condition) || !varies(condition));
  }
  /// Is it `coordinate >= bound`, or that and `coordinate < bound`: a run of lanes between others?
  bool isBand(mlir::Operation &op);
  /// All lanes at once where all pass the guard, else each by itself.
  llvm::LogicalResult bandOf(mlir::scf::IfOp guard, LaneBand band, mlir::Value count);
  mlir::Value inLane(mlir::OpBuilder &at, mlir::Value value, int64_t lane);
  /// Two guards at once.
  llvm::LogicalResult both(mlir::Operation &op);
  /// The lanes that two guards leave; null stands for all.
  mlir::Value fewer(mlir::Value lhs, mlir::Value rhs) {
    return lhs && rhs ? mlir::arith::MinSIOp::create(b, loop.getLoc(), lhs, rhs).getResult() : lhs ? lhs : rhs;
  }
  /// A tile that has an element for each lane, and no other.
  bool hasLanes(mlir::Value tensor, unsigned axis);
  /// A workspace in panels along an axis has room for whole vectors from `first` on, which lies below `size`'s strips.
  bool isPadded(mlir::Value tensor, unsigned axis, mlir::Value first);
  /// An element for each lane, at a place of its own.
  llvm::LogicalResult gather(ReadOp op, mlir::Value count);
  llvm::LogicalResult access(mlir::Operation &op, mlir::ValueRange indices, mlir::Value result, mlir::Value count);
  /// Neighbours of a stored block lie at consecutive positions.
  llvm::LogicalResult position(mlir::Operation &op, mlir::Value count);
  /// What is stored at a position, or from there on where `type` is a vector.
  mlir::Value stored(mlir::OpBuilder &at, mlir::Operation &op, mlir::Value position, mlir::Type type);
  /// The first `count` of neighbours, and zeros: the array may end behind them.
  mlir::Value storedLanes(mlir::Operation &op, mlir::Value first, mlir::Value count);
  /// A loop inside: the carried floating-point values become vectors.
  llvm::LogicalResult carry(mlir::Operation &op, mlir::Block *body, mlir::Value bound, unsigned leading, mlir::Value count);
  /// Lanes past the end do nothing: their accesses are counted out, and their values are those of the other side.
  llvm::LogicalResult divide(mlir::scf::IfOp guard, mlir::Value lanes, mlir::Value count);
  llvm::LogicalResult branch(mlir::scf::IfOp guard, mlir::Value count);

  LoopOp loop;
  int64_t width;
  const LaneTiles &tiles;
  mlir::OpBuilder b;
  mlir::IRMapping scalars;                          // uniform values, and lane 0 of consecutive ones
  llvm::DenseMap<mlir::Value, mlir::Value> vectors; // values with lanes
  llvm::DenseSet<mlir::Value> consecutive;          // lane n is lane 0 plus n
  llvm::DenseMap<mlir::Value, mlir::Value> apart;   // places that lanes compute, as numbers
  llvm::DenseMap<mlir::Value, LaneBand> bands;      // comparison -> active lanes that others may lie before
  llvm::DenseMap<mlir::Value, mlir::Value> counts;  // comparison -> active lanes, null where all or none are
  mlir::Value bound;                                // of the guard around, where it divides the lanes
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_VECTORIZER_H
