// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest over the coordinates of bindings that store an order of an output's axis.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_PERMUTEDROWS_H
#define LACIS_LIB_TRANSFORMS_LOOPS_PERMUTEDROWS_H

#include "OwnedNest.h"

namespace lacis {

/// for r0, r1: i = order[r0, r1]; y[i] = finish(init + the row)
class PermutedRows : OwnedNest {
public:
  using OwnedNest::OwnedNest;
  llvm::LogicalResult build(mlir::OpBuilder &b);

private:
  void openLoops(mlir::OpBuilder &b, llvm::StringRef name, llvm::ArrayRef<Digit> digits, Letter &letter);

  struct Order {
    unsigned number; // of the binding
    Letter *of;      // the letter whose coordinates it stores
    Letter own;
  };
  llvm::SmallVector<Order, 0> orders;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_PERMUTEDROWS_H
