// SPDX-License-Identifier: Apache-2.0
/// \file
/// The record of an artifact, from the module attribute `lacis.artifact` and back out of LLVM IR.
#ifndef LACIS_LIB_COMPILER_ARTIFACTFROMMODULE_H
#define LACIS_LIB_COMPILER_ARTIFACTFROMMODULE_H

#include "lacis/Target/Artifact.h"

namespace llvm {
class Module;
} // namespace llvm
namespace mlir {
class ModuleOp;
} // namespace mlir

namespace lacis {

/// The record of a module at the target stage; code and its kind are still missing.
llvm::Expected<Artifact> artifactFromModule(mlir::ModuleOp module, llvm::StringRef target);

/// Writes the record into LLVM IR, so that its text alone can be compiled further.
void attachArtifact(llvm::Module &module, const Artifact &artifact);

/// The record in LLVM IR; refuses one made for another target, and launches of functions that do not exist.
llvm::Expected<Artifact> artifactFromLLVM(const llvm::Module &module, llvm::StringRef target);

} // namespace lacis

#endif // LACIS_LIB_COMPILER_ARTIFACTFROMMODULE_H
