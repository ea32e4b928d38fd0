// SPDX-License-Identifier: Apache-2.0
/// \file
/// The operations of a role on sm_80, and its rings.
#include "../Roles/Halves.h"
#include "CopiesAhead.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

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

LogicalResult RoleLowering::checkHeld(Operation *op, AccType type) const {
  constexpr int64_t rows = 16 * kWarps, columns = 16; // of a warp's product, and of its contraction
  if (byRows && isHalf(type.getElementType()) && type.getRows() % rows == 0 && type.getColumns() % columns == 0)
    return success();
  return op->emitError("tiles: registers hold bf16 or f16 in a multiple of ")
         << rows << " rows and of " << columns << " columns; got " << type;
}

size_t RoleLowering::countPieces(Type type) const {
  return isa<RingType>(type) ? (ahead ? 3 : 2) : Accumulators::countPieces(type);
}

std::optional<LogicalResult> RoleLowering::lowerTiles(OpBuilder &b, Operation &op) {
  return lowerOneOf<AcquireOp, AdvanceOp, RevisitOp, ReleaseOp, CompleteOp, LoadTileOp, LoadRunOp, StoreTileOp,
                    StoreRowsOp, StoreBlocksOp, LoadEntriesOp, SplatOp, MmaOp, MapOp, ReduceRowsOp, ColumnsOp, ReadTileOp,
                    ReadColumnsOp, LoadRowsOp, LoadColumnsOp>(op, [&](auto own) { return lower(b, own); });
}

//===- Rings --------------------------------------------------------------===//

/// The first place: consumers wait for the first filling, the producer finds every stage free.
void RoleLowering::lowerRing(OpBuilder &b, RingOp op) {
  Instructions i(b, op.getLoc());
  Pieces first{i.constant(0), i.constant(isProducer ? 1 : 0)};
  if (ahead)
    first.push_back(i.constant(0));
  setPieces(op.getRing(), first);
}

void RoleLowering::setNext(OpBuilder &b, Value ring, Value next) {
  auto [stage, parity] = nextPlace(b, next.getLoc(), ring);
  Pieces place{stage, parity}, before = pieces(ring);
  if (ahead)
    place.push_back(Instructions(b, next.getLoc()).add(before[Round], 1));
  setPieces(next, place);
}

Value RoleLowering::barrier(Instructions &i, int64_t first, Value stage) {
  return i.add(i.add(group.barriers, first), i.multiply(stage, kBarrierBytes));
}

void RoleLowering::placeTiles(Instructions &i, Value ring, const Pieces &at, ValueRange tiles) {
  const RingPlace &place = memory.rings.find(ringOf(ring))->second;
  Value begin = i.add(i.add(group.stages, place.begin), i.multiply(at[Stage], place.stageBytes));
  for (auto [tile, offset] : llvm::zip(tiles, place.tiles)) {
    auto type = cast<TileType>(tile.getType());
    bool isApart = isVector(type); // among the barriers
    setPieces(tile, isApart ? i.add(i.add(group.barriers, offset), i.multiply(at[Stage], vectorBytes(type)))
                            : i.add(begin, offset));
  }
}

LogicalResult RoleLowering::lower(OpBuilder &b, AcquireOp op) {
  Instructions i(b, op.getLoc());
  RingOp ring = ringOf(op.getRing());
  const RingPlace &place = memory.rings.find(ring)->second;
  Pieces at = placeOf(b, op.getRing());
  if (ahead && ahead->copies(ring) && failed(ahead->copy(b, ring, at)))
    return failure();
  i.wait(barrier(i, isProducer ? place.empty : place.full, at[Stage]), at[Parity]);
  placeTiles(i, op.getRing(), at, op.getTiles());
  return success();
}

void RoleLowering::lower(OpBuilder &b, RevisitOp op) {
  Instructions i(b, op.getLoc());
  placeTiles(i, op.getRing(), placeOf(b, op.getRing()), op.getTiles());
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
void RoleLowering::lower(OpBuilder &b, ReleaseOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  const RingPlace &place = memory.rings.find(ringOf(op.getRing()))->second;
  Pieces at = placeOf(b, op.getRing());
  if (isProducer)
    i.arriveWhenCopied(barrier(i, place.full, at[Stage]));
  else
    i.arriveAfter(takeLoads(b, loc), barrier(i, place.empty, at[Stage]));
  setNext(b, op.getRing(), op.getNext());
}

/// Products are complete when they have been asked for.
void RoleLowering::lower(OpBuilder &, CompleteOp op) {
  for (auto [before, after] : llvm::zip(op.getValues(), op.getResults()))
    setPieces(after, pieces(before));
}
