// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the operations of a role become on sm_80: copies by the threads of four warps, products by the warps of a
/// consumer.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_ROLELOWERING_H
#define LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_ROLELOWERING_H

#include "../Roles/Accumulators.h"
#include "../Roles/Reads.h"
#include "Instructions.h"
#include "SharedMemory.h"

#include "llvm/ADT/MapVector.h"

namespace lacis::ampere {

/// Rows and columns of a matrix behind a pointer, and the elements from one row to the next.
struct Matrix {
  mlir::Value pointer, rows, columns, pitch; // i64
};

/// The rows where a lane stores what it has of an accumulator, eight of which are a line.
struct LineRows {
  llvm::SmallVector<mlir::Value> starts; // of the groups of rows
  int64_t size;                          // of a group
  mlir::Value within;                    // a line
  mlir::Value warp = {};                 // rows before those of the warp; none where each has all
  mlir::Value first = {};                // of line 0, where there is one group

  mlir::Value of(mlir::OpBuilder &b, int64_t line) const;
};

class CopiesAhead;

class RoleLowering : public Accumulators {
public:
  /// Of a producer the lane of `group` is the number of the thread among those that copy. `byRows`: rows of accumulators
  /// are added up, or columns of them taken, so that a warp holds whole rows.
  RoleLowering(const SharedMemory &memory, Warpgroup group, bool isProducer, bool byRows, mlir::func::FuncOp kernel)
      : Accumulators(group, isProducer, byRows), memory(memory), kernel(kernel) {}

  using Accumulators::lower;

  /// Of consumers that copy what they take.
  void copyBy(CopiesAhead &copies) { ahead = &copies; }

protected:
  /// The pieces of a place in a ring, in order; rounds are counted by consumers that copy.
  enum Place { Stage, Parity, Round };

private:
  size_t countPieces(mlir::Type type) const override;
  std::optional<llvm::LogicalResult> lowerTiles(mlir::OpBuilder &b, mlir::Operation &op) override;
  llvm::LogicalResult checkAcc(mlir::Operation *op, AccType type) const override;
  llvm::LogicalResult checkHeld(mlir::Operation *op, AccType type) const override;

  // Rings
  void setNext(mlir::OpBuilder &b, mlir::Value ring, mlir::Value next);
  mlir::Value barrier(Instructions &i, int64_t first, mlir::Value stage);
  void lowerRing(mlir::OpBuilder &b, RingOp op) override;
  void placeTiles(Instructions &i, mlir::Value ring, const Pieces &at, mlir::ValueRange tiles);
  llvm::LogicalResult lower(mlir::OpBuilder &b, AcquireOp op);
  void lower(mlir::OpBuilder &b, AdvanceOp op) { setNext(b, op.getRing(), op.getNext()); }
  void lower(mlir::OpBuilder &b, RevisitOp op);
  void lower(mlir::OpBuilder &b, ReleaseOp op);
  void lower(mlir::OpBuilder &, CompleteOp op);
  /// Words that depend on all loads since the last release. The loads of an inner block are complete at its end.
  Pieces takeLoads(mlir::OpBuilder &b, mlir::Location loc);

  // Copies
  /// The matrix of sizes `shape`, or of a batch of matrices that which the first of `indices` numbers.
  Matrix matrixOf(mlir::OpBuilder &b, mlir::Value pointer, mlir::ArrayAttr shape, mlir::ArrayAttr strides, mlir::ValueRange indices,
                  mlir::Type element);
  mlir::Value wide(mlir::OpBuilder &b, mlir::Value value);
  void copyTile(mlir::OpBuilder &b, mlir::Location loc, TileType tile, mlir::Value to, const Matrix &matrix,
                mlir::Value row, mlir::Value column);
  llvm::LogicalResult copyVector(mlir::OpBuilder &b, LoadTileOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, LoadTileOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, LoadRunOp op);

  // Accumulators
  llvm::LogicalResult lower(mlir::OpBuilder &b, MmaOp op);
  /// `a`: the address of a tile; of halves that registers hold it is null, and they are those from step `first` on.
  Pieces products(mlir::OpBuilder &b, MmaOp op, Pieces acc, mlir::Value a, mlir::Value bTile, int64_t first, int64_t slab);
  llvm::LogicalResult lower(mlir::OpBuilder &b, ReadTileOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, ReadColumnsOp op);
  llvm::SmallVector<mlir::Value> readWords(mlir::OpBuilder &b, ReadTileOp op, int64_t row, int64_t column);
  Pieces readPair(mlir::OpBuilder &b, ReadTileOp op, int64_t row, int64_t column) override;
  /// A number for each row is loaded where it is needed first: no registers wait through a sum. What loops inside need
  /// is loaded before them.
  llvm::LogicalResult lower(mlir::OpBuilder &b, LoadRowsOp op);
  void loadRows(mlir::OpBuilder &b, LoadRowsOp op);
  void loadFor(mlir::OpBuilder &b, mlir::Value acc) override;
  mlir::Value element(mlir::OpBuilder &b, mlir::Value acc, size_t n, const Share &share) override;
  using Accumulators::element;
  llvm::LogicalResult lower(mlir::OpBuilder &b, MapOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &, LoadColumnsOp op) { return checkLoadColumns(op); }
  Pieces loadColumnPair(mlir::OpBuilder &b, LoadColumnsOp op, int64_t eight) override;

  // Stores
  LineRows rowsOf(mlir::OpBuilder &b, AccType acc, mlir::ValueRange firsts, bool transposed, mlir::Value within);
  void lower(mlir::OpBuilder &, LoadEntriesOp) {} // where a store needs them
  void loadEntriesOf(mlir::OpBuilder &b, mlir::Value acc, int64_t line);
  Pieces wordsOf(mlir::OpBuilder &b, mlir::Value acc, mlir::Type element, int64_t line, bool transposed);
  /// Eight lines of the matrix at a time; where it is transposed they are columns of the accumulator, whose rows are
  /// neighbours. `firsts`: of its groups of rows.
  void storeLines(mlir::OpBuilder &b, mlir::Value acc, mlir::Type element, const Matrix &matrix,
                  mlir::ValueRange firsts, mlir::Value column, bool transposed);
  void storeSingles(mlir::OpBuilder &b, mlir::Value acc, const Matrix &matrix, mlir::Value row, mlir::Value column,
                    int64_t line, bool transposed);
  llvm::LogicalResult lower(mlir::OpBuilder &b, StoreTileOp op);
  void lower(mlir::OpBuilder &b, StoreRowsOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, StoreBlocksOp op);

  const SharedMemory &memory;
  mlir::func::FuncOp kernel;
  CopiesAhead *ahead = nullptr;
  llvm::DenseMap<mlir::Value, Matrix> matrices;
  llvm::DenseMap<mlir::Value, Pieces> entries; // that one line of a store has read
  llvm::DenseSet<mlir::Value> rowsOfLoops;     // numbers of rows that are loaded
  llvm::MapVector<mlir::Block *, Pieces> loads; // since the last release, by block: words that depend on each
};

} // namespace lacis::ampere

#endif // LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_ROLELOWERING_H
