// SPDX-License-Identifier: Apache-2.0
/// \file
/// y += w[j] * x[j]  -->  t = x[tile]; y += w[j] * t[j]: tiles of the operand are loaded before they are used.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> StageStepAttr::namedLoops() const {
  return getLoop() ? SmallVector<StringRef>{getLoop().getValue()} : SmallVector<StringRef>{};
}

/// The read is of the operand, or of a copy that a nest named after it makes.
static bool reads(ReadOp read, Value operand, StringRef name) {
  if (read.getTensor() == operand)
    return true;
  auto copy = read.getTensor().getDefiningOp<WorkspaceOp>();
  return copy && llvm::any_of(copy->getUsers(), [&](Operation *user) {
    auto nest = isa<WriteOp>(user) ? user->getParentOfType<LoopOp>() : LoopOp();
    return nest && outermostLoop(nest).getName().starts_with((name + ".").str());
  });
}

/// Marks the loop, and the reads whose elements are loaded at its rounds.
static LogicalResult markLoop(Nest &nest, Value operand, StringRef name, StringAttr at, Location loc) {
  SmallVector<Operation *> loops = nest.findAll(at);
  if (loops.empty())
    return emitError(loc) << "stage: no loop named " << at;
  if (cast<RankedTensorType>(operand.getType()).getEncoding())
    return emitError(loc) << "stage: '" << name << "' has a format; tiles of dense operands are loaded";
  bool found = false;
  for (Operation *loop : loops) {
    if (auto coordinates = dyn_cast<LoopOp>(loop); coordinates && (coordinates.getVectorize() || coordinates.getJam()))
      return emitError(loc) << "stage: loop " << at << " stays no loop, so it has no rounds";
    loop->walk([&](ReadOp read) {
      if (!reads(read, operand, name))
        return;
      read->setAttr("lacis.staged", at);
      found = true;
    });
    loop->setAttr("lacis.stages", UnitAttr::get(loc.getContext()));
    loop->setLoc(loc);
  }
  if (!found)
    return emitError(loc) << "stage: nothing in loop " << at << " reads '" << name << "'";
  return success();
}

LogicalResult StageStepAttr::apply(Nest &nest, Location loc) const {
  auto operand = dyn_cast_or_null<BlockArgument>(nest.findOperand(getOperand()));
  if (!operand)
    return emitError(loc) << "stage: no operand named '" << getOperand() << "'";
  if (nest.getFunction().getArgAttr(operand.getArgNumber(), "lacis.output"))
    return emitError(loc) << "stage: '" << getOperand() << "' is the output; tiles of operands are loaded";
  if (getPlace() != "shared")
    return emitError(loc) << "stage: no place '" << getPlace() << "'; tiles lie in 'shared'";
  if (getLoop())
    return markLoop(nest, operand, getOperand(), getLoop(), loc);
  nest.getFunction().setArgAttr(operand.getArgNumber(), "lacis.staged", StringAttr::get(getContext(), getPlace()));
  return success();
}
