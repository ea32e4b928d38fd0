// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest over the rows that an operand lists, and one before it for all rows, as if they were empty.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_LISTEDROWS_H
#define LACIS_LIB_TRANSFORMS_LOOPS_LISTEDROWS_H

#include "OwnedNest.h"

namespace lacis {

/// for i: y[i] = finish(init); for p in rows(w): i = row p; y[i] = finish(init + the row)
class ListedRows : OwnedNest {
public:
  using OwnedNest::OwnedNest;
  llvm::LogicalResult build(mlir::OpBuilder &b);
  using OwnedNest::fillAll;
  using OwnedNest::setRunning;
  /// The nest of the rows that a part of a sum lists; the others have entries of no interest. Its loops over letters of
  /// the output have this path.
  llvm::LogicalResult buildPart(mlir::OpBuilder &b, PathAttr path);

private:
  llvm::LogicalResult buildRows(mlir::OpBuilder &b);
  void openLoops(mlir::OpBuilder &b, Letter &letter);
  bool isListed(Digit digit) const;

  LoopOp rows;        // over the positions of the first level
  unsigned count = 0; // of the levels that list rows
  bool isPart = false;
  PathAttr path;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_LISTEDROWS_H
