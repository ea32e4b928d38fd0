// SPDX-License-Identifier: Apache-2.0
/// \file
/// MLIR contexts that this process has used: loading the dialects into a new one is an eighth of a short compilation.
#ifndef LACIS_LIB_COMPILER_KEPTCONTEXT_H
#define LACIS_LIB_COMPILER_KEPTCONTEXT_H

#include "lacis/Target/Target.h"

#include "mlir/IR/MLIRContext.h"

namespace lacis {

/// A context with the dialects of a target, and how many compilations it has seen.
struct KeptContext {
  std::string target;
  std::unique_ptr<mlir::MLIRContext> context;
  unsigned uses = 0;
};

/// A context that nobody else has: one that was kept, or a new one. From any thread.
KeptContext takeContext(const Target &target);
/// Keeps a context for others. Nothing of it may be left: no module, no handler of diagnostics.
void keepContext(KeptContext used);

} // namespace lacis

#endif // LACIS_LIB_COMPILER_KEPTCONTEXT_H
