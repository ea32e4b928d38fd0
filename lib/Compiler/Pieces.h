// SPDX-License-Identifier: Apache-2.0
/// \file
/// The pieces of a module that become code apart from each other: one function each, or all where one calls another.
#ifndef LACIS_LIB_COMPILER_PIECES_H
#define LACIS_LIB_COMPILER_PIECES_H

#include "lacis/Target/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/IR/Module.h"

#include <optional>

namespace lacis {

/// A function on its way from MLIR to code.
struct Piece {
  std::string key;                      // of code that is kept; empty where none is
  std::unique_ptr<llvm::Module> module; // null where the code is known already
  std::optional<Code> code;
};

/// The name of the module's first function.
llvm::StringRef nameOf(mlir::ModuleOp module);

/// Without what is said of the whole kernel.
std::vector<mlir::OwningOpRef<mlir::ModuleOp>> takeApart(mlir::OwningOpRef<mlir::ModuleOp> module);
std::vector<std::unique_ptr<llvm::Module>> takeApart(std::unique_ptr<llvm::Module> module);

/// Copies of all pieces in one module, as a reader wants to see them.
std::unique_ptr<llvm::Module> putTogether(llvm::ArrayRef<Piece> pieces);

} // namespace lacis

#endif // LACIS_LIB_COMPILER_PIECES_H
