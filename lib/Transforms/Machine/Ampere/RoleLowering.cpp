// SPDX-License-Identifier: Apache-2.0
/// \file
/// The operations of a role on sm_80, and its rings.
#include "RoleLowering.h"
#include "../Roles/Reads.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

Share RoleLowering::shareOf(AccType type) const {
  return {byRows ? type.getRows() / kWarps : type.getRows(), byRows ? type.getColumns() : type.getColumns() / kWarps,
          byRows};
}

LogicalResult RoleLowering::checkAcc(Operation *op, AccType type) const {
  constexpr int64_t rows = 16, columns = 16, most = 128; // of an instruction, of a load, pieces of a thread
  int64_t tall = rows * (byRows ? kWarps : 1), wide = columns * (byRows ? 1 : kWarps);
  if (type.getElementType().isF32() && type.getRows() % tall == 0 && type.getColumns() % wide == 0 &&
      type.getRows() * type.getColumns() <= most * kGroupThreads)
    return success();
  return op->emitError("tiles: a consumer holds up to ")
         << most * kGroupThreads << " float32 numbers, in a multiple of " << tall << " rows and of " << wide
         << " columns; got " << type;
}

size_t RoleLowering::countPieces(Type type) const {
  if (auto acc = dyn_cast<AccType>(type)) {
    Share share = shareOf(acc);
    return acc.getColumns() == 1 ? 2 * share.tall() : 4 * share.tall() * share.wide();
  }
  return isa<RingType>(type) ? 2 : 1;
}

std::optional<LogicalResult> RoleLowering::lowerTiles(OpBuilder &b, Operation &op) {
  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(&op)
      .Case([&](AcquireOp acquire) { return lowerAcquire(b, acquire), success(); })
      .Case([&](ReleaseOp release) { return lowerRelease(b, release), success(); })
      .Case([&](CompleteOp complete) { return lowerComplete(complete), success(); })
      .Case([&](LoadTileOp load) { return lowerLoadTile(b, load); })
      .Case([&](LoadRunOp load) { return lowerLoadRun(b, load); })
      .Case([&](StoreTileOp store) { return lowerStoreTile(b, store); })
      .Case([&](StoreBlocksOp store) { return lowerStoreBlocks(b, store); })
      .Case([&](LoadEntriesOp) { return success(); }) // where a store needs them
      .Case([&](SplatOp splat) {
        Value value = mapping.lookupOrDefault(splat.getValue());
        return setPieces(splat.getAcc(), Pieces(countPieces(splat.getAcc().getType()), value)), success();
      })
      .Case([&](MmaOp mma) { return lowerMma(b, mma); })
      .Case([&](MapOp map) { return lowerMap(b, map); })
      .Case([&](ReduceRowsOp reduce) { return lowerReduceRows(b, reduce), success(); })
      .Case([&](ColumnsOp columns) { return lowerColumns(columns); })
      .Case([&](ReadTileOp read) { return lowerReadTile(b, read); })
      .Case([&](LoadRowsOp load) { return checkLoadRows(load); })
      .Case([&](LoadColumnsOp load) { return checkLoadColumns(load); })
      .Default([](Operation *) { return std::nullopt; });
}

FailureOr<RoleBody::TilePairs> RoleLowering::tilePairs(OpBuilder &b, Operation *op, AccType acc) {
  Location loc = op->getLoc();
  Instructions i(b, loc);
  if (failed(checkAcc(op, acc)))
    return failure();
  Share share = shareOf(acc);
  Value row = arith::ShRUIOp::create(b, loc, group.lane, i.constant(2));
  Value column = i.multiply(arith::AndIOp::create(b, loc, group.lane, i.constant(3)), 2);
  Value &side = byRows ? row : column;
  side = i.add(side, i.multiply(group.warp, byRows ? share.rows : share.columns));
  TilePairs own{i.add(i.multiply(row, acc.getColumns()), column), {}};
  for (int64_t tall = 0; tall < share.rows; tall += 16)
    for (int64_t eight = 0; eight < share.columns; eight += 8)
      for (int64_t below : {0, 8})
        own.offsets.push_back((tall + below) * acc.getColumns() + eight);
  return own;
}

//===- Rings --------------------------------------------------------------===//

/// The first place: consumers wait for the first filling, the producer finds every stage free.
void RoleLowering::lowerRing(OpBuilder &b, RingOp op) {
  Instructions i(b, op.getLoc());
  setPieces(op.getRing(), {i.constant(0), i.constant(isProducer ? 1 : 0)});
}

Value RoleLowering::barrier(Instructions &i, int64_t first, Value stage) {
  return i.add(i.add(group.shared, first), i.multiply(stage, 8));
}

void RoleLowering::lowerAcquire(OpBuilder &b, AcquireOp op) {
  Instructions i(b, op.getLoc());
  const RingPlace &place = memory.rings.find(ringOf(op.getRing()))->second;
  Pieces at = placeOf(b, op.getRing());
  i.wait(barrier(i, isProducer ? place.empty : place.full, at[Stage]), at[Parity]);
  Value begin = i.add(i.add(group.shared, place.begin), i.multiply(at[Stage], place.stageBytes));
  for (auto [tile, offset] : llvm::zip(op.getTiles(), place.tiles))
    setPieces(tile, i.add(begin, offset));
}

/// Does `outer` hold the operation that `inner` belongs to, or is it the same block?
static bool isAround(Block *outer, Block *inner) {
  while (inner && inner != outer)
    inner = inner->getParentOp() ? inner->getParentOp()->getBlock() : nullptr;
  return inner;
}

RoleLowering::Pieces RoleLowering::takeLoads(OpBuilder &b, Location loc) {
  Pieces here;
  for (auto &[block, words] : loads) {
    if (isAround(block, b.getInsertionBlock())) {
      llvm::append_range(here, words);
      continue;
    }
    OpBuilder end(block->getTerminator());
    Instructions(end, loc).waitForLoads(words);
  }
  loads.clear();
  return here;
}

/// Filled when the copies of each thread are there; free when each thread has read what it multiplies.
void RoleLowering::lowerRelease(OpBuilder &b, ReleaseOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  const RingPlace &place = memory.rings.find(ringOf(op.getRing()))->second;
  Pieces at = placeOf(b, op.getRing());
  if (isProducer)
    i.arriveWhenCopied(barrier(i, place.full, at[Stage]));
  else
    i.arriveAfter(takeLoads(b, loc), barrier(i, place.empty, at[Stage]));
  Value last = i.equal(at[Stage], op.getRing().getType().getStages() - 1);
  Value stage = arith::SelectOp::create(b, loc, last, i.constant(0), i.add(at[Stage], 1));
  Value flipped = arith::XOrIOp::create(b, loc, at[Parity], i.constant(1));
  setPieces(op.getNext(), {stage, arith::SelectOp::create(b, loc, last, flipped, at[Parity])});
}

/// Products are complete when they have been asked for.
void RoleLowering::lowerComplete(CompleteOp op) {
  for (auto [before, after] : llvm::zip(op.getValues(), op.getResults()))
    setPieces(after, pieces(before));
}

Value RoleLowering::tileAddress(Instructions &i, Value tile, Value place) {
  Value address = pieces(tile)[0];
  if (!place)
    return address;
  return i.add(address, i.multiply(mapping.lookupOrDefault(place), bytesPerTile(cast<TileType>(tile.getType()))));
}
