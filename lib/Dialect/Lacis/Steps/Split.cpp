// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i in n  -->  for i0 in ceil(n / factor): for i1 in factor: if i0 * factor + i1 < n
/// A loop that carries a sum carries it through both.
/// for j in row  -->  for j0 in ceil(n / factor): for j1 in the positions of row with coordinates of strip j0, found by seek
#include "PositionUnits.h"

#include "lacis/Dialect/Lacis/IR/Guards.h"
#include "lacis/Dialect/Lacis/IR/Limits.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lacis;

/// Moves what a block holds, but its terminator, under `if coordinate < size`.
static void guardBlock(Block *block, Operation *after, Value coordinate, Value size, Location loc) {
  OpBuilder b(block, std::next(after->getIterator()));
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, coordinate, size);
  auto guard = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
  Block *then = guard.thenBlock();
  then->getOperations().splice(then->begin(), block->getOperations(), std::next(guard->getIterator()),
                               std::prev(block->end()));
}

/// The body of a loop that carries a sum: past the end the carried values pass on.
static void guardCarried(LoopOp loop, Operation *after, Value coordinate, Value size, Location loc) {
  Block *block = loop.getBlock();
  OpBuilder b(block, std::next(after->getIterator()));
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, coordinate, size);
  auto guard = scf::IfOp::create(b, loc, loop.getResultTypes(), inside, /*addThenBlock=*/true, /*addElseBlock=*/true);
  Operation *yield = block->getTerminator();
  Block *then = guard.thenBlock();
  then->getOperations().splice(then->begin(), block->getOperations(), std::next(guard->getIterator()),
                               yield->getIterator());
  OpBuilder inThen = OpBuilder::atBlockEnd(then), inElse = OpBuilder::atBlockEnd(guard.elseBlock());
  scf::YieldOp::create(inThen, loc, yield->getOperands());
  scf::YieldOp::create(inElse, loc, SmallVector<Value>(loop.getIterArgs()));
  yield->setOperands(guard.getResults());
}

/// i0 and i1 around the body of i; the sizes exist already.
static void splitCarried(LoopOp loop, const LoopName &name, Value blocks, Value factor, bool guarded) {
  Location loc = loop.getLoc();
  OpBuilder b(loop);
  auto outer = LoopOp::create(b, loc, name + "0", blocks, loop.getInits(), loop.getReduce());
  OpBuilder inOuter = OpBuilder::atBlockEnd(outer.getBlock());
  auto inner = LoopOp::create(inOuter, loc, name + "1", factor, SmallVector<Value>(outer.getIterArgs()),
                              loop.getReduce());
  YieldOp::create(inOuter, loc, inner.getResults());
  for (auto [before, after] : llvm::zip(loop.getIterArgs(), inner.getIterArgs()))
    before.replaceAllUsesWith(after);
  OpBuilder body = OpBuilder::atBlockBegin(loop.getBlock());
  Value scaled = arith::MulIOp::create(body, loc, outer.getCoordinate(), factor);
  auto whole = arith::AddIOp::create(body, loc, scaled, inner.getCoordinate());
  loop.getCoordinate().replaceAllUsesWith(whole);
  inner.getBlock()->getOperations().splice(inner.getBlock()->end(), loop.getBlock()->getOperations());
  if (guarded)
    guardCarried(inner, whole, whole, loop.getUpper(), loc);
  loop.replaceAllUsesWith(outer);
  loop.erase();
}

/// Why the positions of a level have no strips of coordinates, or nothing.
static std::string objectionToStrips(LevelLoopOp loop) {
  LevelAttr level = formatOf(loop.getTensor()).getLevels()[loop.getLevel()];
  if (level.getDigits().size() != 1)
    return "walks the positions of a level of several axes, which has no strips of one";
  if (!level.getCoordinate().isStored() || !level.getCoordinate().canSeek())
    return "walks positions whose coordinates are not stored in order, so no strip is found by seek; split_nnz cuts it by positions";
  if (loop.getUnroll() || loop.getPipeline())
    return "is marked already";
  return "";
}

Value lacis::sizeOfLevel(LevelLoopOp loop, Location loc) {
  Operation *top = loop;
  while (isa<LoopOp, LevelLoopOp, scf::IfOp>(top->getParentOp()))
    top = top->getParentOp();
  OpBuilder b(top);
  Digit digit = formatOf(loop.getTensor()).getLevels()[loop.getLevel()].getDigits()[0];
  if (digit.mod)
    return arith::ConstantIndexOp::create(b, loc, digit.mod);
  Value tensor = loop.getTensor(); // an argument has the sizes
  while (Operation *op = tensor.getDefiningOp())
    tensor = op->getOperand(0);
  Value size = tensor::DimOp::create(b, loc, tensor, digit.axis);
  return digit.div == 1 ? size
                        : arith::CeilDivUIOp::create(b, loc, size, arith::ConstantIndexOp::create(b, loc, digit.div));
}

/// Strips of coordinates of a sparse level.
static void splitBySeek(LevelLoopOp loop, int64_t factor, Location loc) {
  LoopName name = loop.getLoopName();
  Value coordinates = sizeOfLevel(loop, loc);
  OpBuilder top = OpBuilder::atBlockBegin(coordinates.getParentBlock());
  top.setInsertionPointAfterValue(coordinates);
  Value size = arith::ConstantIndexOp::create(top, loc, factor);
  Value strips = arith::CeilDivUIOp::create(top, loc, coordinates, size);
  OpBuilder b(loop);
  Type index = b.getIndexType();
  auto bounds = BoundsOp::create(b, loc, index, index, loop.getTensor(), loop.getLevel(), loop.getParent());
  auto outer = LoopOp::create(b, loop.getLoc(), name + "0", strips, loop.getInits(), loop.getReduce());
  OpBuilder inOuter = OpBuilder::atBlockEnd(outer.getBlock());
  Value first = arith::MulIOp::create(inOuter, loc, outer.getCoordinate(), size);
  Value end = arith::AddIOp::create(inOuter, loc, first, size);
  auto seek = [&](Value lo, Value coordinate) {
    return SeekOp::create(inOuter, loc, index, loop.getTensor(), loop.getLevel(), lo, bounds.getHi(), coordinate);
  };
  Value from = seek(bounds.getLo(), first);
  Value count = arith::SubIOp::create(inOuter, loc, seek(from, end), from);
  auto inner = walkRun(inOuter, loop, name + "1", bounds.getLo(), from, count, SmallVector<Value>(outer.getIterArgs()));
  YieldOp::create(inOuter, loc, inner.getResults());
  loop.replaceAllUsesWith(outer);
  loop.erase();
}

SmallVector<StringRef> SplitStepAttr::namedLoops() const { return {getLoop()}; }

LogicalResult SplitStepAttr::apply(Nest &nest, Location loc) const {
  if (getFactor() <= 0)
    return emitError(loc) << "split: factor " << getFactor() << " of loop '" << getLoop() << "' must be positive";
  if (getFactor() > kMostInStrip)
    return emitError(loc) << "split: factor " << getFactor() << " of loop '" << getLoop() << "' is more than "
                          << kMostInStrip << ", the most coordinates of a strip; leave the loop whole";
  SmallVector<Operation *> positions = nest.findAll(getLoop());
  if (auto loop = positions.size() == 1 ? dyn_cast<LevelLoopOp>(positions[0]) : LevelLoopOp()) {
    if (std::string why = objectionToStrips(loop); !why.empty())
      return emitError(loc) << "split: loop '" << loop.getName() << "' " << why;
    return splitBySeek(loop, getFactor(), loc), success();
  }
  FailureOr<LoopOp> found = nest.requireFree(getLoop(), "split", loc);
  if (failed(found))
    return failure();
  LoopOp loop = *found;
  OpBuilder b(placeForSizes(loop));
  Value factor = arith::ConstantIndexOp::create(b, loc, getFactor());
  Value size = loop.getUpper();
  Value blocks = loop.getTrip()
                     ? arith::ConstantIndexOp::create(b, loc, llvm::divideCeil(*loop.getTrip(), getFactor()))
                           .getResult()
                     : arith::CeilDivUIOp::create(b, loc, size, factor).getResult();
  bool guarded = !fillStrips(size, getFactor());
  LoopName name = loop.getLoopName();
  if (loop.getNumResults() != 0)
    return splitCarried(loop, name, blocks, factor, guarded), success();
  b.setInsertionPoint(loop);
  auto outer = LoopOp::create(b, loop.getLoc(), name + "0", blocks);
  OpBuilder inOuter = OpBuilder::atBlockEnd(outer.getBlock());
  auto inner = LoopOp::create(inOuter, loop.getLoc(), name + "1", factor);
  YieldOp::create(inOuter, loop.getLoc());
  passOnRaces(loop, outer);
  passOnRaces(loop, inner);
  // Bounds inside do not depend on the coordinate, so it is made where the chain ends.
  Block *innermost = perfectChain(loop).back().getBlock();
  OpBuilder body(innermost, innermost->begin());
  Value scaled = arith::MulIOp::create(body, loop.getLoc(), outer.getCoordinate(), factor);
  auto whole = arith::AddIOp::create(body, loop.getLoc(), scaled, inner.getCoordinate());
  loop.getCoordinate().replaceAllUsesWith(whole);
  if (guarded)
    guardBlock(innermost, whole, whole, size, loop.getLoc());
  inner.getBlock()->getOperations().splice(inner.getBlock()->end(), loop.getBlock()->getOperations());
  loop.erase();
  return success();
}
