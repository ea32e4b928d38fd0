// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the operations of a role become on sm_90a.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_ROLELOWERING_H
#define LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_ROLELOWERING_H

#include "../Roles/Accumulators.h"
#include "../Roles/Reads.h"
#include "Awaited.h"
#include "Instructions.h"
#include "SharedMemory.h"
#include "TensorMaps.h"

namespace lacis::hopper {

/// An accumulator of one consumer: 64 rows; each thread holds half a column of two rows for each column.
llvm::LogicalResult checkAcc(mlir::Operation *op, AccType type);

class RoleLowering : public Accumulators {
public:
  RoleLowering(const SharedMemory &memory, TensorMaps &maps, const Awaited &awaited, Warpgroup group, bool isProducer)
      : Accumulators(group, isProducer, /*byRows=*/true), memory(memory), maps(maps), awaited(awaited) {}

  using Accumulators::lower;

private:
  /// The pieces of a place in a ring, in order.
  enum Place { Stage, Parity, Previous };

  size_t countPieces(mlir::Type type) const override;
  llvm::LogicalResult checkAcc(mlir::Operation *op, AccType type) const override { return hopper::checkAcc(op, type); }
  llvm::LogicalResult checkHeld(mlir::Operation *op, AccType type) const override;
  std::optional<llvm::LogicalResult> lowerTiles(mlir::OpBuilder &b, mlir::Operation &op) override;

  Warpgroup groupHere(mlir::OpBuilder &b, mlir::Location loc);

  // Rings
  mlir::Value here(Instructions &i, mlir::Value number);
  mlir::Value baseHere(Instructions &i, mlir::Value base, int64_t bytes);
  mlir::Value barrier(Instructions &i, int64_t first, mlir::Value stage);
  void lowerRing(mlir::OpBuilder &b, RingOp op) override;
  void lower(mlir::OpBuilder &b, AcquireOp op);
  void placeTiles(Instructions &i, const RingPlace &place, const Pieces &at, mlir::ValueRange tiles);
  void setNext(mlir::OpBuilder &b, mlir::Value ring, mlir::Value next, mlir::Value before);
  llvm::LogicalResult lower(mlir::OpBuilder &b, AdvanceOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, RevisitOp op);
  void lower(mlir::OpBuilder &b, ReleaseOp op);
  void lower(mlir::OpBuilder &b, CompleteOp op);
  void settleOperands(mlir::OpBuilder &b, MmaOp first);
  bool completeAwaited(mlir::OpBuilder &b, CompleteOp op);
  void releasePrevious(Instructions &i);

  // Copies
  llvm::LogicalResult lower(mlir::OpBuilder &b, LoadTileOp op);
  void loadVectorPart(mlir::OpBuilder &b, LoadTileOp op);
  void lower(mlir::OpBuilder &b, LoadRunOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, StoreTileOp op);
  llvm::LogicalResult storeThrough(mlir::OpBuilder &b, StoreTileOp op);
  void freeStored(mlir::OpBuilder &b, mlir::Location loc);
  void storeColumns(mlir::OpBuilder &b, StoreTileOp op);
  void lower(mlir::OpBuilder &b, StoreRowsOp op);
  void storeRows(mlir::OpBuilder &b, mlir::Operation *op, mlir::ValueRange firsts, mlir::Value column,
                 mlir::Value number);
  /// Where the row of a thread's first elements, or that so many `below`, stands: behind the first of its group of rows.
  /// A group without a place begins at minus its rows, so all of it is negative.
  mlir::Value rowIn(mlir::OpBuilder &b, mlir::ValueRange firsts, int64_t below);
  llvm::LogicalResult lower(mlir::OpBuilder &b, StoreBlocksOp op);
  /// Accumulator columns [width * pass, ...), rounded to `type`, in a buffer, and what one thread then stores.
  using Store = llvm::function_ref<void(Instructions &store, mlir::OpBuilder &b, mlir::Value buffer)>;
  void writeBox(mlir::OpBuilder b, mlir::Value acc, int64_t pass, int64_t width, bool transposed, mlir::Type type,
                mlir::Value buffer);
  void storeBox(mlir::OpBuilder &b, mlir::Value acc, int64_t pass, bool transposed, mlir::Type type, Store store);

  // Accumulators
  llvm::LogicalResult lower(mlir::OpBuilder &b, MmaOp op);
  void lowerAwaited(mlir::OpBuilder &b, MmaOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, MmaGatheredOp op);
  /// The operands of a product: its left side is a descriptor, or registers of which each step takes four.
  struct Sides {
    mlir::Value a;
    Pieces held;
    mlir::Value b;
  };
  Sides sides(mlir::OpBuilder &b, MmaOp op);
  Pieces products(mlir::OpBuilder &b, MmaOp op, Pieces acc, const Sides &from, Pieces slabs);
  Pieces storedProducts(mlir::OpBuilder &b, MmaOp op, int64_t count, mlir::Value present, Pieces acc,
                        const Sides &from);
  Pieces choose(mlir::OpBuilder &b, MmaOp op, int64_t low, int64_t high, mlir::Value found, mlir::Value present,
                Pieces acc, const Sides &from);
  mlir::Value elementApart(mlir::OpBuilder &b, mlir::Value acc, size_t n);

  // Reads
  /// Where, in a box of rows of `line` bytes, this lane's row of 16 accumulator columns is: four matrices of 8x8.
  mlir::Value fragment(mlir::OpBuilder &b, Instructions &i, int64_t pair, int64_t line, bool transposed);
  llvm::LogicalResult lower(mlir::OpBuilder &b, ReadTileOp op);
  llvm::SmallVector<mlir::Value> readWords(mlir::OpBuilder &b, ReadTileOp op, int64_t pair);
  llvm::LogicalResult holdTile(mlir::OpBuilder &b, ReadTileOp op);
  Pieces readPair(mlir::OpBuilder &b, ReadTileOp op, int64_t row, int64_t column) override;
  llvm::LogicalResult lower(mlir::OpBuilder &b, ReadColumnsOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &b, LoadRowsOp op);
  llvm::LogicalResult lower(mlir::OpBuilder &, LoadColumnsOp op) { return checkLoadColumns(op); }
  Pieces loadColumnPair(mlir::OpBuilder &b, LoadColumnsOp op, int64_t eight) override;
  llvm::LogicalResult lower(mlir::OpBuilder &b, LoadEntriesOp op);

  const SharedMemory &memory;
  TensorMaps &maps;
  const Awaited &awaited;
  /// Barriers of the stages before those acquired last: free when the products that read them are complete.
  llvm::SmallVector<mlir::Value> previous;
  mlir::Block *acquiredIn = nullptr;
  bool isSettled = false; // all products are complete: the stage acquired last is free, too
  /// Awaited products that are under way, in order, with the registers that they read.
  llvm::SmallVector<std::pair<mlir::Value, Pieces>> underWay;
  /// The barrier of a place that a store has read before, and where that is to be said. Null where none is.
  mlir::Value stored;
  mlir::Block *storedIn = nullptr;
};

} // namespace lacis::hopper

#endif // LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_ROLELOWERING_H
