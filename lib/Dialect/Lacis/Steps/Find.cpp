// SPDX-License-Identifier: Apache-2.0
/// \file
/// for p in row (j): s  -->  for j in n: p, there = find j: if there: s
///
/// Lanes then have neighbours of what a coordinate reads: a bit says whether it has an entry, and the bits below it which.
#include "PositionUnits.h"

#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lacis;

/// Why the loop cannot run over coordinates, or nothing.
static std::string objectionTo(LevelLoopOp loop) {
  LevelAttr level = formatOf(loop.getTensor()).getLevels()[loop.getLevel()];
  if (level.getDigits().size() != 1)
    return "is of a level of several axes, and runs over the coordinates of one";
  if (!level.getCoordinate().canFind())
    return "is of a level of kind '" + level.getKindName() + "', which has no way to find a coordinate but a search";
  if (loop.getUnroll() || loop.getPipeline())
    return "is marked already";
  return "";
}

/// The body of the loop, for a coordinate that has a position.
static void runOverCoordinates(LevelLoopOp loop, Location loc) {
  Value size = sizeOfLevel(loop, loc);
  OpBuilder b(loop);
  auto made = LoopOp::create(b, loop.getLoc(), loop.getLoopName(), size, loop.getInits(), loop.getReduce());
  OpBuilder inner = OpBuilder::atBlockEnd(made.getBlock());
  Type index = b.getIndexType();
  auto found = FindOp::create(inner, loc, index, b.getI1Type(), loop.getTensor(), loop.getLevel(), loop.getParent(),
                              ValueRange{made.getCoordinate()});
  auto guard = scf::IfOp::create(inner, loc, loop.getResultTypes(), found.getFound(), /*addThenBlock=*/true,
                                 /*addElseBlock=*/true);
  loop.getPosition().replaceAllUsesWith(found.getPosition());
  loop.getCoordinates()[0].replaceAllUsesWith(made.getCoordinate());
  for (auto [before, after] : llvm::zip(loop.getIterArgs(), made.getIterArgs()))
    before.replaceAllUsesWith(after);
  Operation *yield = loop.getBlock()->getTerminator();
  SmallVector<Value> next(yield->getOperands());
  Block *then = guard.thenBlock();
  then->getOperations().splice(then->end(), loop.getBlock()->getOperations(), loop.getBlock()->begin(),
                               yield->getIterator());
  OpBuilder inThen = OpBuilder::atBlockEnd(then), inElse = OpBuilder::atBlockEnd(guard.elseBlock());
  scf::YieldOp::create(inThen, loc, next);
  scf::YieldOp::create(inElse, loc, SmallVector<Value>(made.getIterArgs()));
  YieldOp::create(inner, loc, guard.getResults());
  loop.replaceAllUsesWith(made);
  loop.erase();
}

SmallVector<StringRef> FindStepAttr::namedLoops() const { return {getLoop()}; }

LogicalResult FindStepAttr::apply(Nest &nest, Location loc) const {
  SmallVector<Operation *> found = nest.findAll(getLoop());
  auto loop = found.size() == 1 ? dyn_cast<LevelLoopOp>(found[0]) : LevelLoopOp();
  if (!loop)
    return emitError(loc) << "find: '" << getLoop() << "' names no loop over the positions of one level";
  if (std::string why = objectionTo(loop); !why.empty())
    return emitError(loc) << "find: loop '" << loop.getName() << "' " << why;
  return runOverCoordinates(loop, loc), success();
}
