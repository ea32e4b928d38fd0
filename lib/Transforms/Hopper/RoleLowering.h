// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rewrites the body of one role: a value of a tile type becomes several machine values.
#ifndef LACIS_LIB_TRANSFORMS_HOPPER_ROLELOWERING_H
#define LACIS_LIB_TRANSFORMS_HOPPER_ROLELOWERING_H

#include "Instructions.h"
#include "SharedMemory.h"
#include "TensorMaps.h"

namespace lacis::hopper {

/// What all roles of a kernel know.
struct Warpgroup {
  mlir::Value shared;   // address of dynamic shared memory
  mlir::Value consumer; // its number
  mlir::Value warp;     // within the warpgroup
  mlir::Value lane;
};

class RoleLowering {
public:
  RoleLowering(const SharedMemory &memory, TensorMaps &maps, Warpgroup group, bool isProducer)
      : memory(memory), maps(maps), group(group), isProducer(isProducer) {}

  void map(mlir::Value before, mlir::Value after) { mapping.map(before, after); }
  /// All operations of `block` but its terminator.
  llvm::LogicalResult lower(mlir::OpBuilder &b, mlir::Block &block);

private:
  using Pieces = llvm::SmallVector<mlir::Value>;
  /// The pieces of a place in a ring, in order.
  enum Place { Stage, Parity, Previous };

  Pieces pieces(mlir::Value value);
  Pieces pieces(mlir::ValueRange values);
  void setPieces(mlir::Value before, mlir::ValueRange after);
  /// Hands `all`, the pieces of several values one after another, to them.
  void distribute(mlir::ValueRange before, mlir::ValueRange all);

  llvm::LogicalResult lowerOperation(mlir::OpBuilder &b, mlir::Operation &op);
  llvm::LogicalResult lowerFor(mlir::OpBuilder &b, mlir::scf::ForOp loop);
  llvm::SmallVector<mlir::LLVM::LoadOp> earlyLoads(mlir::scf::ForOp loop);
  mlir::Value loadAt(mlir::OpBuilder &b, mlir::LLVM::LoadOp load, mlir::Value counter, mlir::Value first,
                     mlir::Value end);
  llvm::LogicalResult lowerIf(mlir::OpBuilder &b, mlir::scf::IfOp op);
  llvm::LogicalResult cloneOther(mlir::OpBuilder &b, mlir::Operation &op);

  // Rings
  mlir::Value barrier(Instructions &i, int64_t first, mlir::Value stage);
  void lowerRing(mlir::OpBuilder &b, RingOp op);
  void lowerAcquire(mlir::OpBuilder &b, AcquireOp op);
  void lowerRelease(mlir::OpBuilder &b, ReleaseOp op);
  void lowerComplete(mlir::OpBuilder &b, CompleteOp op);
  void releasePrevious(Instructions &i);
  /// Of a tile, or of the tile at `place` of a list.
  mlir::Value tileAddress(Instructions &i, mlir::Value tile, mlir::Value place);

  // Copies
  llvm::LogicalResult lowerLoadTile(mlir::OpBuilder &b, LoadTileOp op);
  void lowerLoadRun(mlir::OpBuilder &b, LoadRunOp op);
  llvm::LogicalResult lowerStoreTile(mlir::OpBuilder &b, StoreTileOp op);
  llvm::LogicalResult lowerStoreBlocks(mlir::OpBuilder &b, StoreBlocksOp op);
  /// Accumulator columns [storeColumns * pass, ...), rounded to `type`, in a buffer, and what one thread then stores.
  using Store = llvm::function_ref<void(Instructions &store, mlir::OpBuilder &b, mlir::Value buffer)>;
  void writeBox(mlir::OpBuilder b, mlir::Value acc, int64_t pass, bool transposed, mlir::Type type, mlir::Value buffer);
  void storeBox(mlir::OpBuilder &b, mlir::Value acc, int64_t pass, bool transposed, mlir::Type type, Store store);

  // Accumulators
  void lowerSplat(mlir::OpBuilder &b, SplatOp op);
  llvm::LogicalResult lowerMma(mlir::OpBuilder &b, MmaOp op);
  Pieces products(mlir::OpBuilder &b, MmaOp op, Pieces acc, mlir::Value a, mlir::Value bTile, Pieces slabs);
  Pieces storedProducts(mlir::OpBuilder &b, MmaOp op, int64_t count, mlir::Value present, Pieces acc, mlir::Value a,
                        mlir::Value bTile);
  Pieces choose(mlir::OpBuilder &b, MmaOp op, int64_t low, int64_t high, mlir::Value found, mlir::Value present,
                Pieces acc, mlir::Value a, mlir::Value bTile);
  llvm::LogicalResult lowerMap(mlir::OpBuilder &b, MapOp op);
  /// Element `n` of a thread; of a single column, the number of its row. Computed here if its map waits for a store.
  mlir::Value element(mlir::OpBuilder &b, mlir::Value acc, size_t n);
  mlir::Value mapped(mlir::OpBuilder &b, MapOp op, size_t n);
  void lowerReduceRows(mlir::OpBuilder &b, ReduceRowsOp op);

  // Reads
  /// Where, in a box of rows of `line` bytes, this lane's row of 16 accumulator columns is: four matrices of 8x8.
  mlir::Value fragment(mlir::OpBuilder &b, Instructions &i, int64_t pair, int64_t line, bool transposed);
  llvm::LogicalResult lowerColumns(ColumnsOp op);
  llvm::LogicalResult lowerReadTile(mlir::OpBuilder &b, ReadTileOp op);
  llvm::LogicalResult lowerLoadRows(mlir::OpBuilder &b, LoadRowsOp op);
  llvm::LogicalResult lowerLoadEntries(mlir::OpBuilder &b, LoadEntriesOp op);

  const SharedMemory &memory;
  TensorMaps &maps;
  Warpgroup group;
  bool isProducer;
  mlir::IRMapping mapping;
  llvm::DenseMap<mlir::Value, Pieces> split;
  /// Barriers of the stages before those acquired last: free when the products that read them are complete.
  llvm::SmallVector<mlir::Value> previous;
  mlir::Block *acquiredIn = nullptr;
};

/// Bytes of a row of a tile, which are those of its swizzle; 0 where the tensor cores cannot read it.
int64_t lineBytes(TileType tile);

/// The accumulator is a map that stores compute part by part, so that few values live at once.
bool waitsForStore(mlir::Value acc);

/// An accumulator of one consumer: 64 rows; each thread holds half a column of two rows for each column.
llvm::LogicalResult checkAcc(mlir::Operation *op, AccType type);

} // namespace lacis::hopper

#endif // LACIS_LIB_TRANSFORMS_HOPPER_ROLELOWERING_H
