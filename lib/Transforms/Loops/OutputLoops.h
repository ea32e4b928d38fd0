// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loops of a nest over the axes of what it makes, and the sizes of all letters.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_OUTPUTLOOPS_H
#define LACIS_LIB_TRANSFORMS_LOOPS_OUTPUTLOOPS_H

#include "LevelWalk.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/StringMap.h"

namespace lacis {

/// What nests of one function know of its letters.
struct OutputLoops {
  /// Nests and the sizes of their loops are made at `b`.
  OutputLoops(mlir::func::FuncOp function, mlir::OpBuilder &b) : function(function), b(b) {}

  /// The letters of a statement: their sizes, from the arguments that have them, and the names of the arguments' axes.
  llvm::LogicalResult add(mlir::linalg::GenericOp generic);
  /// The letters of the axes of what a statement makes, in order.
  llvm::LogicalResult lettersOf(mlir::linalg::GenericOp root, llvm::SmallVectorImpl<Letter> &letters);
  /// One loop for each digit that some operand's levels distinguish, most significant first, inside the last of `loops`.
  void open(Letter &letter, llvm::SmallVectorImpl<LoopOp> &loops);
  /// The loops over all letters, and in them what the statement makes of an element, which goes to `target`; `kept` as in
  /// `Expression`.
  llvm::LogicalResult writeElements(mlir::linalg::GenericOp statement, llvm::MutableArrayRef<Letter> letters,
                                    mlir::Value target, const llvm::DenseMap<mlir::Value, mlir::Value> *kept);

  mlir::func::FuncOp function;
  mlir::OpBuilder &b;
  llvm::StringMap<mlir::Value> sizes;
  llvm::StringMap<llvm::SmallVector<int64_t>> cuts; // the divisors of the digits of each letter

private:
  void addDigits(llvm::StringRef name, FormatAttr format, unsigned axis);
};

/// Composes the coordinate of a letter from the digits of its loops; where what follows belongs: behind a guard if digits
/// run past the end.
mlir::OpBuilder composeInside(mlir::OpBuilder b, mlir::Location loc, Letter &letter);

/// Ends the bodies of loops that carry nothing.
void closeLoops(mlir::Location loc, llvm::ArrayRef<LoopOp> loops);

/// A tensor that a kernel returns: the statement that makes it, its axes, and where it is written.
struct KernelResult {
  mlir::linalg::GenericOp root;
  llvm::SmallVector<Letter> letters;
  mlir::BlockArgument output;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_OUTPUTLOOPS_H
