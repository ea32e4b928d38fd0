// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loads into tiles behind barriers, and stores of accumulators through shared memory.
#include "RoleLowering.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::hopper;

LogicalResult RoleLowering::lowerLoadTile(OpBuilder &b, LoadTileOp op) {
  Instructions i(b, op.getLoc());
  TileType tile = op.getTile().getType();
  FailureOr<Value> map =
      maps.get(op, op.getSource(), *op.getShape(), tile.getElementType(), tile.getRows(), tile.getColumns());
  if (failed(map))
    return failure();
  Pieces at = pieces(op.getTile());
  Value address = at[0];
  if (op.getPlace())
    address = i.add(address, i.multiply(mapping.lookupOrDefault(op.getPlace()), bytesPerTile(tile)));
  i.expectBytes(at[1], i.constant(bytesPerTile(tile)));
  i.copyBox(address, *map, mapping.lookupOrDefault(op.getIndices()[1]), mapping.lookupOrDefault(op.getIndices()[0]),
            at[1]);
  return success();
}

/// The array lies in global memory as it will in shared memory: one copy, of as many tiles as there are.
void RoleLowering::lowerLoadRun(OpBuilder &b, LoadRunOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  TileType tile = op.getTile().getType();
  int64_t size = bytesPerTile(tile);
  maps.exchangeChunks(op.getSource(), tile.getColumns() * tile.getElementType().getIntOrFloatBitWidth() / 8);
  Pieces at = pieces(op.getTile());
  Value count = mapping.lookupOrDefault(op.getCount());
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, count, i.constant(0));
  auto guard = scf::IfOp::create(b, loc, some, /*withElseRegion=*/false);
  OpBuilder then = guard.getThenBodyBuilder();
  Instructions inner(then, loc);
  Value bytes = inner.multiply(count, size);
  Value position = arith::ExtSIOp::create(then, loc, then.getI64Type(), mapping.lookupOrDefault(op.getPosition()));
  Value offset = arith::MulIOp::create(then, loc, position, inner.constant64(size));
  Value source = mapping.lookupOrDefault(op.getSource());
  Value from =
      LLVM::GEPOp::create(then, loc, source.getType(), then.getI8Type(), source, ArrayRef<LLVM::GEPArg>{offset});
  inner.expectBytes(at[1], bytes);
  inner.copyRun(at[0], from, bytes, at[1]);
}

//===- Stores -------------------------------------------------------------===//

/// Address within a box of 128-byte rows: 16-byte chunks are exchanged by the row's number.
static Value swizzled(OpBuilder &b, Location loc, Instructions &i, Value offset) {
  Value row = arith::ShRUIOp::create(b, loc, offset, i.constant(3));
  return arith::XOrIOp::create(b, loc, offset, arith::AndIOp::create(b, loc, row, i.constant(0x70)));
}

/// Columns [64 pass, 64 pass + 64) of the accumulator, rounded, as one box of 64 rows of 64 elements.
void RoleLowering::storeBox(Instructions &i, ArrayRef<Value> acc, int64_t pass, StoreTileOp op, Value map,
                            OpBuilder &b) {
  Location loc = op.getLoc();
  int64_t buffers = memory.buffersPerConsumer;
  bool transposed = op.getTransposed();
  Value buffer = i.add(i.add(group.shared, memory.stores + pass % buffers * kStoreBytes),
                       i.multiply(group.consumer, buffers * kStoreBytes));
  Value id = i.add(group.consumer, 1);
  Value first = arith::AndIOp::create(b, loc, i.equal(group.warp, 0), i.equal(group.lane, 0));
  {
    auto guard = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
    OpBuilder then = guard.getThenBodyBuilder();
    Instructions(then, loc).waitStores(buffers - 1, /*read=*/true);
  }
  i.synchronize(id, kGroupThreads);
  Value matrix = arith::ShRUIOp::create(b, loc, group.lane, i.constant(3));
  Value row = arith::AndIOp::create(b, loc, group.lane, i.constant(7));
  Value low = arith::AndIOp::create(b, loc, matrix, i.constant(1));
  Value high = arith::ShRUIOp::create(b, loc, matrix, i.constant(1));
  for (int64_t pair = 0; pair < 4; ++pair) { // 16 columns of the accumulator
    int64_t at = 4 * (pass * 8 + pair * 2);
    SmallVector<Value> registers;
    for (int64_t n = 0; n < 4; ++n)
      registers.push_back(i.pack(acc[at + 2 * n], acc[at + 2 * n + 1], *op.getType()));
    // A row of the box is a column of the accumulator where it is transposed.
    Value boxRow = transposed ? i.add(i.add(i.multiply(high, 8), row), pair * 16)
                              : i.add(i.add(i.multiply(low, 8), row), i.multiply(group.warp, 16));
    Value boxBytes =
        transposed ? i.add(i.multiply(group.warp, 32), i.multiply(low, 16)) : i.add(i.multiply(high, 16), pair * 32);
    Value offset = swizzled(b, loc, i, i.add(i.multiply(boxRow, 128), boxBytes));
    i.storeMatrices(i.add(buffer, offset), registers, transposed);
  }
  i.fenceSharedStores();
  i.synchronize(id, kGroupThreads);
  auto guard = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
  OpBuilder then = guard.getThenBodyBuilder();
  Instructions store(then, loc);
  Value rowIndex = mapping.lookupOrDefault(op.getIndices()[0]), column = mapping.lookupOrDefault(op.getIndices()[1]);
  if (transposed)
    rowIndex = store.add(rowIndex, pass * 64);
  else
    column = store.add(column, pass * 64);
  store.storeBox(map, column, rowIndex, buffer);
  store.commitStores();
}

LogicalResult RoleLowering::lowerStoreTile(OpBuilder &b, StoreTileOp op) {
  AccType type = op.getValue().getType();
  if (failed(checkAcc(op, type)))
    return failure();
  if (type.getColumns() % 64 != 0 || !(op.getType()->isBF16() || op.getType()->isF16()))
    return op.emitError("tiles: stores are of 64, 128, ... columns, to bf16 or f16");
  FailureOr<Value> map = maps.get(op, op.getTarget(), *op.getShape(), *op.getType(), 64, 64);
  if (failed(map))
    return failure();
  Instructions i(b, op.getLoc());
  Pieces acc = pieces(op.getValue());
  for (int64_t pass = 0; pass < type.getColumns() / 64; ++pass)
    storeBox(i, acc, pass, op, *map, b);
  return success();
}
