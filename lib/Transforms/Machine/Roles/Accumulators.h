// SPDX-License-Identifier: Apache-2.0
/// \file
/// Arithmetic on accumulators, which lie over the four warps of a consumer alike on every architecture.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_ROLES_ACCUMULATORS_H
#define LACIS_LIB_TRANSFORMS_MACHINE_ROLES_ACCUMULATORS_H

#include "RoleBody.h"

#include <map>

namespace lacis {

constexpr int64_t kWarps = 4; // of a consumer

/// The part of an accumulator that one of the four warps holds, in products of 16 x 8. Element p of product
/// (row, column) is piece 4 * (row * wide + column) + p: 0 and 1 are neighbours in a row, 2 and 3 those eight rows
/// below. Halves are two a register: those of a product are pieces 2 * (row * wide + column) and the next. What has a
/// number for each row is as wide as one product.
struct Share {
  int64_t rows = 0, columns = 0; // of a warp
  bool byRows = false;           // the warps have different rows, else different columns

  int64_t tall() const { return rows / 16; }
  int64_t wide() const { return columns / 8; }
  /// The number of the row that belongs to piece `n`.
  size_t rowOf(size_t n) const { return n / 4 / wide() * 2 + n % 4 / 2; }
};

class Accumulators : public RoleBody {
protected:
  /// `byRows`: a warp holds whole rows.
  Accumulators(Warpgroup group, bool isProducer, bool byRows) : RoleBody(isProducer), group(group), byRows(byRows) {}

  using RoleBody::lower;

  /// Can a consumer hold it; and, two a register, halves as the left side of a product takes them?
  virtual llvm::LogicalResult checkAcc(mlir::Operation *op, AccType type) const = 0;
  virtual llvm::LogicalResult checkHeld(mlir::Operation *op, AccType type) const = 0;
  /// The pieces of product (row, column) of a tile that is read, and of the one beside it; `column` is even.
  virtual Pieces readPair(mlir::OpBuilder &b, ReadTileOp op, int64_t row, int64_t column) = 0;
  /// The two columns, of the eight of this number, that a thread has.
  virtual Pieces loadColumnPair(mlir::OpBuilder &b, LoadColumnsOp op, int64_t eight) = 0;
  /// Loads what the accumulator is made of, where it is read first.
  virtual void loadFor(mlir::OpBuilder &, mlir::Value) {}

  Share shareOf(AccType type) const;
  size_t countPieces(mlir::Type type) const override;
  /// The row and the column of a thread's first piece.
  std::pair<mlir::Value, mlir::Value> firstPiece(mlir::OpBuilder &b, mlir::Location loc, const Share &share) const;
  llvm::FailureOr<TilePairs> tilePairs(mlir::OpBuilder &b, mlir::Operation *op, AccType acc) override;

  /// Piece `n`, of an accumulator of these shares; of one that has a number for each row, that of its row. Computed
  /// here if its map waits for a store.
  virtual mlir::Value element(mlir::OpBuilder &b, mlir::Value acc, size_t n, const Share &share);
  mlir::Value element(mlir::OpBuilder &b, mlir::Value acc, size_t n) {
    return element(b, acc, n, shareOf(llvm::cast<AccType>(acc.getType())));
  }

  /// The numbers of a thread's columns in shared memory, the same for all its rows, from the address `first` on; and a
  /// word of each load.
  std::pair<Pieces, Pieces> columnsAt(mlir::OpBuilder &b, mlir::Location loc, const Share &share, mlir::Value first);

  llvm::LogicalResult lower(mlir::OpBuilder &b, SplatOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, MapOp op);
  void lower(mlir::OpBuilder &b, ReduceRowsOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &, ColumnsOp op);

  Warpgroup group;
  const bool byRows;
  /// What elements have been read for, that are asked for in their order: pairs of products of a tile, and of columns.
  std::map<std::tuple<mlir::Operation *, int64_t, int64_t>, Pieces> pairs;

private:
  mlir::Value applyAt(mlir::OpBuilder &b, MapOp op, size_t n, const Share &share);
  Pieces coordinates(mlir::OpBuilder &b, MapOp op, size_t n, const Share &share);
  llvm::LogicalResult lowerRounding(mlir::OpBuilder &b, MapOp op);
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_MACHINE_ROLES_ACCUMULATORS_H
