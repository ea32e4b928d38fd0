// SPDX-License-Identifier: Apache-2.0
/// \file
/// A module's functions in modules of their own, so that each becomes code apart from the others.
#ifndef LACIS_LIB_COMPILER_TAKEAPART_H
#define LACIS_LIB_COMPILER_TAKEAPART_H

#include "lacis/Target/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <vector>

namespace lacis {

/// The name of the module's first function.
llvm::StringRef nameOf(mlir::ModuleOp module);

/// One module a function, without what is said of the whole kernel; the module as it is where one function calls
/// another that may be inlined, or any where those that are called do not come apart.
std::vector<mlir::OwningOpRef<mlir::ModuleOp>> takeApart(mlir::OwningOpRef<mlir::ModuleOp> module, Apart which);

} // namespace lacis

#endif // LACIS_LIB_COMPILER_TAKEAPART_H
