// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which rules a target has, and the first of them that a nest and its user's steps leave.
#include "lacis/Schedules/Rule.h"

#include "Facts.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace lacis;

using FoundSteps = FailureOr<SmallVector<StepInterface>>;

namespace {
/// A rule and the beginning of the targets that it is one of; one without `take` says that there is none of its name.
struct Entry {
  std::string target;
  Rule rule;
};
} // namespace

static std::vector<Entry> &entries() {
  static std::vector<Entry> all;
  return all;
}

/// The rules of a target, in the order in which they are asked.
static SmallVector<const Rule *> rulesFor(StringRef target) {
  llvm::StringMap<const Entry *> best;
  for (const Entry &entry : entries()) {
    const Entry *&known = best[entry.rule.name];
    if (target.starts_with(entry.target) && (!known || known->target.size() < entry.target.size()))
      known = &entry;
  }
  SmallVector<const Rule *> found;
  for (const auto &[name, entry] : best)
    if (entry && entry->rule.take)
      found.push_back(&entry->rule);
  llvm::sort(found, [](const Rule *a, const Rule *b) { return std::tie(a->rank, a->name) < std::tie(b->rank, b->name); });
  return found;
}

namespace {
/// Keeps a nest as it was before a rule was asked that may take back what it did, and what was refused meanwhile.
class Trial {
public:
  explicit Trial(Nest &nest)
      : function(nest.getFunction()), before(cast<func::FuncOp>(function->clone())),
        listener(function.getContext(), [this](Diagnostic &diagnostic) {
          if (refused.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
            refused = diagnostic.str();
          return success();
        }) {}
  ~Trial() { before->erase(); }

  void takeBack() {
    function.getBody().takeBody(before.getBody());
    function->setAttrs(before->getAttrDictionary());
  }
  StringRef whatWasRefused() const { return refused; }

private:
  func::FuncOp function, before;
  std::string refused;
  ScopedDiagnosticHandler listener;
};
} // namespace

/// Steps that come first, and owners, stand before those of a rule.
static SmallVector<StepInterface> withFirst(const Recorded &recorded, ArrayRef<StepInterface> rest) {
  SmallVector<StepInterface> all;
  for (const RecordedStep &entry : recorded.steps)
    if (entry.step.comesFirst())
      all.push_back(entry.step);
  llvm::append_range(all, recorded.owners);
  llvm::append_range(all, rest);
  return all;
}

/// A loop that adds up a vector within one that is a vector, of which there is no form; or null.
static LoopOp sumInVector(Nest &nest) {
  LoopOp found;
  nest.getFunction().walk([&](LoopOp loop) {
    bool isSum = loop.getVectorize() && loop.getNumResults() != 0;
    for (auto outer = loop->getParentOfType<LoopOp>(); isSum && outer && !found;
         outer = outer->getParentOfType<LoopOp>())
      if (outer.getVectorize())
        found = loop;
  });
  return found;
}

/// Asks one rule. Answers why it does not apply, and then the nest is as it was, or nothing and the steps.
static std::string ask(const Rule &rule, Nest &nest, ArrayRef<RecordedStep> given, FoundSteps &steps) {
  std::optional<Trial> trial;
  if (!given.empty()) // else no step can contradict the rule
    trial.emplace(nest);
  ScheduleBuilder schedule(nest, given);
  std::string why = rule.take(schedule);
  bool isChanged = why.empty();
  if (why.empty() && trial)
    why = schedule.addTheRest();
  if (why.empty() && trial && rule.shareOut)
    rule.shareOut(schedule);
  bool isDone = succeeded(schedule.getResult());
  if (why.empty() && isDone && rule.check)
    isDone = succeeded(rule.check(nest));
  if (why.empty() && trial && !isDone)
    why = "its steps do not go together with those that were given: " + trial->whatWasRefused().str();
  if (LoopOp loop = why.empty() && trial ? sumInVector(nest) : LoopOp())
    why = ("loop '" + loop.getName() + "' would add up a vector within a vector").str();
  if (!why.empty() && trial && isChanged)
    trial->takeBack();
  if (why.empty())
    steps = isDone ? FoundSteps(llvm::to_vector(schedule.getSteps())) : FoundSteps(failure());
  return why;
}

/// The step changes the main nest: its coordinate loops, or what they read.
static bool touchesMain(StepInterface step, Nest &nest) {
  SmallVector<LoopOp> chain = nest.mainChain();
  SmallVector<StringRef> names = step.namedLoops();
  return names.empty() || llvm::any_of(chain, [&](LoopOp loop) { return llvm::is_contained(names, loop.getName()); });
}

/// Applies a step that may be meant for loops of a rule's: what it refuses is told with the rules that it has dropped.
static LogicalResult applyOwn(const RecordedStep &entry, Nest &nest) {
  func::FuncOp function = nest.getFunction();
  ScopedDiagnosticHandler tell(function.getContext(), [&](Diagnostic &diagnostic) {
    std::string text;
    llvm::raw_string_ostream(text) << entry.step;
    bool isOpen = llvm::any_of(entry.step.namedLoops(), [&](StringRef name) { return nest.findAll(name).empty(); });
    auto remarks = isOpen ? function->getAttrOfType<ArrayAttr>("lacis.remarks") : ArrayAttr();
    if (remarks)
      for (auto remark : remarks.getAsRange<StringAttr>())
        if (remark.getValue().contains(text))
          diagnostic.attachNote(entry.loc) << "no rule made its loops: " << remark.getValue();
    return failure(); // on to whoever shows it
  });
  return applyStep(entry, nest);
}

/// A loop that was rolled for tiles runs on nothing else: a step that keeps them off is refused with what they say.
static LogicalResult requireTiles(Nest &nest, const Recorded &recorded) {
  func::FuncOp function = nest.getFunction();
  LevelLoopOp round = rolledLoop(nest);
  if (!round || !rollsOnTiles(function) || isTensorized(nest))
    return success();
  const RecordedStep *given = llvm::find_if(recorded.steps, [](const RecordedStep &entry) { return !entry.step.comesFirst(); });
  if (given == recorded.steps.end())
    return success();
  InFlightDiagnostic error = emitError(given->loc) << given->step << ": loop '" << round.getName()
                                                   << "' runs on tiles, and cannot with this step; leave it out, or take "
                                                      "'keep' of a statement for a nest of each";
  if (auto remarks = function->getAttrOfType<ArrayAttr>("lacis.remarks"))
    for (auto remark : remarks.getAsRange<StringAttr>())
      error.attachNote(given->loc) << remark.getValue();
  return error;
}

/// The steps are a schedule of the user's own: they come first, as they are.
static FoundSteps completeOwn(Nest &nest, const Recorded &recorded, ArrayRef<const Rule *> rules) {
  auto countNests = [&] { return llvm::range_size(nest.getFunction().getBody().getOps<LoopOp>()); };
  bool untouched = true;
  for (const RecordedStep &entry : recorded.steps) {
    if (entry.step.comesFirst())
      continue;
    untouched &= !touchesMain(entry.step, nest);
    auto before = countNests();
    if (failed(applyOwn(entry, nest)))
      return failure();
    untouched &= countNests() == before;
  }
  if (failed(requireTiles(nest, recorded)))
    return failure();
  auto steps = llvm::map_to_vector(recorded.steps, [](const RecordedStep &entry) { return entry.step; });
  llvm::append_range(steps, recorded.owners);
  for (const Rule *rule : rules)
    if (rule->complete) {
      ScheduleBuilder schedule(nest);
      rule->complete(schedule, untouched);
      llvm::append_range(steps, schedule.getSteps());
      if (failed(schedule.getResult()) || (rule->check && failed(rule->check(nest))))
        return failure();
      break;
    }
  return steps;
}

/// Is the nest made of an expression, as rules take for granted? Of one that was written by hand they complete no part.
static bool isOfExpression(func::FuncOp function) {
  return llvm::any_of(llvm::seq(function.getNumArguments()),
                      [&](unsigned number) { return function.getArgAttr(number, "lacis.output") != nullptr; });
}

/// The first rule left completes; each one before it leaves a remark.
static FoundSteps completeByRules(Nest &nest, const Recorded &recorded) {
  SmallVector<RecordedStep> given;
  llvm::copy_if(recorded.steps, std::back_inserter(given),
                [](const RecordedStep &entry) { return !entry.step.comesFirst(); });
  SmallVector<const Rule *> rules = rulesFor(recorded.target);
  if (!given.empty() && !isOfExpression(nest.getFunction()))
    return completeOwn(nest, recorded, rules);
  for (const Rule *rule : rules) {
    FoundSteps steps = failure();
    std::string why = ask(*rule, nest, given, steps);
    if (why.empty())
      return failed(steps) ? steps : FoundSteps(withFirst(recorded, *steps));
    nest.remark(rule->name, why);
  }
  return completeOwn(nest, recorded, rules);
}

void lacis::registerRule(StringRef target, Rule rule) {
  entries().push_back({target.str(), std::move(rule)});
  registerDefaultSchedule(target, completeByRules);
}

void lacis::registerNoRule(StringRef target, StringRef name) {
  registerRule(target, {name.str(), /*rank=*/0, /*take=*/nullptr});
}
