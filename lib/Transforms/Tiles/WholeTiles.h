// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where a condition on coordinates is true in all of a tile, by the bounds of what it compares.
#ifndef LACIS_LIB_TRANSFORMS_TILES_WHOLETILES_H
#define LACIS_LIB_TRANSFORMS_TILES_WHOLETILES_H

#include "TileVariance.h"

namespace lacis {

class RoleScalars;

/// The number that is true only where `condition` is in all of the tile; null where that is not known to follow from
/// coordinates, or where it is the same for all of the tile.
mlir::Value isTrueInTile(mlir::OpBuilder &b, mlir::Value condition, TileVariance &variance, RoleScalars &scalars);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_WHOLETILES_H
