// SPDX-License-Identifier: Apache-2.0
/// \file
/// The statements of a nest as values of tiles: what a loop does for one element after another is done for all at once.
///
/// Which loops of a tile a value varies along says what becomes of it. Nothing: it stays a number. Rows, columns, or both:
/// it is an accumulator. A sum of products is `mma`, another reduction is `reduce_rows`, arithmetic is `map`.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILESTATEMENTS_H
#define LACIS_LIB_TRANSFORMS_TILES_TILESTATEMENTS_H

#include "StepTiles.h"
#include "TileMaps.h"
#include "lacis/Dialect/Lacis/IR/PostponedSums.h"

#include "llvm/ADT/MapVector.h"

namespace lacis {

/// Says what statements of tiles do, where `op` does anything else.
llvm::LogicalResult refuseStatement(mlir::Operation *op);

/// Numbers of a nest, made again in a role.
class RoleScalars {
public:
  explicit RoleScalars(LoopOpInterface replaced) : replaced(replaced) {}
  void map(mlir::Value before, mlir::Value after) { mapping.map(before, after); }
  /// A number that is the same for all of a tile.
  mlir::Value get(mlir::OpBuilder &b, mlir::Value number);
  /// Do all of the conditions hold? Null where there are none.
  mlir::Value all(mlir::OpBuilder &b, llvm::ArrayRef<mlir::Value> conditions);
  /// Where an index begins in a tile.
  mlir::Value baseOf(mlir::OpBuilder &b, const TileVariance::Place &place, mlir::Location loc);
  /// The columns of a tile are gathered: these numbers are others in each of its parts, for which `after` has them.
  void gather(llvm::ArrayRef<mlir::Value> before, llvm::ArrayRef<llvm::SmallVector<mlir::Value>> after);
  /// Is the number another one in each part?
  bool isGathered(mlir::Value number);
  /// The numbers of each part; none where tiles are not gathered.
  std::vector<RoleScalars> parts;

private:
  LoopOpInterface replaced; // what stands in it goes with it
  mlir::IRMapping mapping;
  llvm::SmallVector<mlir::Value> gathered; // what other gathered numbers follow from
};

/// A sum of products that begins in one round and is complete in the next: what it multiplies and adds to, until then.
struct PostponedSum {
  LoopOp statement, sum;
  mlir::Value left, onto, begun;
};

/// Emits the statements that a consumer runs.
class TileStatements {
public:
  TileStatements(TileVariance &variance, StagedBoxes &boxes, RoleScalars &scalars)
      : variance(variance), boxes(boxes), scalars(scalars) {}

  /// The loops of one statement, or of several.
  llvm::LogicalResult emit(mlir::OpBuilder &b, LoopOp statement);
  /// Reads left factors that are the same in all rounds into registers, as far as there are some besides `taken`
  /// (HeldFactors.cpp).
  void holdFactors(mlir::OpBuilder &b, mlir::Block &round, int64_t taken);
  /// Finds the tiles that these statements take of a step.
  void findTiles(mlir::OpBuilder &b, llvm::ArrayRef<LoopOp> statements);
  /// Begins the products of a statement that read operands alone: others of the round run beside them.
  void begin(mlir::OpBuilder &b, LoopOp statement);
  /// Elements of operands at the rows and columns of a tile arrive beside the products that have begun.
  void readAhead(mlir::OpBuilder &b, LoopOp statement);
  /// Begins the products of statements that do not come next, where all that they read is there already.
  llvm::LogicalResult beginAhead(mlir::OpBuilder &b, llvm::ArrayRef<LoopOp> statements);
  /// Loads what the value of a statement needs along its rows, and numbers, before the rounds that are to come.
  void loadAhead(mlir::OpBuilder &b, mlir::Value value, mlir::Value row);
  /// The accumulator of what a read takes, the same in all rounds.
  void setKnown(ReadOp read, mlir::Value acc) { known[read.getResult()] = fixed[read.getResult()] = acc; }
  /// Accumulators of values were those of another round.
  void forget() { known = fixed, begun.clear(), found.clear(); }
  /// What a tensor of one round holds now.
  mlir::Value &state(mlir::Value workspace) { return states[workspace]; }
  /// What goes to the output leaves through a box that nothing reads any more.
  void storeThroughBoxes() { storesThrough = true; }
  /// A branch where coordinates choose for whole tiles.
  void branchOnTiles() { branches = true; }
  /// Of a number for each row, the parts that threads keep.
  static AccType partsOf(AccType rows);

  /// The sum goes to its tensor with the next round, beside its first products. Not where its box is read once more in its
  /// own round: that would stand in two places of its ring.
  void postpone(const CarriedSum &own);
  /// Rounds do nothing but add to one sum: its products stay under way from one to the next.
  void leaveUnderWay() { isUnderWay = true; }
  bool hasPostponed() const { return !later.empty(); }
  bool isPostponed(LoopOp statement);
  PostponedSum *postponed(mlir::Value tensor) { return later.contains(tensor) ? &later[tensor] : nullptr; }
  /// Begins the sums of the round before, of which operands are known.
  void beginPostponed(mlir::OpBuilder &b);
  /// Tensors hold these sums.
  void finishPostponed(mlir::OpBuilder &b);

private:
  llvm::LogicalResult emitBlock(mlir::OpBuilder &b, mlir::Block &block);
  llvm::LogicalResult reduce(mlir::OpBuilder &b, LoopOp loop);
  /// sum over k of a[m, k] b[n, k], whose columns lie along `column`.
  struct Product {
    mlir::Value one, other, column;
    StagedBox *left = nullptr, *right = nullptr; // where the factors are boxes
  };
  std::optional<Product> productOf(LoopOp loop);
  llvm::LogicalResult multiply(mlir::OpBuilder &b, LoopOp loop, const Product &product);
  llvm::FailureOr<mlir::Value> beginProduct(mlir::OpBuilder &b, LoopOp loop, const Product &product);
  /// An accumulator that products take, and the one that they are added to, or null where that is 0.
  llvm::FailureOr<std::pair<mlir::Value, mlir::Value>> accsOf(mlir::OpBuilder &b, LoopOp loop, const Product &product);
  mlir::Value makeMma(mlir::OpBuilder &b, LoopOp loop, const Product &product, mlir::Value left, mlir::Value onto);
  PostponedSum *postponedBy(LoopOp loop);
  mlir::Value columnsOf(mlir::OpBuilder &b, ReadOp op);
  /// Rows of blocks that lie anywhere, one below the other in the tile (StoredBlocks.cpp).
  bool isInBlocks(const Access &to);
  llvm::LogicalResult storeBlocks(mlir::OpBuilder &b, const Access &to, mlir::Value value);
  std::pair<mlir::Value, mlir::Value> freeBox(StoreTileOp store);
  StagedBox *boxOf(mlir::Value factor);
  int64_t registersLeft(mlir::Block &statements, llvm::SetVector<StagedBox *> &factors);
  bool isReady(LoopOp statement, llvm::ArrayRef<LoopOp> before);
  llvm::LogicalResult read(mlir::OpBuilder &b, ReadOp op);
  llvm::LogicalResult write(mlir::OpBuilder &b, WriteOp op);
  llvm::LogicalResult store(mlir::OpBuilder &b, mlir::Operation *op, mlir::Value value);
  TileMaps maps();
  /// An accumulator of the value along these loops, of `across` columns where `column` is null.
  llvm::FailureOr<mlir::Value> tile(mlir::OpBuilder &b, mlir::Value value, mlir::Value column, mlir::Location loc,
                                    int64_t across = 1);
  mlir::Value acquire(mlir::OpBuilder &b, StagedBox &box, unsigned tile = 0);
  void release(mlir::OpBuilder &b, StagedBox &box);

  TileVariance &variance;
  StagedBoxes &boxes;
  RoleScalars &scalars;
  mlir::Value row; // the coordinate of the rows of the present statement
  llvm::DenseMap<mlir::Value, mlir::Value> states, known, fixed;
  llvm::DenseMap<mlir::Operation *, mlir::Value> begun; // products, by their loops
  llvm::MapVector<mlir::Value, PostponedSum> later;     // by the tensors that they go to
  llvm::DenseMap<mlir::Operation *, StepTiles::Found> found; // tiles of the present step, by the loops of products
  bool storesThrough = false, branches = false, isUnderWay = false;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILESTATEMENTS_H
