// SPDX-License-Identifier: Apache-2.0
/// \file
/// Default schedules are rules: conditions with reasons, and a template of steps with holes, which steps of a user's fill.
#ifndef LACIS_SCHEDULES_RULE_H
#define LACIS_SCHEDULES_RULE_H

#include "lacis/Schedules/ScheduleBuilder.h"

#include <functional>

namespace lacis {

/// One way to run a nest. A file of lib/Schedules, or of a folder outside, registers it; nothing else names it.
struct Rule {
  std::string name; // as remarks call it
  int rank;         // rules of lower ranks are asked first
  /// Records the steps of the template, or answers why the nest is not for them, and then leaves it as it was. Steps that
  /// a user gave stand in the template's place where the two unify (see `StepInterface`).
  std::function<std::string(ScheduleBuilder &schedule)> take;
  /// Completes a schedule of a user's own, which no rule could take: its steps are applied. `untouched`: none of them has
  /// changed a coordinate loop of the main nest or what it reads. Null: the rule completes none.
  std::function<void(ScheduleBuilder &schedule, bool untouched)> complete = nullptr;
  /// Shares out the nests before and behind the main one that steps of a user's, which the rule left free, have made.
  /// Null: one unit runs them.
  std::function<void(ScheduleBuilder &schedule)> shareOut = nullptr;
  /// Tells what the target cannot run of a schedule that is complete, or is null.
  std::function<llvm::LogicalResult(Nest &nest)> check = nullptr;
};

/// Ranks of the rules here; those outside may stand between.
inline constexpr int kRankOfTiles = 100, kRankOfLoops = 200;

/// The rule is one of targets whose names begin so: a family (`cpu`, `cuda`) or an architecture (`cuda:sm_90a`). Of rules
/// with one name a target has that which is registered under the longest beginning of its own.
void registerRule(llvm::StringRef target, Rule rule);
/// Targets whose names begin so have no rule of that name.
void registerNoRule(llvm::StringRef target, llvm::StringRef name);

} // namespace lacis

#endif // LACIS_SCHEDULES_RULE_H
