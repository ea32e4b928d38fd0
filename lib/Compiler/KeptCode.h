// SPDX-License-Identifier: Apache-2.0
/// \file
/// Code of functions that this process has made: a kernel with one step changed makes only those that the step reaches.
#ifndef LACIS_LIB_COMPILER_KEPTCODE_H
#define LACIS_LIB_COMPILER_KEPTCODE_H

#include "lacis/Target/Target.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace lacis {

/// Everything that decides on the code of a function: its text, and what the target was asked for.
std::string keyOfCode(mlir::ModuleOp piece, llvm::StringRef target, const CodeOptions &options);

/// From any thread.
std::optional<Code> findCode(const std::string &key);
void keepCode(const std::string &key, const Code &code);

} // namespace lacis

#endif // LACIS_LIB_COMPILER_KEPTCODE_H
