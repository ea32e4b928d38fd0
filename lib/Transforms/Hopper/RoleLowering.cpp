// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loops and branches of a role, whose carried tile values become several values, and its rings.
#include "RoleLowering.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::hopper;

//===- Pieces -------------------------------------------------------------===//

static bool isTileValue(Type type) { return isa<RingType, TileType, AccType>(type); }

RoleLowering::Pieces RoleLowering::pieces(Value value) {
  if (auto found = split.find(value); found != split.end())
    return found->second;
  return {mapping.lookupOrDefault(value)};
}

RoleLowering::Pieces RoleLowering::pieces(ValueRange values) {
  Pieces all;
  for (Value value : values)
    llvm::append_range(all, pieces(value));
  return all;
}

void RoleLowering::setPieces(Value before, ValueRange after) {
  if (isTileValue(before.getType()))
    split[before] = Pieces(after);
  else
    mapping.map(before, after.front());
}

/// How many machine values a carried value has.
static size_t countPieces(Type type) {
  if (auto acc = dyn_cast<AccType>(type))
    return acc.getColumns() == 1 ? 2 : acc.getColumns() / 2;
  return isa<RingType>(type) ? 3 : 1;
}

void RoleLowering::distribute(ValueRange before, ValueRange all) {
  for (Value value : before) {
    size_t count = countPieces(value.getType());
    setPieces(value, all.take_front(count));
    all = all.drop_front(count);
  }
}

//===- Structure ----------------------------------------------------------===//

LogicalResult RoleLowering::lower(OpBuilder &b, Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(lowerOperation(b, op)))
      return failure();
  return success();
}

LogicalResult RoleLowering::lowerOperation(OpBuilder &b, Operation &op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](scf::ForOp loop) { return lowerFor(b, loop); })
      .Case([&](scf::IfOp guard) { return lowerIf(b, guard); })
      .Case([&](AcquireOp acquire) { return lowerAcquire(b, acquire), success(); })
      .Case([&](ReleaseOp release) { return lowerRelease(b, release), success(); })
      .Case([&](CompleteOp complete) { return lowerComplete(b, complete), success(); })
      .Case([&](LoadTileOp load) { return lowerLoadTile(b, load); })
      .Case([&](LoadRunOp load) { return lowerLoadRun(b, load), success(); })
      .Case([&](StoreTileOp store) { return lowerStoreTile(b, store); })
      .Case([&](StoreBlocksOp store) { return lowerStoreBlocks(b, store); })
      .Case([&](SplatOp splat) { return lowerSplat(b, splat), success(); })
      .Case([&](MmaOp mma) { return lowerMma(b, mma); })
      .Case([&](MapOp map) { return lowerMap(b, map); })
      .Case([&](ReduceRowsOp reduce) { return lowerReduceRows(b, reduce), success(); })
      .Case([&](ColumnsOp columns) { return lowerColumns(columns); })
      .Case([&](ReadTileOp read) { return lowerReadTile(b, read); })
      .Case([&](LoadRowsOp load) { return lowerLoadRows(b, load); })
      .Case([&](LoadEntriesOp load) { return lowerLoadEntries(b, load); })
      .Default([&](Operation *other) { return cloneOther(b, *other); });
}

/// A role knows no thread, so what it loads is the same for all; consumers' branches must be known to be uniform.
LogicalResult RoleLowering::cloneOther(OpBuilder &b, Operation &op) {
  auto inside = op.walk([](Operation *inner) {
    return llvm::any_of(inner->getOperandTypes(), isTileValue) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (inside.wasInterrupted())
    return op.emitError("tiles: '") << op.getName() << "' has no place inside a role";
  if (llvm::all_of(op.getResults(), [&](Value result) { return mapping.contains(result); }) && isa<LLVM::LoadOp>(op))
    return success(); // loaded a round ago
  b.clone(op, mapping);
  if (isa<LLVM::LoadOp>(op) && op.getResult(0).getType().isInteger(32) && !isProducer)
    mapping.map(op.getResult(0), Instructions(b, op.getLoc()).uniform(mapping.lookup(op.getResult(0))));
  return success();
}

/// Operations of the loop's body that the address of `load` takes, in order; false where it needs more than arithmetic
/// on the counter.
static bool addressOf(LLVM::LoadOp load, scf::ForOp loop, SetVector<Operation *> &address) {
  SmallVector<Value> open{load.getAddr()};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == loop.getBody() && argument != loop.getInductionVar())
        return false;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (op->getBlock() != loop.getBody() || !address.insert(op))
      continue;
    if (!isPure(op))
      return false;
    llvm::append_range(open, op->getOperands());
  }
  return true;
}

/// The load is of an array that the kernel only reads.
static bool isOfReadonlyArray(LLVM::LoadOp load) {
  auto element = load.getAddr().getDefiningOp<LLVM::GEPOp>();
  auto array = dyn_cast<BlockArgument>(element ? element.getBase() : load.getAddr());
  auto function = array ? dyn_cast<func::FuncOp>(array.getOwner()->getParentOp()) : func::FuncOp();
  return function && function.getArgAttr(array.getArgNumber(), "llvm.readonly");
}

/// Loads that a round of the loop can start for the next one.
SmallVector<LLVM::LoadOp> RoleLowering::earlyLoads(scf::ForOp loop) {
  SmallVector<LLVM::LoadOp> loads;
  bool hasRing = llvm::any_of(loop.getBody()->getOperations(), [](Operation &op) { return isa<AcquireOp>(op); });
  for (auto load : loop.getBody()->getOps<LLVM::LoadOp>()) {
    SetVector<Operation *> address;
    if (hasRing && isOfReadonlyArray(load) && addressOf(load, loop, address))
      loads.push_back(load);
  }
  return loads;
}

/// What `load` reads in the round `counter`; in the last round before `end` once more, in none 0.
Value RoleLowering::loadAt(OpBuilder &b, LLVM::LoadOp load, Value counter, Value first, Value end) {
  Location loc = load.getLoc();
  auto loop = cast<scf::ForOp>(load->getParentOp());
  SetVector<Operation *> address;
  addressOf(load, loop, address);
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, counter, end);
  auto guard = scf::IfOp::create(b, loc, load.getType(), some, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
  IRMapping local = mapping;
  local.map(loop.getInductionVar(), counter);
  for (Operation &op : *loop.getBody())
    if (address.contains(&op))
      then.clone(op, local);
  scf::YieldOp::create(then, loc, then.clone(*load, local)->getResult(0));
  scf::YieldOp::create(otherwise, loc, first);
  return guard.getResult(0);
}

LogicalResult RoleLowering::lowerFor(OpBuilder &b, scf::ForOp loop) {
  Location loc = loop.getLoc();
  for (Value place : loop.getInits())
    if (isa<RingType>(place.getType()) && !split.count(place))
      lowerRing(b, ringOf(place));
  Value begin = mapping.lookupOrDefault(loop.getLowerBound()), end = mapping.lookupOrDefault(loop.getUpperBound());
  Value step = mapping.lookupOrDefault(loop.getStep());
  SmallVector<LLVM::LoadOp> early = earlyLoads(loop);
  Pieces inits = pieces(loop.getInits());
  for (LLVM::LoadOp load : early) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(load.getType()));
    inits.push_back(loadAt(b, load, begin, zero, end));
  }
  auto made = scf::ForOp::create(b, loc, begin, end, step, inits);
  if (made.getBody()->mightHaveTerminator())
    made.getBody()->getTerminator()->erase();
  // Neither unrolled nor peeled: products must not be under a test that holds in some round only.
  made->setAttr("llvm.loop_annotation",
                parseAttribute("#llvm.loop_annotation<unroll = <disable = true>>", loop.getContext()));
  mapping.map(loop.getInductionVar(), made.getInductionVar());
  auto carried = made.getRegionIterArgs();
  distribute(loop.getRegionIterArgs(), ValueRange(carried).drop_back(early.size()));
  OpBuilder inner = OpBuilder::atBlockEnd(made.getBody());
  Pieces next;
  if (!early.empty()) {
    Value counter = arith::AddIOp::create(inner, loc, made.getInductionVar(), step);
    for (auto [load, value] : llvm::zip(early, ValueRange(carried).take_back(early.size()))) {
      bool isWord = value.getType().isInteger(32) && !isProducer;
      mapping.map(load.getResult(), isWord ? Instructions(inner, loc).uniform(value) : value);
      next.push_back(loadAt(inner, load, counter, value, end));
    }
  }
  if (failed(lower(inner, *loop.getBody())))
    return failure();
  Pieces yielded = pieces(loop.getBody()->getTerminator()->getOperands());
  llvm::append_range(yielded, next);
  scf::YieldOp::create(inner, loc, yielded);
  distribute(loop.getResults(), ValueRange(made.getResults()).drop_back(early.size()));
  return success();
}

LogicalResult RoleLowering::lowerIf(OpBuilder &b, scf::IfOp op) {
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    types.append(countPieces(type), isa<RingType>(type) ? b.getI32Type() : isa<AccType>(type) ? b.getF32Type() : type);
  bool hasElse = op.elseBlock() != nullptr;
  auto made = scf::IfOp::create(b, op.getLoc(), types, mapping.lookupOrDefault(op.getCondition()),
                                /*addThenBlock=*/true, /*addElseBlock=*/hasElse);
  for (unsigned side = 0; side < (hasElse ? 2 : 1); ++side) {
    Block &before = op->getRegion(side).front();
    OpBuilder inner = OpBuilder::atBlockEnd(&made->getRegion(side).front());
    if (failed(lower(inner, before)))
      return failure();
    scf::YieldOp::create(inner, op.getLoc(), pieces(before.getTerminator()->getOperands()));
  }
  distribute(op.getResults(), made.getResults());
  return success();
}

//===- Rings --------------------------------------------------------------===//

/// The first place: consumers wait for the first filling, the producer finds every stage free.
void RoleLowering::lowerRing(OpBuilder &b, RingOp op) {
  Instructions i(b, op.getLoc());
  setPieces(op.getRing(), {i.constant(0), i.constant(isProducer ? 1 : 0), i.add(group.shared, memory.idle)});
}

Value RoleLowering::barrier(Instructions &i, int64_t first, Value stage) {
  return i.add(i.add(group.shared, first), i.multiply(stage, 8));
}

void RoleLowering::lowerAcquire(OpBuilder &b, AcquireOp op) {
  Instructions i(b, op.getLoc());
  if (auto ring = op.getRing().getDefiningOp<RingOp>(); ring && !split.count(ring.getRing()))
    lowerRing(b, ring);
  const RingPlace &place = memory.rings.find(ringOf(op.getRing()))->second;
  Pieces at = pieces(op.getRing());
  i.wait(barrier(i, isProducer ? place.empty : place.full, at[Stage]), at[Parity]);
  Value begin = i.add(i.add(group.shared, place.begin), i.multiply(at[Stage], place.stageBytes));
  Value full = barrier(i, place.full, at[Stage]);
  for (auto [tile, offset] : llvm::zip(op.getTiles(), place.tiles))
    setPieces(tile, {i.add(begin, offset), full});
  if (!isProducer) {
    previous.push_back(at[Previous]);
    acquiredIn = op->getBlock();
  }
}

Value RoleLowering::tileAddress(Instructions &i, Value tile, Value place) {
  Value address = pieces(tile)[0];
  if (!place)
    return address;
  return i.add(address, i.multiply(mapping.lookupOrDefault(place), bytesPerTile(cast<TileType>(tile.getType()))));
}

/// One arrival a warp at the barriers of the stages before.
void RoleLowering::releasePrevious(Instructions &i) {
  for (Value barrier : previous)
    i.arriveIf(i.equal(group.lane, 0), barrier);
  previous.clear();
}

void RoleLowering::lowerRelease(OpBuilder &b, ReleaseOp op) {
  Instructions i(b, op.getLoc());
  const RingPlace &place = memory.rings.find(ringOf(op.getRing()))->second;
  Pieces at = pieces(op.getRing());
  Value here = barrier(i, isProducer ? place.full : place.empty, at[Stage]);
  if (isProducer) {
    i.arrive(here);
  } else if (!previous.empty()) { // no product in this stage: those of the stage before may still run
    i.waitProducts(0);
    releasePrevious(i);
  }
  Location loc = op.getLoc();
  Value last = i.equal(at[Stage], op.getRing().getType().getStages() - 1);
  Value stage = arith::SelectOp::create(b, loc, last, i.constant(0), i.add(at[Stage], 1));
  Value flipped = arith::XOrIOp::create(b, loc, at[Parity], i.constant(1));
  Value parity = arith::SelectOp::create(b, loc, last, flipped, at[Parity]);
  setPieces(op.getNext(), {stage, parity, isProducer ? at[Previous] : here});
}

void RoleLowering::lowerComplete(OpBuilder &b, CompleteOp op) {
  Instructions i(b, op.getLoc());
  i.waitProducts(0);
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
