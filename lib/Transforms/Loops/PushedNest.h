// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest that walks an operand in its order and adds each entry to the element of the output that its levels find.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_PUSHEDNEST_H
#define LACIS_LIB_TRANSFORMS_LOOPS_PUSHEDNEST_H

#include "OwnedNest.h"

namespace lacis {

class PushedNest : protected OwnedNest {
public:
  PushedNest(mlir::linalg::GenericOp root, mlir::OpOperand &operand, Letters letters, mlir::BlockArgument output,
             const llvm::StringMap<mlir::Value> &sizes);

protected:
  /// A digit that a level below the owner's finds, and the loop over it where a tile is filled or emptied.
  struct Pushed {
    Letter *letter;
    Digit digit;
    std::string name;
  };
  using Place = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &)>;

  /// Loops over the digits of the output that the owners have, and the letters that no level has. Answers where they are
  /// known.
  mlir::OpBuilder openOwners(mlir::OpBuilder &b);
  /// for each entry under the owners: target[place] += …
  llvm::LogicalResult push(mlir::OpBuilder &b, mlir::Value target, Place place);

  unsigned owners; // of the leading levels, whose digits have loops around the walk
  llvm::SmallVector<Pushed> pushed;

private:
  bool isPushed(Digit digit) const;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_PUSHEDNEST_H
