// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the default schedules of all targets ask of a nest.
#ifndef LACIS_LIB_SCHEDULES_FACTS_H
#define LACIS_LIB_SCHEDULES_FACTS_H

#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Dialect/Lacis/Steps/Conditions.h"
#include "lacis/Schedules/ScheduleBuilder.h"

namespace lacis {

/// The letter whose elements become lanes. It is the innermost axis of the output that no operand with a format has; nothing where
/// no loop runs over it whole.
std::string laneLetter(Nest &nest);
/// The dense operands that have `letter` as an axis, but not as the last one: (name, axis of the letter). The output is
/// one of them. They are those of the main nest, or of the nest whose loop names begin with `prefix`.
llvm::SmallVector<std::pair<std::string, unsigned>> operandsAcross(Nest &nest, llvm::StringRef letter,
                                                                   llvm::StringRef prefix = "");
/// How a target copies an operand to panels of lanes.
struct CopyRule {
  int64_t panel;           // lanes in a panel
  int64_t tile;            // elements a thread copies, along the last axis whose size is not constant
  llvm::StringRef unit;    // what the loops over tiles and panels are bound to; empty leaves them unbound
  llvm::StringRef threads; // what the loop over the lanes of a panel is bound to; empty leaves it unbound
  int64_t vector = 1;      // elements in one load or store, if the axis's size is a multiple
  bool rows = false;       // the panels of one row are contiguous; else the rows of one panel are
  bool tiles = false;      // tiles of as many lanes as elements are transposed in registers
  bool inputs = false;     // only inputs are copied; the output is written in its own layout
};
/// Copies the operands whose rows `lane` runs across to panels, for the nest whose loop names begin with `prefix`.
void scheduleCopies(ScheduleBuilder &schedule, llvm::StringRef lane, const CopyRule &rule, llvm::StringRef prefix = "");
/// Makes a nest for up to `most` vectors, whose innermost loop `lane`1 runs over them. Returns the prefix of its loops'
/// names.
std::string openCase(ScheduleBuilder &schedule, llvm::StringRef lane, int64_t most);
/// Does the main nest run over the rows that an operand lists? It writes to the output itself.
bool runsOverList(Nest &nest);
/// A loop of the main nest whose rounds walk the same positions and read and write neighbours of everything, as rows do on
/// diagonals; or null.
LoopOp neighbourLoop(Nest &nest);
/// Rows that an operand lists, and zeros between them, in strips of the list, on a CPU: for an output without other letters.
void scheduleList(ScheduleBuilder &schedule);
/// Schedules the nest that writes the rows which an operand does not list, for a CPU: runs of neighbours, in vectors.
void scheduleUnlisted(ScheduleBuilder &schedule);
/// What the loops over the rows that several shares of an operand meet begin with (`i_j.`), or nothing (see own).
std::string edgesOfShares(Nest &nest);
/// The innermost loop over a digit of a stored block, or null. Its consecutive iterations read consecutive elements of
/// every operand.
LoopOp blockLoop(Nest &nest);
/// The innermost loop that carries a sum, or null.
LoopOp sumLoop(Nest &nest);
/// A nest for the rows of a sum that lie in one part.
struct RowClass {
  std::string prefix, row, entries;
  std::optional<int64_t> longest; // entries of a row, where the part has a limit
};
/// The nests of the main case, or of that whose names begin with `prefix`; none unless each sums the entries of a row in
/// one loop.
llvm::SmallVector<RowClass> classesOf(Nest &nest, llvm::StringRef prefix = "");
/// Few of many rows are long (`lacis.skewed`), and a nest of their own pays: for a vector, and for columns that 32 is the
/// largest known divisor of, those that were measured.
bool isSkewed(Nest &nest);
/// Gives the long rows of such an operand a nest of their own on a GPU, in shares of their entries.
void scheduleSkewed(ScheduleBuilder &schedule);
/// Schedules row classes for a GPU, in one launch; false where there are none.
bool scheduleClasses(ScheduleBuilder &schedule);
/// Rows on warps of a block of so many or on parts of a warp; the entries of a row on its lanes. Each of them may have
/// several lanes already.
void scheduleLanes(ScheduleBuilder &schedule, const std::string &rows, const std::string &entries, int64_t lanes,
                   int64_t taken = 1, int64_t warps = 4);
/// A loop over the warps of a block, or over `share` parts of each warp.
void bindWarps(ScheduleBuilder &schedule, std::string name, int64_t share);
/// Lanes for a row: many rows are short ones.
int64_t lanesFor(Nest &nest, llvm::StringRef rows);
/// Does so for each letter that a step has vectorized, because a vector load reads consecutive elements.
void copyAcrossVectors(ScheduleBuilder &schedule, CopyRule rule);
/// Splits loop `lane` into panels. The loop over panels becomes the outermost, the loop over the lanes of one panel the
/// innermost.
void openLanes(ScheduleBuilder &schedule, llvm::StringRef lane, int64_t panel);
/// The perfectly nested loops of each nest of the function. Nests that copy an operand are included.
llvm::SmallVector<llvm::SmallVector<LoopOp>> allChains(Nest &nest);
/// Those of the nests that write what sums begin with, and that bring together what units have left.
llvm::SmallVector<llvm::SmallVector<LoopOp>> chainsAround(Nest &nest);
/// Binds those loops of a chain to `unit` that no step has marked and whose trip count is not constant.
void bindOpenLoops(ScheduleBuilder &schedule, llvm::ArrayRef<LoopOp> chain, llvm::StringRef unit);
/// Its iterations meet nowhere, or a strategy that may be taken without being asked for brings them together.
bool canBind(Nest &nest, LoopOp loop, llvm::StringRef unit);
/// Can the loop be jammed? No bound of an inner loop depends on its coordinate then.
bool canJam(LoopOp loop);
/// The element types that one warp's matrix instruction multiplies. There is none before sm_80.
enum class WarpProducts { None, Halves };

/// Makes nests for small batches. The main nest must sum over entries of one operand, or over stored blocks that a warp
/// can multiply.
void scheduleFew(ScheduleBuilder &schedule, WarpProducts products = WarpProducts::Halves);
/// Schedules the nest that computes a part of a sum before the others, as if the part were the only operand.
void schedulePrecomputed(ScheduleBuilder &schedule, llvm::StringRef part);
/// Binds the sum of the main nest to lanes, for outputs without a dense axis. Returns false if it sums no entries.
bool scheduleVector(ScheduleBuilder &schedule);
/// The loop of a chain of statements that `roll` made, or null.
LevelLoopOp rolledLoop(Nest &nest);
/// The loop over entries that `split_nnz` can cut into equal shares, inside of the loop `rows`; or null.
LevelLoopOp sharedEntries(LoopOp rows);
/// Bytes of one element of the accumulator's output.
unsigned outputBytes(Nest &nest);

} // namespace lacis

#endif // LACIS_LIB_SCHEDULES_FACTS_H
