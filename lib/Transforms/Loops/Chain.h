// SPDX-License-Identifier: Apache-2.0
/// \file
/// Chains of statements on one pattern: what is made on it, and what of that is kept between nests.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_CHAIN_H
#define LACIS_LIB_TRANSFORMS_LOOPS_CHAIN_H

#include "OutputLoops.h"

namespace lacis {

/// The statement that makes an encoded tensor, behind a walk of it; null for arguments and parts of them.
mlir::linalg::GenericOp makerOf(mlir::Value tensor);
/// The first operand that a statement makes; null where all encoded operands are arguments.
mlir::OpOperand *madeOperand(mlir::linalg::GenericOp generic);
/// The pattern of a tensor that a statement makes, as the tensor is walked.
mlir::Value walkedPattern(mlir::OpBuilder &b, mlir::Value tensor);
/// What steps call a statement: its name, or `t` and its number in the function.
std::string nameOfStatement(mlir::linalg::GenericOp statement);
/// The loops from `first` to `end`, which is behind the last, belong to the statement of that name.
void nameLoops(mlir::Operation *first, mlir::Operation *end, llvm::StringRef statement);
/// Does some statement add up what another made on a pattern?
bool isChain(mlir::func::FuncOp function);

/// Nests for what would be computed more than once, each into a workspace: the unfused form of a chain.
class KeptTensors {
public:
  /// `asked` are the names of those that a step keeps, however often they are read.
  KeptTensors(OutputLoops &outer, mlir::linalg::GenericOp root, llvm::ArrayRef<std::string> asked)
      : outer(outer), root(root), asked(asked) {}
  /// Builds the nests, in the order of the statements.
  llvm::LogicalResult build();
  /// The workspace of each tensor that is kept: with its axes, or (copy, slot) where it is on a pattern.
  const llvm::DenseMap<mlir::Value, mlir::Value> &get() const { return kept; }

private:
  llvm::LogicalResult buildDense(mlir::linalg::GenericOp statement, llvm::MutableArrayRef<Letter> letters);
  llvm::LogicalResult buildOnPattern(mlir::linalg::GenericOp statement, llvm::MutableArrayRef<Letter> letters);
  mlir::Value workspace(mlir::linalg::GenericOp statement, llvm::ArrayRef<mlir::Value> sizes);

  OutputLoops &outer;
  mlir::linalg::GenericOp root;
  llvm::ArrayRef<std::string> asked;
  llvm::DenseMap<mlir::Value, mlir::Value> kept;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_CHAIN_H
