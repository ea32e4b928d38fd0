// SPDX-License-Identifier: Apache-2.0
/// \file
/// y += w[j] * x[j]  -->  t = x[tile]; y += w[j] * t[j]: tiles of the operand are loaded before they are used.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> StageStepAttr::namedLoops() const {
  return getLoop() ? SmallVector<StringRef>{getLoop().getValue()} : SmallVector<StringRef>{};
}

/// Where elements lie, how the reads of them are marked, and how the loop in whose rounds they are loaded.
static const struct Place {
  StringRef name;
  void (ReadOp::*markRead)(StringAttr);
  void (LoopOpInterface::*markLoop)(bool);
} kPlaces[] = {{"shared", &ReadOp::setStagedAttr, &LoopOpInterface::setStages},
               {"register", &ReadOp::setHeldAttr, &LoopOpInterface::setHolds}};

/// The read is of the operand, or of a copy that a nest named after it makes.
static bool reads(ReadOp read, Value operand, StringRef name) {
  if (read.getTensor() == operand)
    return true;
  auto copy = read.getTensor().getDefiningOp<WorkspaceOp>();
  return copy && llvm::any_of(copy->getUsers(), [&](Operation *user) {
    auto nest = isa<WriteOp>(user) ? user->getParentOfType<LoopOp>() : LoopOp();
    PathAttr path = nest ? outermostLoop(nest).getPathAttr() : PathAttr();
    return path && path.first(PathKind::Copy) == name;
  });
}

/// Marks the loop, and the reads whose elements are loaded at its rounds.
static LogicalResult markLoop(Nest &nest, Value operand, StringRef name, const Place &place, StringAttr at,
                              Location loc) {
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
      (read.*place.markRead)(at);
      found = true;
    });
    (cast<LoopOpInterface>(loop).*place.markLoop)(true);
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
  const Place *place = llvm::find_if(kPlaces, [&](const Place &known) { return known.name == getPlace(); });
  if (place == std::end(kPlaces))
    return emitError(loc) << "stage: no place '" << getPlace()
                          << "'; tiles lie in 'shared', single elements in a 'register'";
  if (getLoop())
    return markLoop(nest, operand, getOperand(), *place, getLoop(), loc);
  if (place != kPlaces)
    return emitError(loc) << "stage: a register is loaded in the rounds of a loop; name it";
  nest.getFunction().setArgAttr(operand.getArgNumber(), "lacis.staged", StringAttr::get(getContext(), getPlace()));
  return success();
}
