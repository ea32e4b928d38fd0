// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a rule makes its steps: one after another, each applied to the nest as it is made.
#ifndef LACIS_SCHEDULES_SCHEDULEBUILDER_H
#define LACIS_SCHEDULES_SCHEDULEBUILDER_H

#include "lacis/Dialect/Lacis/Steps/Steps.h"

namespace lacis {

/// How iterations of the loop that meet in an element of the output are brought together on units where no step says it:
/// in their order where parts of rows are kept; atomically on a GPU where they add to the output and timing may decide.
std::string strategyFor(LoopOp loop, Nest &nest, llvm::StringRef unit);

/// Records steps one after another. Each step is applied when it is recorded, so the next one sees the loops that it
/// made. One that a user gave takes the place of the rule's where the two unify.
class ScheduleBuilder {
public:
  ScheduleBuilder(Nest &nest, llvm::ArrayRef<RecordedStep> given = {}) : nest(nest), given(given), used(given.size()) {}

  /// The step of this verb that a user gave, by which a rule fills its holes, or null: `isWanted` says which.
  template <typename Step, typename Predicate> Step findGiven(Predicate isWanted) const {
    for (const RecordedStep &entry : given)
      if (auto step = llvm::dyn_cast<Step>(entry.step); step && isWanted(step))
        return step;
    return {};
  }
  /// The rule cannot take this step of the user's.
  void refuse(mlir::Attribute step, const llvm::Twine &why);

  void split(llvm::StringRef loop, int64_t factor);
  /// One loop over the rounds of neighbours, the first of which is outside; answers its name.
  std::string fuse(llvm::ArrayRef<std::string> loops);
  void upto(llvm::StringRef loop, int64_t most);
  void splitNnz(llvm::StringRef loop, int64_t factor);
  /// So many parts of each row.
  void splitParts(llvm::StringRef loop, int64_t parts);
  void apart(llvm::ArrayRef<llvm::StringRef> parts, std::optional<int64_t> least = std::nullopt);
  void precompute(llvm::StringRef part, FormatAttr layout);
  void reorder(llvm::ArrayRef<std::string> loops);
  /// Binds the loop to `unit` of a GPU, or makes it parallel where `unit` is `parallel`. Iterations that meet in an element
  /// of the output have the strategy that is taken without being asked for.
  void bind(llvm::StringRef loop, llvm::StringRef unit);
  void race(llvm::StringRef loop, llvm::StringRef strategy);
  void vectorize(llvm::StringRef loop, int64_t width);
  void jam(llvm::StringRef loop);
  void unroll(llvm::StringRef loop, int64_t factor, std::optional<int64_t> sums = std::nullopt);
  void relayout(llvm::StringRef operand, FormatAttr layout);
  void computeAt(llvm::StringRef operand, llvm::StringRef loop);
  void regroup(llvm::StringRef operand, FormatAttr layout, std::optional<int64_t> capacity);
  void balance(llvm::StringRef loop, int64_t raster, int64_t groups, std::optional<int64_t> within = std::nullopt,
               std::optional<int64_t> cut = std::nullopt, std::optional<int64_t> parts = std::nullopt);
  void stage(llvm::StringRef operand, llvm::StringRef place);
  void pipeline(llvm::StringRef loop, int64_t stages);
  void tensorize(llvm::ArrayRef<std::string> loops, llvm::StringRef kind = "");

  /// Records a step of any verb.
  void add(mlir::Attribute step);

  Nest &getNest() { return nest; }
  llvm::ArrayRef<StepInterface> getSteps() const { return steps; }
  llvm::LogicalResult getResult() const { return llvm::success(ok); }

  /// Records what the user gave besides, of loops that the rule has left free; answers why the rule cannot take all that
  /// was given, or nothing.
  std::string addTheRest();

private:
  /// Applies a step of the user's in the place of the rule's; where it cannot be, the rule is refused, and goes on.
  bool addGiven(StepInterface step, const RecordedStep &entry);
  std::string objectionToRest(const RecordedStep &entry);

  Nest &nest;
  llvm::ArrayRef<RecordedStep> given;
  llvm::SmallVector<bool> used; // of `given`: stands in the place of a step of the rule's
  llvm::SmallVector<StepInterface> steps;
  std::string refusal;
  bool ok = true;
};

} // namespace lacis

#endif // LACIS_SCHEDULES_SCHEDULEBUILDER_H
