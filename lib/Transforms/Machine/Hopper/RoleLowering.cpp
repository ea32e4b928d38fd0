// SPDX-License-Identifier: Apache-2.0
/// \file
/// The operations of a role on sm_90a, and its rings.
#include "RoleLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::hopper;

size_t RoleLowering::countPieces(Type type) const {
  return isa<RingType>(type) ? 3 : Accumulators::countPieces(type);
}

/// Who the thread is, found out anew.
Warpgroup RoleLowering::groupHere(OpBuilder &b, Location loc) {
  Instructions i(b, loc);
  Warpgroup found = group;
  Value thread = i.threadHere();
  found.shared = i.here(group.shared);
  found.warp = arith::AndIOp::create(b, loc, arith::ShRUIOp::create(b, loc, thread, i.constant(5)), i.constant(3));
  found.lane = arith::AndIOp::create(b, loc, thread, i.constant(31));
  found.consumer = i.add(arith::ShRUIOp::create(b, loc, thread, i.constant(7)), -1);
  return found;
}

std::optional<LogicalResult> RoleLowering::lowerTiles(OpBuilder &b, Operation &op) {
  llvm::SaveAndRestore restore(group);
  if (memory.isFull && isa<StoreTileOp, LoadRowsOp, ReadTileOp>(op))
    group = groupHere(b, op.getLoc());
  return lowerOneOf<AcquireOp, AdvanceOp, RevisitOp, ReleaseOp, CompleteOp, LoadTileOp, LoadRunOp, StoreTileOp, StoreRowsOp,
                    StoreBlocksOp, SplatOp, MmaOp, MmaGatheredOp, MapOp, ReduceRowsOp, ColumnsOp, ReadTileOp,
                    ReadColumnsOp, LoadRowsOp, LoadColumnsOp, LoadEntriesOp>(op, [&](auto own) { return lower(b, own); });
}

//===- Rings --------------------------------------------------------------===//

/// The first place: consumers wait for the first filling, the producer finds every stage free.
void RoleLowering::lowerRing(OpBuilder &b, RingOp op) {
  Instructions i(b, op.getLoc());
  setPieces(op.getRing(), {i.constant(0), i.constant(isProducer ? 1 : 0), i.add(group.shared, memory.idle)});
}

/// Where registers are scarce, addresses are computed where they are used, from few numbers.
Value RoleLowering::here(Instructions &i, Value number) { return memory.isFull && !isProducer ? i.here(number) : number; }

/// What the group has, `bytes` behind those of the group before.
Value RoleLowering::baseHere(Instructions &i, Value base, int64_t bytes) {
  bool isFound = memory.isFull && !isProducer && group.number; // of one number, in the place of two bases
  return isFound ? i.add(group.shared, i.multiply(i.here(group.number), bytes)) : here(i, base);
}

Value RoleLowering::barrier(Instructions &i, int64_t first, Value stage) {
  return i.add(i.add(baseHere(i, group.barriers, memory.groupBarriers), first), i.multiply(here(i, stage), 8));
}

/// Where the tiles of a place lie, and the barrier that says that they are filled.
void RoleLowering::placeTiles(Instructions &i, const RingPlace &place, const Pieces &at, ValueRange tiles) {
  Value stage = here(i, at[Stage]);
  Value begin = i.add(i.add(baseHere(i, group.stages, memory.groupStages), place.begin), i.multiply(stage, place.stageBytes));
  Value full = barrier(i, place.full, at[Stage]);
  for (auto [tile, offset] : llvm::zip(tiles, place.tiles)) {
    auto type = cast<TileType>(tile.getType());
    Value address = i.add(begin, offset);
    if (isVector(type))
      address = i.add(i.add(baseHere(i, group.barriers, memory.groupBarriers), offset), i.multiply(stage, vectorBytes(type)));
    setPieces(tile, {address, full});
  }
}

void RoleLowering::lower(OpBuilder &b, AcquireOp op) {
  Instructions i(b, op.getLoc());
  const RingPlace &place = memory.rings.find(ringOf(op.getRing()))->second;
  Pieces at = placeOf(b, op.getRing());
  i.wait(barrier(i, isProducer ? place.empty : place.full, at[Stage]), at[Parity]);
  placeTiles(i, place, at, op.getTiles());
  if (!isProducer && !awaited.contains(ringOf(op.getRing()))) {
    previous.push_back(at[Previous]);
    acquiredIn = op->getBlock();
  }
  if (!isProducer && awaited.isStored(ringOf(op.getRing()))) {
    stored = at[Previous];
    storedIn = op->getBlock();
    bool waits = llvm::any_of(llvm::make_range(std::next(op->getIterator()), storedIn->end()), llvm::IsaPred<CompleteOp>);
    if (!waits)
      freeStored(b, op.getLoc());
  }
}

/// One thread has stored, so it knows when all of it has been read, and arrives for the warps of its consumer. That is
/// asked for when the first products of what follows are complete.
void RoleLowering::freeStored(OpBuilder &b, Location loc) {
  Instructions i(b, loc);
  Value first = arith::AndIOp::create(b, loc, i.equal(group.warp, 0), i.equal(group.lane, 0));
  OpBuilder then = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false).getThenBodyBuilder();
  Instructions one(then, loc);
  one.waitStores(0, /*read=*/true);
  one.arrive(stored, kGroupThreads / 32);
  stored = {};
}

/// One arrival a warp at the barriers of the stages before.
void RoleLowering::releasePrevious(Instructions &i) {
  for (Value barrier : previous)
    i.arriveIf(i.equal(group.lane, 0), barrier);
  previous.clear();
}

/// Do lanes read what is at the place, and not products alone?
static bool isReadByLanes(ReleaseOp op) {
  auto isRead = [](Value tile) { return llvm::any_of(tile.getUsers(), llvm::IsaPred<ReadColumnsOp, ReadTileOp>); };
  return llvm::any_of(op.getRing().getUsers(), [&](Operation *user) {
    auto acquire = dyn_cast<AcquireOp>(user);
    return acquire && llvm::any_of(acquire.getTiles(), isRead);
  });
}

void RoleLowering::lower(OpBuilder &b, ReleaseOp op) {
  Instructions i(b, op.getLoc());
  const RingPlace &place = memory.rings.find(ringOf(op.getRing()))->second;
  Pieces at = pieces(op.getRing());
  Value here = barrier(i, isProducer ? place.full : place.empty, at[Stage]);
  Value before = here;
  if (isProducer) {
    i.arrive(here);
    before = at[Previous];
  } else if (awaited.contains(ringOf(op.getRing()))) {
    bool isLater = awaited.isStored(ringOf(op.getRing()));
    if (!isLater) {
      if (isReadByLanes(op))
        NVVM::SyncWarpOp::create(b, op.getLoc(), i.constant(-1)); // the arrival speaks for the reads of each lane
      i.arriveIf(i.equal(group.lane, 0), here);
    }
    before = isLater ? here : at[Previous];
  } else if (isSettled) {
    previous.clear();
    NVVM::SyncWarpOp::create(b, op.getLoc(), i.constant(-1)); // each lane has read
    i.arriveIf(i.equal(group.lane, 0), here);
    before = i.add(group.shared, memory.idle);
    isSettled = false;
  } else if (!previous.empty()) { // no product in this stage: those of the stage before may still run
    i.waitProducts(0);
    releasePrevious(i);
  }
  setNext(b, op.getRing(), op.getNext(), before);
}

/// The place behind `ring`; `before` is the barrier of the stage before it.
void RoleLowering::setNext(OpBuilder &b, Value ring, Value next, Value before) {
  auto [stage, parity] = nextPlace(b, next.getLoc(), ring);
  setPieces(next, {stage, parity, before});
}

/// Places are kept beyond the next one only where nothing but awaited products says when they are free.
static LogicalResult checkKept(Operation *op, const Awaited &awaited) {
  RingOp ring = ringOf(op->getOperand(0));
  if (awaited.contains(ring) && !awaited.isStored(ring))
    return success();
  return op->emitError("tiles: a place that is kept beyond the next one is read by products that are complete in the block "
                       "that begins them, and before it is released");
}

LogicalResult RoleLowering::lower(OpBuilder &b, AdvanceOp op) {
  if (failed(checkKept(op, awaited)))
    return failure();
  setNext(b, op.getRing(), op.getNext(), placeOf(b, op.getRing())[Previous]);
  return success();
}

LogicalResult RoleLowering::lower(OpBuilder &b, RevisitOp op) {
  if (failed(checkKept(op, awaited)))
    return failure();
  Instructions i(b, op.getLoc());
  placeTiles(i, memory.rings.find(ringOf(op.getRing()))->second, placeOf(b, op.getRing()), op.getTiles());
  return success();
}

/// Products that were begun later stay under way, and nothing touches their registers.
bool RoleLowering::completeAwaited(OpBuilder &b, CompleteOp op) {
  auto isGiven = [&](auto &product) { return llvm::is_contained(op.getValues(), product.first); };
  if (op.getValues().empty() || llvm::count_if(underWay, isGiven) != static_cast<int64_t>(op.getValues().size()))
    return false;
  auto last = llvm::find_if(llvm::reverse(underWay), isGiven);
  Instructions i(b, op.getLoc());
  i.waitProducts(last - underWay.rbegin());
  for (auto &[product, held] : llvm::make_range(underWay.begin(), last.base()))
    i.keep(held);
  underWay.erase(underWay.begin(), last.base());
  for (auto [before, after] : llvm::zip(op.getValues(), op.getResults()))
    setPieces(after, i.settle(pieces(before)));
  if (stored && storedIn == op->getBlock())
    freeStored(b, op.getLoc());
  return true;
}

void RoleLowering::lower(OpBuilder &b, CompleteOp op) {
  if (completeAwaited(b, op))
    return;
  Instructions i(b, op.getLoc());
  i.waitProducts(0);
  for (auto &[product, held] : underWay)
    i.keep(held);
  underWay.clear();
  for (auto [before, after] : llvm::zip(op.getValues(), op.getResults())) {
    Pieces at = pieces(before);
    if (isa<AccType>(before.getType())) {
      setPieces(after, i.settle(at));
      continue;
    }
    i.arriveIf(i.equal(group.lane, 0), at[Previous]);
    setPieces(after, {at[Stage], at[Parity], i.add(group.shared, memory.idle)});
  }
}
