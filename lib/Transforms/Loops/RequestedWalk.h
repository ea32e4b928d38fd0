// SPDX-License-Identifier: Apache-2.0
/// \file
/// The order in which steps of the schedule want an operand walked, and the form in which it owns the output.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_REQUESTEDWALK_H
#define LACIS_LIB_TRANSFORMS_LOOPS_REQUESTEDWALK_H

#include "lacis/Dialect/Lacis/IR/StepInterface.h"
#include "lacis/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace lacis {

struct RequestedWalk {
  std::string operand;
  llvm::SmallVector<unsigned> axes;      // of the operand, those that lead
  std::optional<mlir::Location> location; // the user's line; none where no step asks
  std::string form;                       // in which levels own the output, or empty
  std::optional<mlir::Location> formLocation;

  explicit operator bool() const { return location.has_value(); }
  /// The format's own order begins with the axes.
  bool isOwnOrderOf(FormatAttr format) const;
};

/// What the steps of the function say about a tensor whose axes `map` gives the loops of, or an error for a letter that it
/// does not have.
mlir::FailureOr<RequestedWalk> requestedWalk(mlir::linalg::GenericOp generic, mlir::Value tensor, mlir::AffineMap map);

/// What the loop over all entries of a tensor with these axes is called: `i_j`.
std::string entriesName(mlir::linalg::GenericOp generic, mlir::AffineMap map);

/// Does a step name this loop, or one that was made of it?
bool namesLoop(mlir::linalg::GenericOp generic, llvm::StringRef loop);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_REQUESTEDWALK_H
