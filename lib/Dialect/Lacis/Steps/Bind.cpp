// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i: s[i]  -->  s[blockIdx.x]: the loop runs on a unit of a GPU.
#include "PositionUnits.h"

#include "lacis/Dialect/Lacis/IR/RaceStrategy.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

/// Those of a GPU.
static constexpr ParallelUnit kUnits[] = {
    ParallelUnit::BlockX,  ParallelUnit::BlockY,  ParallelUnit::BlockZ, ParallelUnit::ThreadX,  ParallelUnit::ThreadY,
    ParallelUnit::ThreadZ, ParallelUnit::Warp,    ParallelUnit::Lane,   ParallelUnit::Warpgroup};
static constexpr int64_t kLanes = 32, kThreads = 1024, kGroups = 7; // one more group loads

SmallVector<StringRef> BindStepAttr::namedLoops() const { return {getLoop()}; }

/// What another loop of the nest is bound to leaves this unit free.
static LogicalResult requireFree(LoopOp loop, ParallelUnit unit, Location loc) {
  LoopOp taken;
  outermostLoop(loop)->walk([&](LoopOp other) {
    if (other == loop || !other.getBind())
      return;
    ParallelUnit has = *other.getBind();
    bool clash = !isBlock(unit) && unit != ParallelUnit::Lane && has == unit;
    clash |= isThread(unit) && isOfWarps(has);
    clash |= isOfWarps(unit) && isThread(has);
    if (clash)
      taken = other;
  });
  if (!taken)
    return success();
  return emitError(loc) << "bind: '" << stringifyParallelUnit(unit) << "' is not free: loop '" << taken.getName()
                        << "' is bound to '" << stringifyParallelUnit(*taken.getBind()) << "'";
}

/// The iterations of the loops of the nest that are bound to `unit`, together.
static int64_t boundTo(LoopOp loop, llvm::function_ref<bool(ParallelUnit)> isCounted) {
  int64_t count = 1;
  outermostLoop(loop)->walk([&](LoopOp other) {
    if (other.getBind() && isCounted(*other.getBind()))
      count *= other.getTrip().value_or(1);
  });
  return count;
}

/// The threads that the other loops of the nest are bound to, together.
static int64_t threadsOf(LoopOp loop) {
  return boundTo(loop, [](ParallelUnit unit) { return isThread(unit) || isOfWarps(unit); });
}

/// The loops bound to lanes fill a warp, or a part of it that leaves a whole number for others.
static bool fitsLanes(LoopOp loop, std::optional<int64_t> trip) {
  int64_t taken = boundTo(loop, [](ParallelUnit unit) { return unit == ParallelUnit::Lane; });
  return trip && *trip > 0 && kLanes % (*trip * taken) == 0;
}

LogicalResult BindStepAttr::apply(Nest &nest, Location loc) const {
  if (std::string why = objectionToPositions(nest, getLoop()); !why.empty())
    return emitError(loc) << "bind: " << why;
  std::optional<ParallelUnit> named = symbolizeParallelUnit(getUnit());
  LoopOp scan = nest.find(getLoop());
  bool scans = scan && scan.getScan() && !scan.getBind() && named == ParallelUnit::Lane; // the one mark it can have
  FailureOr<LoopOp> loop = scans ? scan : nest.requireFree(getLoop(), "bind", loc);
  if (failed(loop))
    return failure();
  if (!named || !llvm::is_contained(kUnits, *named)) {
    auto diagnostic = emitError(loc) << "bind: no unit '" << getUnit() << "'; units are ";
    llvm::interleaveComma(kUnits, diagnostic,
                          [&](ParallelUnit known) { diagnostic << "'" << stringifyParallelUnit(known) << "'"; });
    return diagnostic;
  }
  ParallelUnit unit = *named;
  bool sharesSum = isOfWarps(unit) && (loop->getScan() || reductionOf(*loop));
  if (loop->getNumResults() != 0 && !sharesSum)
    return emitError(loc) << "bind: loop '" << getLoop() << "' carries a sum; two units would race for it; only the "
                          << "lanes of a warp and the warps of a block bring one sum together; race with a strategy makes "
                          << "its iterations units: " << strategiesFor(*loop, nest) << " would do";
  std::optional<int64_t> trip = pinTrip(*loop);
  if (unit == ParallelUnit::Lane && !fitsLanes(*loop, trip))
    return emitError(loc) << "bind: loop '" << getLoop() << "' does not run 32 times, nor a number of times that with the "
                          << "other loops on lanes divides 32; split it first";
  if (!isBlock(unit) && (!trip || *trip > kThreads))
    return emitError(loc) << "bind: loop '" << getLoop() << "' does not run a known number of times up to 1024, as '"
                          << getUnit() << "' does; split it first";
  if (unit == ParallelUnit::Warpgroup && *trip > kGroups)
    return emitError(loc) << "bind: loop '" << getLoop() << "' runs " << *trip << " times; a block has up to " << kGroups
                          << " warpgroups that multiply";
  if (failed(requireFree(*loop, unit, loc)))
    return failure();
  int64_t count = isBlock(unit) || unit == ParallelUnit::Warpgroup ? 1 : *trip * threadsOf(*loop);
  if (count > kThreads)
    return emitError(loc) << "bind: " << count << " threads are more than a block has (" << kThreads << ")";
  loop->setBind(unit);
  (*loop)->setLoc(loc);
  return success();
}
