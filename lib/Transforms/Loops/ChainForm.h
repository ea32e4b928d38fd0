// SPDX-License-Identifier: Apache-2.0
/// \file
/// What steps say of the statements of a chain, and what is best where they say nothing.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_CHAINFORM_H
#define LACIS_LIB_TRANSFORMS_LOOPS_CHAINFORM_H

#include "Rescaled.h"

namespace lacis {

/// One loop makes all statements, or each of some has a nest of its own.
struct ChainForm {
  std::optional<Rescaled> rolled;
  llvm::SmallVector<std::string> kept; // those that a step keeps
};

/// `roots` are the statements whose results the kernel returns.
llvm::FailureOr<ChainForm> chooseForm(llvm::ArrayRef<mlir::linalg::GenericOp> roots,
                                      llvm::ArrayRef<mlir::linalg::GenericOp> statements);

/// The steps that nobody asked for: what was chosen, as it is given back.
void recordForm(mlir::func::FuncOp function, llvm::ArrayRef<std::string> steps);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_CHAINFORM_H
