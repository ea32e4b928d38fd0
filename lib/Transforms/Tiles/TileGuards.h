// SPDX-License-Identifier: Apache-2.0
/// \file
/// Conditions that a tile needs not ask: boxes have 0 behind the end of an axis, and stores leave out what lies there.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILEGUARDS_H
#define LACIS_LIB_TRANSFORMS_TILES_TILEGUARDS_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"

namespace lacis {

/// Is the number 0 wherever the condition does not hold? It is a product then, of which a factor is read behind the end of an
/// axis or is padding of a stored block.
bool isZeroWithout(mlir::Value condition, mlir::Value number);
/// Does the store lie behind the end of an axis wherever the condition does not hold?
bool isOutsideWithout(mlir::Value condition, WriteOp store);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILEGUARDS_H
