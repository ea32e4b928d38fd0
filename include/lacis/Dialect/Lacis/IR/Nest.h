// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finding loops by name in a nest, and what is known about their sizes.
#ifndef LACIS_DIALECT_LACIS_IR_NEST_H
#define LACIS_DIALECT_LACIS_IR_NEST_H

#include "lacis/Dialect/Lacis/IR/Reduction.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::tensor {
class DimOp;
} // namespace mlir::tensor

namespace lacis {

/// A view of the loop nests of one function: the steps of a schedule work on it.
class Nest {
public:
  explicit Nest(mlir::func::FuncOp function) : function(function) {}

  mlir::func::FuncOp getFunction() const { return function; }
  /// The loop of that name, or null.
  LoopOp find(llvm::StringRef name) const;
  /// Every loop of that name, over coordinates or positions.
  llvm::SmallVector<mlir::Operation *> findAll(llvm::StringRef name) const;
  /// The names of all loops, outermost first.
  llvm::SmallVector<llvm::StringRef> names() const;
  /// `find`, or an error at `loc`.
  mlir::FailureOr<LoopOp> require(llvm::StringRef name, llvm::StringRef step, mlir::Location loc) const;
  /// `require` of a loop without a mark.
  mlir::FailureOr<LoopOp> requireFree(llvm::StringRef name, llvm::StringRef step, mlir::Location loc) const;
  /// The function's argument called `name` (`lacis.name`), or null.
  mlir::Value findOperand(llvm::StringRef name) const;
  /// The main nest, not one that copies an operand: its loop at the top, and the loops perfectly nested in it.
  llvm::SmallVector<LoopOp> mainChain() const;
  /// The parts of the sum that the nest is over, in their order; their own loops have them in their paths.
  llvm::SmallVector<llvm::StringRef> parts() const;
  /// A name that no loop has means the loop of this part from now on; of none again for an empty one.
  void setPart(llvm::StringRef name) { part = name; }
  /// Records in `lacis.remarks` why a rule of the default schedule, which takes `step`, did not apply.
  void remark(llvm::StringRef step, const llvm::Twine &why);

private:
  bool isCalled(mlir::Operation *loop, llvm::StringRef name) const;

  llvm::StringRef part;
  mutable mlir::func::FuncOp function;
};

/// A nest of its own for small sizes of a letter (`upto`): the loops' paths begin with it.
struct Case {
  llvm::StringRef name;
  unsigned argument, axis; // whose size decides
  int64_t above, upto;     // -1: no limit
};

/// The case that the nest of `outermost` is for, or nothing where it runs for every size. The main nest and the copies
/// of its operands are for what the others leave.
std::optional<Case> caseOf(LoopOp outermost);

/// A loop that belongs to this part of a sum, or to the nest of its rows.
bool isInPart(mlir::Operation *op, llvm::StringRef part);

/// The nest of the rows that a part of a sum lists, which shares the launch of the nest for the others (`apart`).
bool isApart(LoopOp outermost);

/// The names of the nests for rows that lie in one part each (`own`), as the function's loops begin with them. They come in
/// groups, of which one adds to what another left. The nest without a name ends the last group.
llvm::SmallVector<llvm::StringRef> rowClasses(mlir::func::FuncOp function);
/// Those that may join the launch of the last of their group.
llvm::SmallVector<llvm::StringRef> joiningClasses(mlir::func::FuncOp function);

/// The last of the nests that may share the launch of `nest`: what follows it in time stands behind that.
LoopOp lastBeside(LoopOp nest);

/// The nests for rows that lie in one part, of the case that `last` is for; `last` is the one that the others may join.
llvm::SmallVector<LoopOp> classNests(LoopOp last);

/// `outermost` and the loops perfectly nested in it, outermost first.
llvm::SmallVector<LoopOp> perfectChain(LoopOp outermost);

/// `loop`, which carries a sum, and the loops around and in it that do nothing but carry the same sum on,
/// outermost first.
llvm::SmallVector<LoopOp> carriedChain(LoopOp loop);

/// The coordinates of a loop over positions are known in any order.
bool isStateless(LevelLoopOp loop);

/// The loop at the top of the nest that `loop` is in.
LoopOp outermostLoop(LoopOp loop);

/// Where a size made of the bound of `loop` stands: before the nest, or before the loop where the bound is made inside.
mlir::Operation *placeForSizes(LoopOp loop);

/// What is said of a loop whose iterations meet in one element of the output (`meets`, `race`) is said
/// of the loops that take its place.
void passOnRaces(LoopOp from, LoopOp to);

/// A mark says how the loop runs: bound, vectorised, jammed, unrolled, in work lists, or as a side of a tile.
bool isMarked(LoopOp loop);

/// The axis of its tensor that a size is of; nothing where a text names it by no constant, or names one that is not there.
std::optional<unsigned> axisOf(mlir::tensor::DimOp size);

/// A known divisor of a size: a constant itself, or the divisibility class of an argument's dimension.
int64_t knownDivisor(mlir::Value size);

/// A size that is a constant, or that the schedule specialises.
std::optional<int64_t> knownSize(mlir::Value size);

/// The trip count when its size is known; the loop's bound is that constant from now on.
std::optional<int64_t> pinTrip(LoopOp loop);

/// The name of digit `digit` of `count` digits of the axis `letter`: i, or i0 i1, or i0 i10 i11.
std::string digitName(llvm::StringRef letter, unsigned digit, unsigned count);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_NEST_H
