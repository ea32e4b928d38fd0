// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest that sums products of two matrices: what schedules for tensor cores begin with. One of the three has a format.
#ifndef LACIS_DIALECT_LACIS_IR_PRODUCT_H
#define LACIS_DIALECT_LACIS_IR_PRODUCT_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// Stored blocks as a product takes them.
struct StoredBlock {
  int64_t rows = 0, depth = 0; // 0: not dense in these two
  bool transposed = false;     // neighbours in memory are neighbours along the rows, not along the depth
  bool isMatrix = false;       // all of a dense matrix, of no fixed size: rows and depth are 0
};

/// The letters of a product c[h, m, n] += a[h, m, k] b[h, n, k], by which of the three have them. The last two of each are in
/// any order; those before them are the batch, the same in those that have one.
struct Contraction {
  llvm::StringRef rows, columns, depth;        // m, n and k
  llvm::SmallVector<llvm::StringRef, 2> batch; // h
  mlir::BlockArgument output;
  mlir::TypedAttr initial; // what the sum begins with; null where that is no constant
};

/// y[n, m] = finish(initial + sum over k of w[m, k] x[n, k]), w with a format; the axes of each in any order. Of a batch
/// x[h, n, k] and y[h, n, m]: its letters come first in both.
struct Product : Contraction {
  mlir::BlockArgument stored, dense;
  mlir::Value tensor;                   // the stored operand, or the part of it that is walked
  bool isDepthFirst = false;            // x is [k, n]: neighbours in memory are neighbours along n
  bool isRowsFirst = false;             // y is [m, n]
  mlir::Operation *walk = nullptr;      // the outermost loop over k
  ReadOp read;                          // of the dense operand
  ReadOp start;                         // of the workspace where other parts were summed up before; or null
  WriteOp write;

  FormatAttr format() const;
  llvm::StringRef walkName() const;
  StoredBlock block() const;
  /// The batch and n are one axis, of which x and y have the rows.
  bool isFolded() const { return !batch.empty() && !isDepthFirst && !isRowsFirst; }
  /// The loop over n, or, of a batch that is folded, over all of it, when its loops are one.
  std::string columnLoop() const;
  /// The axis of the output along m.
  unsigned outputRows() const { return batch.size() + (isRowsFirst ? 0 : 1); }
  /// What follows the sum may be arithmetic on the sum, on vectors along rows or columns (the same in all matrices of a
  /// batch), on numbers, and on the same element of one residual in the type of the dense operand. That residual, or
  /// null; nullopt where more follows.
  std::optional<ReadOp> residual();
};

/// w[m, n] = sum over k of a[k, m] b[k, n], where w has entries; rows m are those of its stored blocks. The axes of a and
/// of b are in any order. Of a batch a[h, k, m] and b[h, k, n] the sum runs over h, too; or, where w[h, m, n] has a copy of
/// the values for each h, there are as many products. Its letters come first in both.
struct SampledProduct : Contraction {
  mlir::BlockArgument pattern, left, right;         // left is a, with the rows
  ReadOp readLeft, readRight;
  unsigned rowAxis = 0;                             // of the pattern that copies share: which axis m is
  bool isLeftAlong = false, isRightAlong = false;   // a is [m, k], b is [n, k]: neighbours in memory are along k
  LoopOp entries, sum;                              // over the pattern's positions; over k
  llvm::SmallVector<LoopOp, 2> batchLoops;          // around that, over h alone; those over copies stand outside
  bool hasCopies = false;
  mlir::Value result; // where an entry is, before it is rounded: arithmetic on the sum, numbers and vectors along n

  FormatAttr format() const { return formatOf(output); }
  /// The batch and k are one axis, of which both operands have the rows.
  bool isFolded() const { return !batch.empty() && !hasCopies && !isLeftAlong && !isRightAlong; }
  /// Rows and columns of a stored block; zeros where it is not dense in both.
  std::pair<int64_t, int64_t> block() const;
};

/// What a value was before it was widened, or the value.
mlir::Value behindCast(mlir::Value value);

/// The product of the main nest, or, where it is none, nullopt and `why`. Of a sum the product of `part`, if that is
/// named.
std::optional<Product> productOf(Nest &nest, std::string &why, llvm::StringRef part = "");

/// The sampled product of the main nest, or, where it is none, nullopt and `why`.
std::optional<SampledProduct> sampledProductOf(Nest &nest, std::string &why);

/// Does a loop run over the positions of a level, or over shares of them?
bool isOverPositions(LoopOp loop);

/// The format of a workspace that lies in tiles of `rows` x `columns`, as accumulators are loaded and kept: its axes
/// are the letters `n` of the columns and `m` of the rows.
FormatAttr accumulatorTiles(mlir::MLIRContext *context, llvm::StringRef n, llvm::StringRef m, int64_t columns,
                            int64_t rows);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_PRODUCT_H
