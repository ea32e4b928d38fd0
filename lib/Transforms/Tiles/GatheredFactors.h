// SPDX-License-Identifier: Apache-2.0
/// \file
/// Factors of products whose rows or columns are gathered from a window of their operand.
#ifndef LACIS_LIB_TRANSFORMS_TILES_GATHEREDFACTORS_H
#define LACIS_LIB_TRANSFORMS_TILES_GATHEREDFACTORS_H

#include "TileStatements.h"

namespace lacis {

/// Where the parts of a tile begin in the window of the box, for the columns in turn, of these for the rows.
void findOffsets(mlir::OpBuilder &b, StagedBox &box, TileVariance &variance, RoleScalars &scalars);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_GATHEREDFACTORS_H
