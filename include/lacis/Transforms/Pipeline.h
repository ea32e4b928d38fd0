// SPDX-License-Identifier: Apache-2.0
/// \file
/// The one list of passes: what each stage is made of.
#ifndef LACIS_TRANSFORMS_PIPELINE_H
#define LACIS_TRANSFORMS_PIPELINE_H

#include "llvm/ADT/StringRef.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace lacis {

/// Algebra to named loops under the schedule. `target` is `cpu`, `cuda:sm_90a`, …
void buildToLoops(mlir::OpPassManager &pm, llvm::StringRef target);
/// Named loops to roles and tiles, where the schedule asks for them.
void buildToTiles(mlir::OpPassManager &pm, llvm::StringRef target);
/// Loops and tiles to loops over buffers.
void buildToBuffers(mlir::OpPassManager &pm, llvm::StringRef target);
/// Buffers to one function a launch, and the `lacis.artifact` record.
void buildToTarget(mlir::OpPassManager &pm, llvm::StringRef target);
/// Registers `lacis-to-loops`, `lacis-to-tiles`, `lacis-to-buffers`, `lacis-to-target` with the opt driver.
void registerPipelines();

} // namespace lacis

#endif // LACIS_TRANSFORMS_PIPELINE_H
