// SPDX-License-Identifier: Apache-2.0
/// \file
/// A sum to which nests add one after another, in memory: the output itself, or a workspace where that is rounded.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_RUNNINGSUM_H
#define LACIS_LIB_TRANSFORMS_LOOPS_RUNNINGSUM_H

#include "Expression.h"

namespace lacis {

/// y[i] = init + a;  y[i] = y[i] + b;  y[i] = finish(y[i])
class RunningSum {
public:
  /// `first` to `last` are the products of a chain, each of which begins with the result of the one before.
  RunningSum(mlir::linalg::GenericOp root, mlir::linalg::GenericOp first, mlir::linalg::GenericOp last,
             mlir::BlockArgument output);
  /// Makes the workspace, if there is one, for an output with these letters.
  void prepare(mlir::OpBuilder &b, llvm::ArrayRef<Letter> letters);
  bool isOutput() const { return tensor == output; }
  mlir::Value getTensor() const { return tensor; }
  /// Does something follow the last product?
  bool isFinished() { return isOutput() && root == last; }
  /// Writes what the products make of the present row: behind their initial value, or added to what is there.
  llvm::FailureOr<mlir::Value> write(mlir::OpBuilder &b, Expression &expression, llvm::ArrayRef<Letter> letters,
                                     bool adds);
  /// for i: y[i] = finish(sum[i]), what follows the last product
  llvm::LogicalResult finish(mlir::OpBuilder &b, llvm::ArrayRef<Letter> letters,
                             const llvm::StringMap<mlir::Value> &sizes);

private:
  mlir::Type element();

  mlir::linalg::GenericOp root, first, last;
  mlir::BlockArgument output;
  mlir::Value tensor;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_RUNNINGSUM_H
