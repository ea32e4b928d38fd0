// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operands of products whose columns a rolled loop copies to a tile, transposed: a row of it is a vector of entries.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_ROLLEDCOPIES_H
#define LACIS_LIB_TRANSFORMS_LOOPS_ROLLEDCOPIES_H

#include "Rescaled.h"

namespace lacis {

/// An operand with the letter of the columns, whose last axis a product sums up.
struct RolledCopy {
  mlir::BlockArgument operand;
  llvm::SmallVector<std::string> letters; // of its axes
  mlir::Value tile;                       // [summed, column]

  unsigned axis() const { return letters.size() - 1; }
};

/// Those of the products in `made` whose copies are worth it: tiles of `height` rows and `columns` columns fill vectors.
/// `rows` are the letters of the rows.
llvm::SmallVector<RolledCopy> findCopies(llvm::ArrayRef<mlir::linalg::GenericOp> made, const std::string &column,
                                         llvm::ArrayRef<std::string> rows, int64_t height, int64_t columns);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_ROLLEDCOPIES_H
