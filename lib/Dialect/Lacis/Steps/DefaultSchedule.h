// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the default schedules of all targets ask of a nest.
#ifndef LACIS_LIB_DIALECT_LACIS_STEPS_DEFAULTSCHEDULE_H
#define LACIS_LIB_DIALECT_LACIS_STEPS_DEFAULTSCHEDULE_H

#include "lacis/Dialect/Lacis/Steps/Steps.h"

namespace lacis {

/// Makes steps one after another: each is applied at once, so that the next sees its loops.
class ScheduleBuilder {
public:
  ScheduleBuilder(Nest &nest, llvm::SmallVectorImpl<StepInterface> &steps) : nest(nest), steps(steps) {}

  void split(llvm::StringRef loop, int64_t factor);
  void upto(llvm::StringRef loop, int64_t most);
  void splitNnz(llvm::StringRef loop, int64_t factor);
  void apart(llvm::StringRef part);
  void precompute(llvm::StringRef part, FormatAttr layout);
  void reorder(llvm::ArrayRef<std::string> loops);
  /// `unit` of a GPU, or `parallel`; where iterations meet in one output they are brought together in their order.
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

  Nest &getNest() { return nest; }
  llvm::LogicalResult getResult() const { return llvm::success(ok); }

private:
  void add(mlir::Attribute step);

  Nest &nest;
  llvm::SmallVectorImpl<StepInterface> &steps;
  bool ok = true;
};

/// The letter whose elements become lanes: the innermost axis of the output that no encoded operand has.
std::string laneLetter(Nest &nest);
/// The letter of a loop: `i` of `i0`, `i10`.
llvm::StringRef letterOf(llvm::StringRef loop);
/// Dense operands (the output too) that the main nest, or that whose names begin with `prefix`, touches and that have
/// `letter`, but not as their last axis: (name, axis of the letter).
llvm::SmallVector<std::pair<std::string, unsigned>> operandsAcross(Nest &nest, llvm::StringRef letter,
                                                                   llvm::StringRef prefix = "");
/// The last part of the sum that the nest is over, where it lists its rows (`apart`); else nothing.
llvm::StringRef listedPart(Nest &nest);
/// How a target copies an operand to panels of lanes.
struct CopyRule {
  int64_t panel;           // lanes of a panel
  int64_t tile;            // neighbours of the last axis whose size is not constant that a thread copies
  llvm::StringRef unit;    // of the loops over tiles and panels, or empty: they stay open
  llvm::StringRef threads; // of the loop over the lanes of a panel, or empty
  int64_t vector = 1;      // of them, where that divides the size, that are read or written as one
  bool rows = false;       // the panels of one row lie side by side, not the rows of one panel
  bool tiles = false;      // of as many lanes as neighbours are transposed in registers
  bool inputs = false;     // these alone: the output is written where it lies
};
/// Lays the operands that have `lane` across their rows out in panels; for the nest whose names begin with `prefix`.
void scheduleCopies(ScheduleBuilder &schedule, llvm::StringRef lane, const CopyRule &rule, llvm::StringRef prefix = "");
/// The first steps of the nest for up to `most` vectors: those that stand together in its loop `lane`1, innermost.
/// Answers what the names of its loops begin with.
std::string openCase(ScheduleBuilder &schedule, llvm::StringRef lane, int64_t most);
/// The output has the pattern of an operand: the main nest runs over its entries.
bool isSampled(Nest &nest);
/// The innermost loop over a digit of a stored block, where the neighbours of a row of the block are neighbours in
/// every operand too; null elsewhere.
LoopOp blockLoop(Nest &nest);
/// The innermost loop that carries a sum, or null.
LoopOp sumLoop(Nest &nest);
/// The same for each letter that a step has vectorised: a vector reads neighbours.
void copyAcrossVectors(ScheduleBuilder &schedule, CopyRule rule);
/// Splits the lanes of the nest of loop `lane` into panels: the panels outermost, the lanes of one innermost.
void openLanes(ScheduleBuilder &schedule, llvm::StringRef lane, int64_t panel);
/// The nests of a function, those that copy an operand too: the loops perfectly nested in each.
llvm::SmallVector<llvm::SmallVector<LoopOp>> allChains(Nest &nest);
/// Binds the loops of a chain that have no mark and no constant size to `unit`.
void bindOpenLoops(ScheduleBuilder &schedule, llvm::ArrayRef<LoopOp> chain, llvm::StringRef unit);
/// No bound inside depends on the loop's coordinate, so that copies of its body can share the loops.
bool canJam(LoopOp loop);
/// What a warp multiplies by one instruction: nothing before sm_80.
enum class WarpProducts { None, Halves };

/// The default schedule of any GPU: loops on warps and lanes.
llvm::LogicalResult completeForCuda(Nest &nest, llvm::SmallVectorImpl<StepInterface> &steps, bool untouched);
/// Nests of their own for few vectors, where the main nest sums entries of one operand, or blocks that a warp
/// multiplies.
void scheduleFew(ScheduleBuilder &schedule, WarpProducts products = WarpProducts::Halves);
/// The nest that sums up a part before the others, as the part would run by itself.
void schedulePrecomputed(ScheduleBuilder &schedule, llvm::StringRef part);
/// The main nest on lanes, where the output has no vectors of its own; false where it sums no entries.
bool scheduleVector(ScheduleBuilder &schedule);
/// A step has asked for products of tiles: every loop has a place in them.
bool isTensorized(Nest &nest);
/// The loop over entries whose equal shares `split_nnz` can make of the rows `rows`, or null.
LevelLoopOp sharedEntries(LoopOp rows);
/// Is `fact` known of a letter of an encoded operand? `lacis.uneven`: some coordinates have far more entries than most;
/// `lacis.large`: so many coordinates that 32 vectors for each do not fit into the second-level cache of a GPU.
bool letterHas(Nest &nest, llvm::StringRef letter, llvm::StringRef fact);
/// Is it known of a letter that the output does not have?
bool summedHas(Nest &nest, llvm::StringRef fact);
/// Bytes of one element of the accumulator's output.
unsigned outputBytes(Nest &nest);

} // namespace lacis

#endif // LACIS_LIB_DIALECT_LACIS_STEPS_DEFAULTSCHEDULE_H
