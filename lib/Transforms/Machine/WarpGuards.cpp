// SPDX-License-Identifier: Apache-2.0
/// \file
/// if (lane < n) { a; s = sum over warps of f; c }  -->  if (lane < n) a; s = sum over warps of (lane < n ? f : 0);
/// if (lane < n) c
///
/// Warps that share a sum meet at a barrier, to which every lane of every warp has to come.
#include "Combine.h"

using namespace mlir;
using namespace lacis;

/// May a value differ between the threads of a block?
static bool differs(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      return false; // of the kernel
    auto unit = loop->getAttrOfType<StringAttr>("lacis.bind");
    if (unit && argument == loop.getInductionVar())
      return !unit.getValue().starts_with("block") && unit != "parallel";
    return argument != loop.getInductionVar() || differs(loop.getLowerBound()) || differs(loop.getUpperBound());
  }
  Operation *op = value.getDefiningOp();
  return isa<gpu::ThreadIdOp>(op) || op->getNumRegions() != 0 || llvm::any_of(op->getOperands(), differs);
}

/// What `guard` makes before `end` and is needed from there on becomes a result of a guard of its own, zero elsewhere.
static void splitBefore(scf::IfOp guard, Operation *end) {
  Block *then = guard.thenBlock();
  SmallVector<Value> needed;
  for (Operation &op : llvm::make_range(then->begin(), end->getIterator()))
    for (Value result : op.getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !then->findAncestorOpInBlock(*user)->isBeforeInBlock(end);
          }))
        needed.push_back(result);
  OpBuilder b(guard);
  Location loc = guard.getLoc();
  auto first = scf::IfOp::create(b, loc, ValueRange(needed).getTypes(), guard.getCondition(), /*addThenBlock=*/true,
                                 /*addElseBlock=*/true);
  Block *before = first.thenBlock();
  before->getOperations().splice(before->end(), then->getOperations(), then->begin(), end->getIterator());
  for (auto [value, result] : llvm::zip(needed, first.getResults()))
    value.replaceUsesWithIf(result, [&](OpOperand &use) { return !first->isProperAncestor(use.getOwner()); });
  OpBuilder inThen = OpBuilder::atBlockEnd(before), inElse = OpBuilder::atBlockEnd(first.elseBlock());
  scf::YieldOp::create(inThen, loc, needed);
  SmallVector<Value> zeros;
  for (Value value : needed)
    zeros.push_back(isa<LLVM::LLVMPointerType>(value.getType())
                        ? LLVM::ZeroOp::create(inElse, loc, value.getType()).getResult()
                        : arith::ConstantOp::create(inElse, loc, inElse.getZeroAttr(value.getType())).getResult());
  scf::YieldOp::create(inElse, loc, zeros);
}

/// What the loop adds up, it adds up under the guard; elsewhere it passes its sums on.
static void pushInto(scf::ForOp loop, Value condition) {
  Block *body = loop.getBody();
  Operation *end = body->getTerminator();
  OpBuilder b = OpBuilder::atBlockBegin(body);
  auto guard = scf::IfOp::create(b, loop.getLoc(), loop.getResultTypes(), condition, /*addThenBlock=*/true,
                                 /*addElseBlock=*/true);
  Block *then = guard.thenBlock();
  then->getOperations().splice(then->end(), body->getOperations(), std::next(guard->getIterator()), end->getIterator());
  OpBuilder inThen = OpBuilder::atBlockEnd(then), inElse = OpBuilder::atBlockEnd(guard.elseBlock());
  scf::YieldOp::create(inThen, loop.getLoc(), end->getOperands());
  scf::YieldOp::create(inElse, loop.getLoc(), SmallVector<Value>(loop.getRegionIterArgs()));
  end->setOperands(guard.getResults());
}

LogicalResult lacis::liftOutOfGuards(scf::ForOp loop) {
  while (auto guard = dyn_cast<scf::IfOp>(loop->getParentOp())) {
    if (!differs(guard.getCondition()))
      break;
    if (guard.getNumResults() != 0 || loop->getBlock() != guard.thenBlock())
      break;
    splitBefore(guard, loop);
    loop->moveBefore(guard);
    pushInto(loop, guard.getCondition());
  }
  for (Operation *around = loop->getParentOp(); !isa<func::FuncOp>(around); around = around->getParentOp()) {
    auto serial = dyn_cast<scf::ForOp>(around);
    auto guard = dyn_cast<scf::IfOp>(around);
    bool isUnit = serial && serial->hasAttr("lacis.bind");
    if ((guard && differs(guard.getCondition())) ||
        (serial && !isUnit && (differs(serial.getLowerBound()) || differs(serial.getUpperBound()))))
      return loop.emitError("bind: warps share the sum of this loop, but how often threads come to it differs between "
                            "them; bind a loop outside of those whose bounds or guards depend on 'lane' or 'thread'");
  }
  return success();
}
