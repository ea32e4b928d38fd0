// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums over the entries of a row that one loop can make: those of exponentials below a maximum are rescaled when it grows.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_RESCALED_H
#define LACIS_LIB_TRANSFORMS_LOOPS_RESCALED_H

#include "Chain.h"

namespace lacis {

/// The statements of a rolled loop. Below a maximum m a number w of a row means exp(m) w.
struct Rescaled {
  llvm::SmallVector<mlir::linalg::GenericOp> made; // on the pattern, each before those that read it; below a maximum t alone
  mlir::linalg::GenericOp largest;                 // m = max t, or null
  mlir::linalg::GenericOp shares;                  // p = exp(t - m), or null
  llvm::SmallVector<mlir::linalg::GenericOp> linear; // on the pattern, each linear in p
  llvm::SmallVector<mlir::linalg::GenericOp> followers; // sums that are linear in p, in one of these, or in one of what is made
  unsigned level = 0;              // whose loop is rolled; those below are dense tiles
  std::string loop;                // its name
  bool readsInPlace = false;       // operands are read where they lie, not from copies
  bool isOfTiles = false;          // a step forms tiles of it, which leave out what lies behind the last row
  int64_t columns = 0;             // of a tile of a round, at the most
  FormatAttr layout;               // of the pattern without its batch, which the loop walks in the pattern's place; or null
};

/// The statements behind `roots`, or why they are no such loop.
llvm::FailureOr<Rescaled> findRescaled(llvm::ArrayRef<mlir::linalg::GenericOp> roots,
                                       llvm::ArrayRef<mlir::linalg::GenericOp> statements, std::string &objection);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_RESCALED_H
