// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i: s[i]  -->  s[blockIdx.x]: the loop runs on a unit of a GPU.
#include "PositionUnits.h"

#include "lacis/Dialect/Lacis/IR/RaceStrategy.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

static constexpr StringRef kUnits[] = {"block.x",  "block.y",  "block.z", "thread.x",
                                       "thread.y", "thread.z", "warp",    "lane", "warpgroup"};
static constexpr int64_t kLanes = 32, kThreads = 1024, kGroups = 7; // one more group loads

SmallVector<StringRef> BindStepAttr::namedLoops() const { return {getLoop()}; }

/// What another loop of the nest is bound to leaves this unit free.
static LogicalResult requireFree(LoopOp loop, StringRef unit, Location loc) {
  LoopOp taken;
  bool threads = unit.starts_with("thread"), warps = unit == "warp" || unit == "lane";
  outermostLoop(loop)->walk([&](LoopOp other) {
    StringRef has = other == loop ? StringRef() : other.getBind().value_or("");
    bool clash = !unit.starts_with("block") && unit != "lane" && has == unit;
    clash |= threads && (has == "warp" || has == "lane");
    clash |= warps && has.starts_with("thread");
    if (clash)
      taken = other;
  });
  if (!taken)
    return success();
  return emitError(loc) << "bind: '" << unit << "' is not free: loop '" << taken.getName() << "' is bound to '"
                        << *taken.getBind() << "'";
}

/// The iterations of the loops of the nest that are bound to `unit`, together.
static int64_t boundTo(LoopOp loop, llvm::function_ref<bool(StringRef)> unit) {
  int64_t count = 1;
  outermostLoop(loop)->walk([&](LoopOp other) {
    if (unit(other.getBind().value_or("")))
      count *= other.getTrip().value_or(1);
  });
  return count;
}

/// The threads that the other loops of the nest are bound to, together.
static int64_t threadsOf(LoopOp loop) {
  return boundTo(loop, [](StringRef unit) { return unit.starts_with("thread") || unit == "warp" || unit == "lane"; });
}

/// The loops bound to lanes fill a warp, or a part of it that leaves a whole number for others.
static bool fitsLanes(LoopOp loop, std::optional<int64_t> trip) {
  int64_t taken = boundTo(loop, [](StringRef unit) { return unit == "lane"; });
  return trip && *trip > 0 && kLanes % (*trip * taken) == 0;
}

LogicalResult BindStepAttr::apply(Nest &nest, Location loc) const {
  if (std::string why = objectionToPositions(nest, getLoop()); !why.empty())
    return emitError(loc) << "bind: " << why;
  StringRef unit = getUnit();
  LoopOp scan = nest.find(getLoop());
  bool scans = scan && scan->hasAttr("lacis.scan") && !scan.getBind() && unit == "lane"; // the one mark it can have
  FailureOr<LoopOp> loop = scans ? scan : nest.requireFree(getLoop(), "bind", loc);
  if (failed(loop))
    return failure();
  if (!llvm::is_contained(kUnits, unit)) {
    auto diagnostic = emitError(loc) << "bind: no unit '" << unit << "'; units are ";
    llvm::interleaveComma(kUnits, diagnostic, [&](StringRef known) { diagnostic << "'" << known << "'"; });
    return diagnostic;
  }
  if (loop->getNumResults() != 0 && ((unit != "lane" && unit != "warp") || !combinerOf(*loop)))
    return emitError(loc) << "bind: loop '" << getLoop() << "' carries a sum; two units would race for it; only the "
                          << "lanes of a warp and the warps of a block bring one sum together; race with a strategy makes "
                          << "its iterations units: " << strategiesFor(*loop, nest) << " would do";
  std::optional<int64_t> trip = pinTrip(*loop);
  if (unit == "lane" && !fitsLanes(*loop, trip))
    return emitError(loc) << "bind: loop '" << getLoop() << "' does not run 32 times, nor a number of times that with the "
                          << "other loops on lanes divides 32; split it first";
  if (!unit.starts_with("block") && (!trip || *trip > kThreads))
    return emitError(loc) << "bind: loop '" << getLoop() << "' does not run a known number of times up to 1024, as '"
                          << unit << "' does; split it first";
  if (unit == "warpgroup" && *trip > kGroups)
    return emitError(loc) << "bind: loop '" << getLoop() << "' runs " << *trip << " times; a block has up to " << kGroups
                          << " warpgroups that multiply";
  if (failed(requireFree(*loop, unit, loc)))
    return failure();
  int64_t count = unit.starts_with("block") || unit == "warpgroup" ? 1 : *trip * threadsOf(*loop);
  if (count > kThreads)
    return emitError(loc) << "bind: " << count << " threads are more than a block has (" << kThreads << ")";
  loop->setBind(unit);
  (*loop)->setLoc(loc);
  return success();
}
