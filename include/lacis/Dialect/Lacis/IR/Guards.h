// SPDX-License-Identifier: Apache-2.0
/// \file
/// Who may drop a guard `coordinate < size`: the proofs that no coordinate lies past the end.
///
/// A loop cut into strips, or a vector of neighbours, reaches past the end of its axis. A guard stands around its body
/// unless one of these holds. That a size is a multiple of some number is not enough: the strip or the vector has to
/// begin at a multiple too.
#ifndef LACIS_DIALECT_LACIS_IR_GUARDS_H
#define LACIS_DIALECT_LACIS_IR_GUARDS_H

#include "mlir/IR/Value.h"

namespace lacis {

/// A number that divides `index` wherever it is computed from coordinates and constants; 0 is divided by all.
int64_t knownMultiple(mlir::Value index);

/// Strips of `factor` coordinates cover `size` and nothing past it.
bool fillStrips(mlir::Value size, int64_t factor);

/// The coordinates [first, first + count) lie all below `size`, or none of them does: `first < size` speaks for all.
bool lieOnOneSide(mlir::Value first, int64_t count, mlir::Value size);

/// The coordinates [first, first + count) lie in the panels of `panel` coordinates that `size` begins: in a part of the
/// strip s < ceil(size / factor) of a loop, where strips divide panels.
bool lieInPanels(mlir::Value first, int64_t count, mlir::Value size, int64_t panel);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_GUARDS_H
