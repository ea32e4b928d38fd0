// SPDX-License-Identifier: Apache-2.0
/// \file
/// The iterations of a loop that carries a sum as units, each with a sum of its own.
#include "CarriedUnits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace lacis;

std::string lacis::objectionToUnits(LoopOp loop) {
  std::string quoted = "'" + loop.getName().str() + "'";
  if (!reductionOf(loop))
    return "the rounds of loop " + quoted + " are not added up by one operation that has a neutral element";
  if (isMarked(loop))
    return "loop " + quoted + " is marked already";
  Operation *around = loop->getParentOp();
  while (isa<scf::IfOp>(around) && around->getNumResults() == 0)
    around = around->getParentOp();
  LoopOp top = outermostLoop(loop);
  SmallVector<LoopOp> chain = perfectChain(top);
  if (around != chain.back() || llvm::any_of(loop->getUsers(), [](Operation *user) { return isa<YieldOp>(user); }))
    return "loop " + quoted + " is not the outermost that carries its sum";
  Operation *made = loop.getUpper().getDefiningOp();
  if (!made || (top->isAncestor(made) && !getConstantIntValue(loop.getUpper())))
    return "how many units loop " + quoted + " has is not known before the launch";
  return "";
}

LoopOp lacis::copyNest(OpBuilder b, LoopOp loop) {
  LoopOp top = outermostLoop(loop);
  IRMapping mapping;
  Operation *nest = b.clone(*top, mapping);
  PathAttr path = nestOf(b.getContext(), loop.getLoopName());
  nest->walk([&](LoopOpInterface op) {
    PathAttr own = op.getPathAttr();
    bool isInCase = own && !own.first(PathKind::Case).empty(); // which comes first in both
    op.setPathAttr(join(path, isInCase ? own.dropFirst() : own));
  });
  return cast<LoopOp>(mapping.lookup(loop.getResult(0)).getDefiningOp());
}

void lacis::makeUnits(LoopOp loop, Value count, llvm::function_ref<void(OpBuilder &b, Value unit, Value sum)> keep) {
  Location loc = loop.getLoc();
  Block *around = perfectChain(outermostLoop(loop)).back().getBlock();
  OpBuilder b(around->getTerminator());
  auto units = LoopOp::create(b, loc, loop.getLoopName(), count);
  units.setMeets(true);
  Block::OpListType &own = units.getBlock()->getOperations();
  own.splice(own.end(), around->getOperations(), around->begin(), units->getIterator());
  YieldOp::create(b = OpBuilder::atBlockEnd(units.getBlock()), loc);
  b.setInsertionPoint(loop);
  Value neutral = arith::ConstantOp::create(b, loc, neutralOf(*reductionOf(loop), loop.getResultTypes()[0]));
  loop.getCoordinate().replaceAllUsesWith(units.getCoordinate());
  loop.getIterArgs()[0].replaceAllUsesWith(neutral);
  Operation *end = loop.getBlock()->getTerminator();
  Value sum = end->getOperand(0);
  end->erase();
  loop->getBlock()->getOperations().splice(loop->getIterator(), loop.getBlock()->getOperations());
  loop.getResult(0).replaceAllUsesWith(sum);
  keep(b, units.getCoordinate(), sum);
  loop.erase();
}
