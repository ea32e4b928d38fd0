// SPDX-License-Identifier: Apache-2.0
/// \file
/// The width of the coordinates of tiles.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_TILECOORDINATES_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_TILECOORDINATES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lacis {

/// Where a kernel counts in 64 bits, operations on tiles get rows, columns and numbers of tiles in 32 all the same: the copy
/// engine takes no more, and no array has so many rows. What counts elements of an array keeps its width.
void narrowTileCoordinates(mlir::func::FuncOp kernel);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_TILECOORDINATES_H
