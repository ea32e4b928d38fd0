// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums of exponentials below a maximum, which one loop can make: they are rescaled when the maximum grows.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_RESCALED_H
#define LACIS_LIB_TRANSFORMS_LOOPS_RESCALED_H

#include "Chain.h"

namespace lacis {

/// The statements of a rolled loop. A number w of a row means exp(m) w, where m is the maximum so far.
struct Rescaled {
  mlir::linalg::GenericOp scores;  // t, on the pattern
  mlir::linalg::GenericOp largest; // m = max t
  mlir::linalg::GenericOp shares;  // p = exp(t - m)
  llvm::SmallVector<mlir::linalg::GenericOp> followers; // sums that are linear in p
  unsigned level = 0;              // whose loop is rolled; those below are dense tiles
  std::string loop;                // its name
};

/// The statements behind `roots`, or why they are no loop with a rescaled sum.
llvm::FailureOr<Rescaled> findRescaled(llvm::ArrayRef<mlir::linalg::GenericOp> roots,
                                       llvm::ArrayRef<mlir::linalg::GenericOp> statements, std::string &objection);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_RESCALED_H
