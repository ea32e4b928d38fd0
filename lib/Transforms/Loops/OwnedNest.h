// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest whose loops an operand's levels drive: what its forms share.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_OWNEDNEST_H
#define LACIS_LIB_TRANSFORMS_LOOPS_OWNEDNEST_H

#include "RunningSum.h"

#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

class OwnedNest {
public:
  using Letters = llvm::MutableArrayRef<Letter>;

  /// `letters` are those of the output, which becomes `root`'s result.
  OwnedNest(mlir::linalg::GenericOp root, mlir::OpOperand &operand, Letters letters, mlir::BlockArgument output,
            const llvm::StringMap<mlir::Value> &sizes);
  /// The nest makes what others add to, or adds to what they have left; not an element of the output.
  void setRunning(RunningSum *sum, bool adds) { running = sum, addsToRunning = adds; }

protected:
  /// The digits of a letter that the operand's levels have, most significant first; the letter itself where they have none.
  llvm::SmallVector<Digit> digitsOf(const Letter &letter) const;
  /// The same of a name of the format.
  llvm::SmallVector<Digit> digitsOf(unsigned name) const;
  bool isOf(Digit digit, const Letter &letter) const { return digit.axis < axes.size() && axes[digit.axis] == &letter; }
  mlir::Value sizeOf(mlir::OpBuilder &b, Digit digit, const Letter &letter);
  /// One loop more, inside of the others.
  LoopOp openLoop(mlir::OpBuilder &b, const LoopName &name, mlir::Value size);
  void closeLoops();
  /// Where the coordinates of the letters are known whose digits all are, inside of their guards.
  mlir::OpBuilder compose(mlir::OpBuilder inner, llvm::function_ref<bool(const Letter &)> isKnown);
  mlir::OpBuilder compose(mlir::OpBuilder inner, Letter &letter);
  /// Writes the element at the letters' coordinates; answers its value.
  llvm::FailureOr<mlir::Value> write(mlir::OpBuilder &b, Expression &expression);
  /// for i: y[i] = finish(init), which rows with entries write over; an output of zeros needs no nest for that.
  llvm::LogicalResult fillAll(mlir::OpBuilder &b);
  /// The letters' coordinates, of which the expression knows the digits.
  llvm::SmallVector<mlir::Value> coordinates(Expression &expression);

private:
  llvm::SmallVector<Digit> sorted(llvm::SmallVector<Digit> digits) const;

protected:
  mlir::Location loc;
  mlir::linalg::GenericOp root, product;
  mlir::OpOperand &operand;
  mlir::Value tensor;
  FormatAttr format;
  Letters letters;
  mlir::BlockArgument output;
  const llvm::StringMap<mlir::Value> &sizes;
  llvm::SmallVector<Letter> summed;   // letters of the operand that the output lacks
  llvm::SmallVector<Letter *> axes;   // by axis of the operand
  llvm::SmallVector<unsigned> owned;  // the axes that the output has
  llvm::SmallVector<LoopOp> loops;

private:
  RunningSum *running = nullptr;
  bool addsToRunning = false;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_OWNEDNEST_H
