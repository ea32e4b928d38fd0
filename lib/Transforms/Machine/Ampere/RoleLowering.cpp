// SPDX-License-Identifier: Apache-2.0
/// \file
/// The operations of a role on sm_80, and its rings.
#include "RoleLowering.h"

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
  return lowerOneOf<AcquireOp, ReleaseOp, CompleteOp, LoadTileOp, LoadRunOp, StoreTileOp, StoreBlocksOp, LoadEntriesOp,
                    SplatOp, MmaOp, MapOp, ReduceRowsOp, ColumnsOp, ReadTileOp, LoadRowsOp, LoadColumnsOp>(
      op, [&](auto own) { return lower(b, own); });
}

void RoleLowering::lower(OpBuilder &, SplatOp op) {
  Value value = mapping.lookupOrDefault(op.getValue());
  setPieces(op.getAcc(), Pieces(countPieces(op.getAcc().getType()), value));
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

void RoleLowering::lower(OpBuilder &b, AcquireOp op) {
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
void RoleLowering::lower(OpBuilder &b, ReleaseOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  const RingPlace &place = memory.rings.find(ringOf(op.getRing()))->second;
  Pieces at = placeOf(b, op.getRing());
  if (isProducer)
    i.arriveWhenCopied(barrier(i, place.full, at[Stage]));
  else
    i.arriveAfter(takeLoads(b, loc), barrier(i, place.empty, at[Stage]));
  setPieces(op.getNext(), nextPlace(b, loc, op.getRing()));
}

/// Products are complete when they have been asked for.
void RoleLowering::lower(OpBuilder &, CompleteOp op) {
  for (auto [before, after] : llvm::zip(op.getValues(), op.getResults()))
    setPieces(after, pieces(before));
}
