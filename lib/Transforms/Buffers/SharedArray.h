// SPDX-License-Identifier: Apache-2.0
/// \file
/// Shared memory of a block.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_SHAREDARRAY_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_SHAREDARRAY_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

/// The static shared memory that a block may have, on every architecture; in bytes.
constexpr int64_t kStaticSharedBytes = 48 * 1024;
/// The address space of shared memory, and the bytes that an array in it begins at a multiple of.
constexpr unsigned kSharedSpace = 3, kSharedAlignment = 16;

/// Shared memory of a kernel, of so many bytes.
mlir::Value sharedArray(mlir::OpBuilder &b, mlir::func::FuncOp function, int64_t bytes);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_SHAREDARRAY_H
