// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i in n  -->  for i0 in ceil(n / factor): for i1 in factor: if i0 * factor + i1 < n
/// A loop that carries a sum carries it through both.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

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
static void splitCarried(LoopOp loop, StringRef name, Value blocks, Value factor, bool guarded) {
  Location loc = loop.getLoc();
  OpBuilder b(loop);
  auto outer = LoopOp::create(b, loc, (name + "0").str(), blocks, loop.getInits());
  OpBuilder inOuter = OpBuilder::atBlockEnd(outer.getBlock());
  auto inner = LoopOp::create(inOuter, loc, (name + "1").str(), factor, SmallVector<Value>(outer.getIterArgs()));
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

SmallVector<StringRef> SplitStepAttr::namedLoops() const { return {getLoop()}; }

LogicalResult SplitStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> found = nest.requireFree(getLoop(), "split", loc);
  if (failed(found))
    return failure();
  LoopOp loop = *found;
  if (getFactor() <= 0)
    return emitError(loc) << "split: factor " << getFactor() << " of loop '" << getLoop() << "' must be positive";
  OpBuilder b(placeForSizes(loop));
  Value factor = arith::ConstantIndexOp::create(b, loc, getFactor());
  Value size = loop.getUpper();
  Value blocks = loop.getTrip()
                     ? arith::ConstantIndexOp::create(b, loc, llvm::divideCeil(*loop.getTrip(), getFactor()))
                           .getResult()
                     : arith::CeilDivUIOp::create(b, loc, size, factor).getResult();
  bool guarded = knownDivisor(size) % getFactor() != 0;
  std::string name = loop.getName().str();
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
