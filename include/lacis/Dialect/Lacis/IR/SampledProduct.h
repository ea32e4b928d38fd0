// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest that computes a product of two dense matrices where a pattern has entries.
#ifndef LACIS_DIALECT_LACIS_IR_SAMPLEDPRODUCT_H
#define LACIS_DIALECT_LACIS_IR_SAMPLEDPRODUCT_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// w[m, n] = sum over k of a[k, m] b[k, n], where w has entries; rows m are those of its stored blocks. The axes of a and
/// of b are in any order. Of a batch a[h, k, m] and b[h, k, n] the sum runs over h, too; or, where w[h, m, n] has a copy of
/// the values for each h, there are as many products. Its letters come first in both.
struct SampledProduct {
  mlir::BlockArgument pattern, left, right, output; // left is a, with the rows
  ReadOp readLeft, readRight;
  llvm::StringRef rows, columns, depth;             // the letters m, n and k
  llvm::SmallVector<llvm::StringRef, 2> batch;      // the letters h
  unsigned rowAxis = 0;                             // of the pattern that copies share: which axis m is
  bool isLeftAlong = false, isRightAlong = false;   // a is [m, k], b is [n, k]: neighbours in memory are along k
  LoopOp entries, sum;                              // over the pattern's positions; over k
  llvm::SmallVector<LoopOp, 2> batchLoops;          // around that, over h alone; those over copies stand outside
  bool hasCopies = false;
  mlir::TypedAttr initial;
  mlir::Value result; // where an entry is, before it is rounded: arithmetic on the sum, numbers and vectors along n

  FormatAttr format() const { return formatOf(output); }
  /// The batch and k are one axis, of which both operands have the rows.
  bool isFolded() const { return !batch.empty() && !hasCopies && !isLeftAlong && !isRightAlong; }
  /// Rows and columns of a stored block; zeros where it is not dense in both.
  std::pair<int64_t, int64_t> block() const;
};

/// The sampled product of the main nest, or, where it is none, nullopt and `why`.
std::optional<SampledProduct> sampledProductOf(Nest &nest, std::string &why);

/// Does a loop run over the positions of a level, or over shares of them?
bool isOverPositions(LoopOp loop);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_SAMPLEDPRODUCT_H
