// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the operations of a role become on sm_80: copies by the threads of four warps, products by the warps of a
/// consumer.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_ROLELOWERING_H
#define LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_ROLELOWERING_H

#include "../Roles/Reads.h"
#include "../Roles/RoleBody.h"
#include "Instructions.h"
#include "SharedMemory.h"

#include "llvm/ADT/MapVector.h"

#include <map>

namespace lacis::ampere {

/// The part of an accumulator that one of the four warps holds, in products of 16 x 8. Element p of product
/// (row, column) is piece 4 * (row * wide + column) + p: 0 and 1 are neighbours in a row, 2 and 3 those eight rows
/// below.
struct Share {
  int64_t rows = 0, columns = 0; // of a warp
  bool byRows = false;           // the warps have different rows, else different columns

  int64_t tall() const { return rows / 16; }
  int64_t wide() const { return columns / 8; }
  /// The element of a single column that belongs to piece `n`.
  size_t rowOf(size_t n) const { return n / 4 / wide() * 2 + n % 4 / 2; }
};

/// Rows and columns of a matrix behind a pointer.
struct Matrix {
  mlir::Value pointer, rows, columns; // i64
};

class RoleLowering : public RoleBody {
public:
  /// `byRows`: rows of accumulators are added up, or columns of them taken, so that a warp holds whole rows.
  RoleLowering(const SharedMemory &memory, Warpgroup group, bool isProducer, bool byRows, mlir::func::FuncOp kernel)
      : RoleBody(isProducer), memory(memory), group(group), byRows(byRows), kernel(kernel) {}

  using RoleBody::lower;

private:
  /// The pieces of a place in a ring, in order.
  enum Place { Stage, Parity };

  size_t countPieces(mlir::Type type) const override;
  std::optional<llvm::LogicalResult> lowerTiles(mlir::OpBuilder &b, mlir::Operation &op) override;

  Share shareOf(AccType type) const;
  llvm::LogicalResult checkAcc(mlir::Operation *op, AccType type) const;
  /// Halves that registers hold, two a register, as the left side of a product takes them.
  llvm::LogicalResult checkHeld(mlir::Operation *op, AccType type) const;
  /// The row and the column of a thread's first piece, of an accumulator of such shares.
  std::pair<mlir::Value, mlir::Value> firstPiece(mlir::OpBuilder &b, mlir::Location loc, const Share &share);

  // Rings
  mlir::Value barrier(Instructions &i, int64_t first, mlir::Value stage);
  void lowerRing(mlir::OpBuilder &b, RingOp op) override;
  void placeTiles(Instructions &i, mlir::Value ring, const Pieces &at, mlir::ValueRange tiles);
  void lower(mlir::OpBuilder &b, AcquireOp op);
  void lower(mlir::OpBuilder &b, AdvanceOp op) { setPieces(op.getNext(), nextPlace(b, op.getLoc(), op.getRing())); }
  void lower(mlir::OpBuilder &b, RevisitOp op);
  void lower(mlir::OpBuilder &b, ReleaseOp op);
  void lower(mlir::OpBuilder &, CompleteOp op);
  /// Words that depend on all loads since the last release. The loads of an inner block are complete at its end.
  Pieces takeLoads(mlir::OpBuilder &b, mlir::Location loc);

  // Copies
  /// The matrix of sizes `shape`, or of a batch of matrices that which the first of `indices` numbers.
  Matrix matrixOf(mlir::OpBuilder &b, mlir::Value pointer, mlir::ArrayAttr shape, mlir::ValueRange indices,
                  mlir::Type element);
  mlir::Value wide(mlir::OpBuilder &b, mlir::Value value);
  void copyTile(mlir::OpBuilder &b, mlir::Location loc, TileType tile, mlir::Value to, const Matrix &matrix,
                mlir::Value row, mlir::Value column);
  llvm::LogicalResult copyVector(mlir::OpBuilder &b, LoadTileOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, LoadTileOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, LoadRunOp op);

  // Accumulators
  llvm::LogicalResult lower(mlir::OpBuilder &b, SplatOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, MmaOp op);
  /// `a`: the address of a tile; of halves that registers hold it is null, and they are those from step `first` on.
  Pieces products(mlir::OpBuilder &b, MmaOp op, Pieces acc, mlir::Value a, mlir::Value bTile, int64_t first, int64_t slab);
  llvm::LogicalResult lower(mlir::OpBuilder &b, MapOp op);
  llvm::LogicalResult lowerRounding(mlir::OpBuilder &b, MapOp op);
  mlir::Value applyAt(mlir::OpBuilder &b, MapOp op, size_t n, const Share &share);
  Pieces coordinates(mlir::OpBuilder &b, MapOp op, size_t n, const Share &share);
  /// Piece `n`; of a single column, the number of its row. Computed here if its map waits for a store.
  mlir::Value element(mlir::OpBuilder &b, mlir::Value acc, size_t n, const Share &share);
  llvm::FailureOr<TilePairs> tilePairs(mlir::OpBuilder &b, mlir::Operation *op, AccType acc) override;
  void lower(mlir::OpBuilder &b, ReduceRowsOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &, ColumnsOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, ReadTileOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, ReadColumnsOp op);
  llvm::SmallVector<mlir::Value> readWords(mlir::OpBuilder &b, ReadTileOp op, int64_t row, int64_t column);
  /// The pieces of product (row, column) and of the one beside it; `column` is even.
  Pieces readPair(mlir::OpBuilder &b, ReadTileOp op, int64_t row, int64_t column);
  /// A number for each row is loaded where it is needed first: no registers wait through a sum. What loops inside need
  /// is loaded before them.
  llvm::LogicalResult lower(mlir::OpBuilder &b, LoadRowsOp op);
  void loadRows(mlir::OpBuilder &b, LoadRowsOp op);
  void loadRowsOf(mlir::OpBuilder &b, mlir::Value acc);
  llvm::LogicalResult lower(mlir::OpBuilder &, LoadColumnsOp op) { return checkLoadColumns(op); }
  /// The two columns that a thread has of eight.
  Pieces loadColumnPair(mlir::OpBuilder &b, LoadColumnsOp op, int64_t eight);

  // Stores
  mlir::Value lineRow(mlir::OpBuilder &b, AccType acc, mlir::ValueRange firsts, int64_t line, bool transposed,
                      mlir::Value within);
  void lower(mlir::OpBuilder &, LoadEntriesOp) {} // where a store needs them
  void loadEntriesOf(mlir::OpBuilder &b, mlir::Value acc, int64_t line);
  Pieces wordsOf(mlir::OpBuilder &b, mlir::Value acc, mlir::Type element, int64_t line, bool transposed);
  /// Eight lines of the matrix at a time; where it is transposed they are columns of the accumulator, whose rows are
  /// neighbours. `firsts`: of its groups of rows.
  void storeLines(mlir::OpBuilder &b, mlir::Value acc, mlir::Type element, const Matrix &matrix,
                  mlir::ValueRange firsts, mlir::Value column, bool transposed);
  void storeSingles(mlir::OpBuilder &b, mlir::Value acc, const Matrix &matrix, mlir::ValueRange firsts,
                    mlir::Value column, int64_t line, bool transposed);
  llvm::LogicalResult lower(mlir::OpBuilder &b, StoreTileOp op);
  void lower(mlir::OpBuilder &b, StoreRowsOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, StoreBlocksOp op);

  const SharedMemory &memory;
  Warpgroup group; // of a producer: `lane` is the number of the thread among those that copy
  const bool byRows;
  mlir::func::FuncOp kernel;
  llvm::DenseMap<mlir::Value, Matrix> matrices;
  std::map<std::pair<int64_t, int64_t>, Pieces> pairs; // that one line of a store has read
  llvm::DenseMap<mlir::Value, Pieces> entries;         // likewise
  std::map<std::pair<mlir::Operation *, int64_t>, Pieces> columnPairs; // likewise, of vectors along the columns
  llvm::DenseSet<mlir::Value> rowsOfLoops;             // numbers of rows that are loaded
  llvm::MapVector<mlir::Block *, Pieces> loads; // since the last release, by block: words that depend on each
};

} // namespace lacis::ampere

#endif // LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_ROLELOWERING_H
