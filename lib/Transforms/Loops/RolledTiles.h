// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which rolled loops can be statements of tiles.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_ROLLEDTILES_H
#define LACIS_LIB_TRANSFORMS_LOOPS_ROLLEDTILES_H

#include "Rescaled.h"
#include "lacis/Dialect/Lacis/IR/RolledTileSizes.h"

namespace lacis {

/// Why the rounds of the loop are none that tensor cores multiply, or nothing.
std::string objectionToTiles(const Rescaled &chain, llvm::ArrayRef<mlir::linalg::GenericOp> statements);
/// Columns of the tiles of a round: `kWideTile` where one product and its sums have registers and two rounds have room.
int64_t columnsOfRound(const Rescaled &chain, llvm::ArrayRef<mlir::linalg::GenericOp> statements);
/// Why rounds cannot take so many columns of the stored blocks, or nothing.
std::string objectionToColumns(const Rescaled &chain, int64_t columns);
/// Smaller stored blocks than tiles of 64 rows: the execution layout that has panels of so many rows, and for each column of
/// blocks that any of them has a bit for each row of blocks. Null where blocks are multiples of a tile, or no parts of one.
FormatAttr layoutOfTiles(const Rescaled &chain);
/// What arithmetic makes on the pattern stands in a tile of its own, in registers: it is computed while the products of
/// the next statement run.
void keepArithmetic(Rescaled &chain, llvm::ArrayRef<mlir::linalg::GenericOp> statements);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_ROLLEDTILES_H
