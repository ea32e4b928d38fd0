// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest over the rows that an operand lists, and one before it for all rows, as if they were empty.
#ifndef LACIS_LIB_TRANSFORMS_LISTEDROWS_H
#define LACIS_LIB_TRANSFORMS_LISTEDROWS_H

#include "Expression.h"

#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// for i: y[i] = finish(init); for p in rows(w): i = row p; y[i] = finish(init + the row)
class ListedRows {
public:
  using Letters = llvm::MutableArrayRef<Letter>;

  /// `letters` are those of the output, which becomes `root`'s result.
  ListedRows(mlir::linalg::GenericOp root, mlir::OpOperand &operand, Letters letters, mlir::BlockArgument output,
             const llvm::StringMap<mlir::Value> &sizes);
  llvm::LogicalResult build(mlir::OpBuilder &b);

private:
  llvm::LogicalResult fillAll(mlir::OpBuilder &b);
  void openLoops(mlir::OpBuilder &b, Letter &letter);
  void openLoop(mlir::OpBuilder &b, llvm::StringRef name, mlir::Value size);
  void closeLoops();
  /// Where the letters that no level lists are known, inside of their guards.
  mlir::OpBuilder composeOthers();
  /// Writes the element at the letters' coordinates; answers its value.
  llvm::FailureOr<mlir::Value> write(mlir::OpBuilder &b, Expression &expression);
  bool isListed(Digit digit) const;

  mlir::Location loc;
  mlir::linalg::GenericOp root;
  mlir::Value tensor;
  FormatAttr format;
  Letters letters;
  mlir::BlockArgument output;
  const llvm::StringMap<mlir::Value> &sizes;
  llvm::SmallVector<Letter> summed; // letters of the operand that the output lacks
  llvm::SmallVector<Letter *> axes; // by axis of the operand
  llvm::SmallVector<LoopOp> loops;
  LoopOp rows; // over the positions of the first level
  unsigned count; // of the levels that list rows
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LISTEDROWS_H
