// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest that sums products of a stored and a dense matrix: what schedules for tensor cores begin with.
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

/// y[n, m] = finish(initial + sum over k of w[m, k] x[n, k]), w with a format; the axes of each in any order. Of a batch
/// x[h, n, k] and y[h, n, m]: its letters come first in both.
struct Product {
  mlir::BlockArgument stored, dense, output;
  mlir::Value tensor;                   // the stored operand, or the part of it that is walked
  llvm::StringRef rows, columns, depth; // the letters m, n and k
  llvm::SmallVector<llvm::StringRef, 2> batch; // the letters h
  bool isDepthFirst = false;            // x is [k, n]: neighbours in memory are neighbours along n
  bool isRowsFirst = false;             // y is [m, n]
  mlir::Operation *walk = nullptr;      // the outermost loop over k
  mlir::TypedAttr initial;              // null where the sum begins with other parts, or with `start`
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

/// What a value was before it was widened, or the value.
mlir::Value behindCast(mlir::Value value);

/// Is the value arithmetic on what `sum` adds up, and on reads that `takes` takes?
bool isArithmeticOn(mlir::Operation *sum, mlir::Value value, llvm::function_ref<bool(ReadOp)> takes);

/// The letters of the axes are those of a matrix: two, which differ.
inline bool areOfMatrix(mlir::ArrayAttr axes) { return axes && axes.size() == 2 && axes[0] != axes[1]; }

/// The letters that come before the last two of `a` and of `b`, the same in both, and none of `w`; nullopt where they are
/// not.
std::optional<llvm::ArrayRef<mlir::Attribute>> batchLetters(mlir::ArrayAttr w, mlir::ArrayAttr a, mlir::ArrayAttr b);

/// The product of the main nest, or, where it is none, nullopt and `why`. Of a sum the product of `part`, if that is
/// named.
std::optional<Product> productOf(Nest &nest, std::string &why, llvm::StringRef part = "");

/// The format of a workspace that lies in tiles of `rows` x `columns`, as accumulators are loaded and kept: its axes
/// are the letters `n` of the columns and `m` of the rows.
FormatAttr accumulatorTiles(mlir::MLIRContext *context, llvm::StringRef n, llvm::StringRef m, int64_t columns,
                            int64_t rows);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_PRODUCT_H
