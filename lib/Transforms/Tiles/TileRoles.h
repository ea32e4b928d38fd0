// SPDX-License-Identifier: Apache-2.0
/// \file
/// What all nests that become tiles have in common: one producer and its consumers, side by side on each worker.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILEROLES_H
#define LACIS_LIB_TRANSFORMS_TILES_TILEROLES_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lacis {

class TileRoles {
public:
  /// The roles stand before `nest`, which they take the place of.
  TileRoles(mlir::func::FuncOp function, LoopOp nest, mlir::Location loc)
      : b(nest), loc(loc), function(function), nest(nest) {}
  virtual ~TileRoles() = default;

protected:
  /// One role: loops over the worker's items, each of which takes a place in the ring and gives the next.
  virtual void produce(mlir::OpBuilder &at, mlir::Value worker, mlir::Value ring) = 0;
  virtual void consume(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value worker, mlir::Value ring) = 0;

  mlir::Value constant(int64_t value);
  mlir::Value add(mlir::OpBuilder &at, mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value multiply(mlir::OpBuilder &at, mlir::Value lhs, int64_t rhs);
  /// A box of a dense matrix, or of the stored block `{slot, row, column}`; `place` in a list of tiles, or null.
  void load(mlir::OpBuilder &at, mlir::Value from, mlir::ValueRange indices, mlir::Value tile, mlir::Value place) const;
  using Levels = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ArrayRef<mlir::Value>, mlir::Value ring)>;
  /// What list `number` of `list` says, level by level; the loops take their names from `panel` and `item`.
  mlir::Value forEachOfList(mlir::OpBuilder &at, const LoopName &panel, const LoopName &item, mlir::Value list,
                            mlir::Value number, mlir::Value ring, Levels body);
  /// Work lists of `nest`, in `groups` of lists or one for each worker; what an item says has a letter a level.
  mlir::RankedTensorType listType(bool groups, llvm::StringRef levels);
  /// What work takes on the target, which the function names.
  CostAttr cost();
  /// A workspace for the sums of parts, of `rows` x `columns` each, in tiles of so many rows and columns.
  mlir::Value keepSums(mlir::Value workers, int64_t rows, int64_t columns, int64_t tileRows, int64_t tileColumns);
  /// The tile of the workspace that is number `own` of the `each` that a consumer has in a slot of `all` tiles.
  mlir::Value slotPlace(mlir::OpBuilder &at, mlir::Value slot, int64_t all, mlir::Value consumer, int64_t each,
                        int64_t own);
  /// A sum whose parts are kept in slots from `first` on; the worker has part `part` of `parts`.
  struct KeptSum {
    mlir::Value first, part, parts;
  };
  using PlaceOf = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value slot)>;
  using SumBody = llvm::function_ref<void(mlir::OpBuilder &, mlir::Value sum)>;
  /// Who has part n adds up what is numbered n modulo the number of parts: here the tile `number`, of `type`, which has
  /// its place in each slot. The parts are added in their order.
  void addUpOwn(mlir::OpBuilder &at, const KeptSum &sum, mlir::Value number, AccType type, PlaceOf placeOf,
                SumBody body);
  /// Roles in a nest of their own.
  void makeRoles(mlir::Value workers, int64_t consumers);
  /// Makes the roles, and removes the nest and the marks of its operands.
  void form(mlir::Value workers, int64_t consumers);

  mlir::OpBuilder b; // before the roles
  mlir::Location loc;
  mlir::func::FuncOp function;
  RingType ringType;
  AccType accType;
  mlir::Value kept; // the workspace for the sums of parts

private:
  LoopOp nest;
  llvm::DenseMap<int64_t, mlir::Value> constants;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILEROLES_H
