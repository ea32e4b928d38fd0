// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rule from outside: strips of four rows in parallel, where a function asks for them.
#include "lacis/Schedules/Rule.h"

using namespace lacis;

static std::string take(ScheduleBuilder &schedule) {
  mlir::func::FuncOp function = schedule.getNest().getFunction();
  if (!function->hasAttr("outside.strips"))
    return "the function asks for no strips";
  std::string rows = schedule.getNest().mainChain().front().getName().str();
  schedule.split(rows, 4);
  schedule.bind(rows + "0", "parallel");
  return "";
}

static const bool registered = (registerRule("cpu", {"strips", kRankOfTiles, take}), true);
