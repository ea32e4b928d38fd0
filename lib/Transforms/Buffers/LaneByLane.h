// SPDX-License-Identifier: Apache-2.0
/// \file
/// What each lane of a vector does by itself, where not all of them may do it together.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_LANEBYLANE_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_LANEBYLANE_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

/// What `load` answers for neighbours from the first on, of which `count` exist; zeros for the others.
mlir::Value loadFirstLanes(mlir::OpBuilder &b, mlir::Location loc, mlir::VectorType type, mlir::Value count,
                           llvm::function_ref<mlir::Value(mlir::OpBuilder &, int64_t lane, mlir::Type)> load);

/// A guard whose active lanes are [from, upto), and those before `count` of them where that is not null.
struct LaneBand {
  mlir::Value from, upto, count;
};
/// `guard` once for each lane; `valueOf` is what a value from outside is in a lane. Answers its results as vectors.
llvm::SmallVector<mlir::Value>
guardLanes(mlir::OpBuilder &b, mlir::scf::IfOp guard, int64_t width, const LaneBand &band,
           llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value outside, int64_t lane)> valueOf);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_LANEBYLANE_H
