// SPDX-License-Identifier: Apache-2.0
/// \file
/// The coordinates that a nest knows, and the loops that find the others in the levels of an operand.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_LEVELWALK_H
#define LACIS_LIB_TRANSFORMS_LOOPS_LEVELWALK_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

/// One letter of the expression: its size, its whole coordinate, and the loops over its digits.
struct Letter {
  std::string name;
  mlir::Value size;
  mlir::Value coordinate;                                       // null until every digit is known
  llvm::SmallVector<std::pair<Digit, mlir::Value>> digits;      // digit.axis is not used

  /// The value of (coordinate floordiv div) mod mod, by the loop that runs over it where one does.
  mlir::Value digit(mlir::OpBuilder &b, mlir::Location loc, int64_t div, int64_t mod) const;
  /// Sums the digits to the coordinate.
  void compose(mlir::OpBuilder &b, mlir::Location loc);
};

/// Walks the levels of one encoded operand: locates what is known, loops over what is not.
class LevelWalk {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  using Body = llvm::function_ref<Values(mlir::OpBuilder &, mlir::Value position, mlir::ValueRange carried)>;

  /// `axes[a]` is the letter of the operand's axis `a`; letters without coordinate are found by the walk.
  LevelWalk(mlir::Location loc, mlir::Value tensor, llvm::ArrayRef<Letter *> axes);

  /// Emits the loops and returns the carried values after them. A walk that carries nothing runs the
  /// positions of the first level in a loop of known size, which can be bound to parallel units.
  Values emit(mlir::OpBuilder &b, mlir::ValueRange carried, Body body);
  /// How the loops bring together what they carry.
  void setReduction(std::optional<Reduction> kind) { reduce = kind; }
  /// The nest knows the coordinate of binding `number`.
  void setBound(unsigned number, const Letter &letter) { bound[number] = letter; }
  /// The same from `level` on, under `parent`, where a nest has found that position; and over a batch that it does not
  /// know.
  Values emitBelow(mlir::OpBuilder &b, unsigned level, mlir::Value parent, mlir::ValueRange carried, Body body);
  /// What a nest finds at position `number` of the first level (of the pattern), of which there are `getRoom`, if there
  /// is such a one; of the levels before `end` the body gets the position.
  void emitListed(mlir::OpBuilder &b, mlir::Value number, unsigned end, Body body);
  mlir::Value getRoom(mlir::OpBuilder &b);
  /// The same at a position of the first level, which is there and no padding, below `lo`, with carried values.
  Values emitAt(mlir::OpBuilder &b, mlir::Value lo, mlir::Value position, mlir::ValueRange carried, Body body);
  LoopName loopName(unsigned level) const;
  /// What a loop over the digit alone is called, without the path of a part.
  std::string nameOf(Digit digit) const;

private:
  Values emitLevel(mlir::OpBuilder &b, unsigned level, mlir::Value parent, mlir::ValueRange carried, Body body);
  Values emitLevelLoop(mlir::OpBuilder &b, unsigned level, mlir::Value parent, mlir::ValueRange carried, Body body);
  void emitRoot(mlir::OpBuilder &b, Body body);
  mlir::Value locate(mlir::OpBuilder &b, unsigned level, mlir::Value parent, mlir::ValueRange digits);
  mlir::Value slotAt(mlir::OpBuilder &b, mlir::Value place);
  mlir::Value zero(mlir::OpBuilder &b);
  /// The letters that follow from bindings with what is known now; the condition that they lie in their axes.
  mlir::Value solve(mlir::OpBuilder &b, llvm::SmallVectorImpl<std::pair<Letter *, Letter>> &before);
  mlir::Value storedCoordinate(mlir::OpBuilder &b, unsigned number);
  void nameBindings();
  void sizeBindings(mlir::OpBuilder &b);
  Values emitDense(mlir::OpBuilder &b, unsigned level, unsigned digit, mlir::Value parent, Values &known,
                   mlir::ValueRange carried, Body body);
  Values emitFound(mlir::OpBuilder &b, unsigned level, mlir::ValueRange digits, mlir::Value position,
                   mlir::ValueRange carried, Body body);
  mlir::Value noteDigits(mlir::OpBuilder &b, unsigned level, mlir::ValueRange digits,
                         llvm::SmallVectorImpl<std::pair<Letter *, Letter>> &before);
  unsigned digitsOf(unsigned axis) const;

  mlir::Location loc;
  mlir::Value tensor;
  FormatAttr format;
  llvm::SmallVector<Letter *> axes;  // and those of the bindings
  llvm::SmallVector<Letter, 0> bound; // of the bindings
  std::optional<Reduction> reduce;
  unsigned first;                     // level of the pattern
  unsigned below;                     // the level of the pattern that the walk begins at
  unsigned end;                       // the level that the body is under
};

/// The path of the loops over a tensor that is, or walks, a part of a sum; else null.
PathAttr pathOf(mlir::Value tensor);

/// `value < size` unless the digits cannot exceed the size.
bool needsGuard(mlir::Value size, int64_t div, unsigned count);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_LEVELWALK_H
