// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the lowering of levels relies on, beyond what operations verify of themselves.
#include "VerifyAccesses.h"

#include "lacis/Dialect/Lacis/IR/Nest.h"

using namespace mlir;
using namespace lacis;

/// A scalar of that type, or a vector of one dimension.
static bool isRun(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return getElementTypeOrSelf(type) == element && (!vector || (vector.getRank() == 1 && !vector.isScalable()));
}

static LogicalResult verifyTensor(Operation *op, Value tensor, func::FuncOp function) {
  auto argument = dyn_cast<BlockArgument>(tensor);
  bool known = argument ? argument.getOwner() == &function.getBody().front()
                        : isa<PartOp, WalkOp, RegroupOp, BalanceOp, WorkspaceOp>(tensor.getDefiningOp());
  return known ? success()
               : op->emitError("'") << op->getName() << "': a tensor is an argument of the kernel, or part, walk or layout "
                                    << "of one, or a workspace";
}

/// By a method of its own, by a position for each coordinate, or by a search.
static bool canFind(LevelAttr level) {
  CoordinateInterface coordinate = level.getCoordinate();
  return level.hasCode() && (coordinate.canFind() || (level.getExtent().coversDomain() && coordinate.isImplicit()) ||
                             (coordinate.canSeek() && coordinate.isStateless()));
}

/// Why the level cannot do what the operation asks of it, or nothing.
static StringRef objectionTo(Operation *op, LevelAttr level) {
  ExtentInterface extent = level.getExtent();
  if (isa<LocateOp>(op))
    return extent.coversDomain() || extent.isLink() ? "" : "has no position for each coordinate, and is no link";
  if (isa<OwnerOp>(op))
    return extent.hasOwner() ? "" : "does not tell the parent of a position";
  if (isa<PositionsOp>(op))
    return level.getPositionsArray().empty() ? "has no array with an element for each position" : "";
  if (isa<FindOp>(op))
    return canFind(level) ? "" : "has no way to find a coordinate";
  if (isa<SeekOp>(op) && !level.getCoordinate().canSeek())
    return "has no order of coordinates to seek in";
  if (isa<CoordinateOp>(op) && !level.getCoordinate().isStateless())
    return "knows a coordinate by those before it: walk it in order";
  bool isCode = isa<BoundsOp>(op)       ? extent.hasCode()
                : isa<CoordinateOp>(op) ? level.getCoordinate().hasCode()
                                        : level.hasCode();
  return isCode ? "" : "has no code yet";
}

static LogicalResult verifyLevelOf(Operation *op) {
  auto number = op->getAttrOfType<IntegerAttr>("level");
  if (!number || !isa<LevelLoopOp, LocateOp, PositionsOp, BoundsOp, OwnerOp, SeekOp, FindOp, CoordinateOp>(op))
    return success();
  LevelAttr level = formatOf(op->getOperand(0)).getLevels()[number.getInt()];
  StringRef why = objectionTo(op, level);
  return why.empty() ? success()
                     : op->emitError("'") << op->getName() << "': level " << number.getInt() << " of kind '"
                                          << level.getKindName() << "' " << why;
}

/// Values are of the type of the elements, one or a run of them.
static LogicalResult verifyValue(Operation *op) {
  auto fits = [&](Value tensor, Type type) {
    return formatOf(tensor) && isRun(type, cast<RankedTensorType>(tensor.getType()).getElementType());
  };
  Type bit = IntegerType::get(op->getContext(), 1);
  bool isGood = true;
  if (auto value = dyn_cast<ValueOp>(op))
    isGood = fits(value.getTensor(), value.getType());
  else if (auto set = dyn_cast<SetOp>(op))
    isGood = fits(set.getTensor(), set.getValue().getType()) && (!set.getCount() || isa<VectorType>(set.getValue().getType()));
  else if (auto entry = dyn_cast<EntryOp>(op))
    isGood = formatOf(entry.getTensor()) && isRun(entry.getType(), bit);
  else if (auto lanes = dyn_cast<LanesOp>(op))
    isGood = isa<VectorType>(lanes.getType()) && isRun(lanes.getType(), bit);
  else if (auto read = dyn_cast<ReadOp>(op))
    isGood = isRun(read.getType(), getElementTypeOrSelf(read.getType()));
  else if (auto write = dyn_cast<WriteOp>(op))
    isGood = isRun(write.getValue().getType(), getElementTypeOrSelf(write.getValue().getType()));
  else if (auto dim = dyn_cast<tensor::DimOp>(op))
    isGood = axisOf(dim).has_value();
  return isGood ? success()
                : op->emitError("'") << op->getName() << "' needs a tensor that has such elements and axes, one at a time "
                                     << "or side by side in one vector";
}

/// Which copy of the values is meant is said where there are several, and nowhere else.
static LogicalResult verifyCopy(Operation *op) {
  auto value = dyn_cast<ValueOp>(op);
  auto set = dyn_cast<SetOp>(op);
  if (!value && !set)
    return success();
  bool names = static_cast<bool>(value ? value.getBatch() : set.getBatch());
  FormatAttr format = formatOf(value ? value.getTensor() : set.getTensor());
  if (names == (format.getNumBatchLevels() != 0))
    return success();
  return op->emitError("'") << op->getName()
                            << "' says which copy of the values it means, by 'batch', where levels of kind "
                            << "'batch' make several, and nowhere else";
}

LogicalResult lacis::verifyAccesses(func::FuncOp function) {
  auto found = function.walk([&](Operation *op) -> WalkResult {
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()) && failed(verifyTensor(op, operand, function)))
        return WalkResult::interrupt();
    return failure(failed(verifyLevelOf(op)) || failed(verifyValue(op)) || failed(verifyCopy(op)));
  });
  return failure(found.wasInterrupted());
}
