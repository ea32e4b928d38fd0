// SPDX-License-Identifier: Apache-2.0
/// \file
/// The pieces of a module that become code apart from each other: one function each, and what is no function.
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

/// Moves each function out of the module, into a module of its own, without what is said of the whole kernel.
std::vector<mlir::OwningOpRef<mlir::ModuleOp>> takeApart(mlir::ModuleOp module);

/// Copies each function that the module defines into a module of its own.
std::vector<std::unique_ptr<llvm::Module>> takeApart(const llvm::Module &module);

/// Copies of all pieces in one module, as a reader wants to see them.
std::unique_ptr<llvm::Module> putTogether(llvm::ArrayRef<Piece> pieces);

/// Code of functions that this process has made, so that a kernel with one step changed makes only the functions anew
/// that the step reaches. From any thread.
std::optional<Code> findCode(const std::string &key);
void keepCode(const std::string &key, const Code &code);

/// Everything that decides on the code of a function.
std::string keyOfCode(mlir::ModuleOp piece, llvm::StringRef target, const CodeOptions &options);

} // namespace lacis

#endif // LACIS_LIB_COMPILER_PIECES_H
