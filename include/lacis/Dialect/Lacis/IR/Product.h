// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest that sums products of two matrices: what schedules for tensor cores begin with. One of the three has a format.
#ifndef LACIS_DIALECT_LACIS_IR_PRODUCT_H
#define LACIS_DIALECT_LACIS_IR_PRODUCT_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// Stored blocks by the letters of a product: their rows, and their columns, along k, or along n where it is sampled. Where
/// more levels than two are dense, a block is what the last two have, of which a position has several.
struct StoredBlock {
  int64_t rows = 0, columns = 0; // 0: not dense in these two
  bool transposed = false;       // neighbours in memory are neighbours along the rows
  bool isMatrix = false;         // all of a dense matrix, of no fixed size: rows and columns are 0
  bool isNested = false;         // in a larger block
  int64_t allRows = 0;           // of that
};

/// c[h, m, n] = finish(initial + sum over k of a[h, m, k] b[h, n, k]): a contraction of three operands, by which of them
/// have a letter. The last two of each are in any order; those before them are the batch, the same in those that have one.
/// One of the three has a format: a, which is walked, or c, which is sampled where a pattern stores blocks. Rows m are
/// those of the stored blocks. A sampled sum runs over h, too; or, where c has a copy of the values for each h, there are
/// as many products.
struct Product {
  llvm::StringRef rows, columns, depth;        // m, n and k
  llvm::SmallVector<llvm::StringRef, 2> batch; // h
  mlir::BlockArgument left, right, output;     // a, b and c
  mlir::BlockArgument stored;                  // a, or the pattern of c
  mlir::Value tensor;                          // the stored operand, or the part of it that is walked
  ReadOp readLeft, readRight;                  // of dense operands
  bool isLeftAlong = false, isRightAlong = false; // [m, k] and [n, k]: neighbours in memory are neighbours along k
  bool isRowsFirst = false;                       // c is [m, n]
  bool isFolded = false;  // the batch and the letter that the dense two share are one axis, of which both have the rows
  bool hasCopies = false; // of the values, for each matrix of the batch
  mlir::Operation *sum = nullptr; // the outermost loop over k
  mlir::TypedAttr initial;        // what the sum begins with; null where that is no constant
  ReadOp start;                   // of the workspace where other parts were summed up before; or null
  WriteOp write;                  // null where it is sampled
  mlir::Value result;             // what is stored, before it is rounded
  LoopOp entries;                 // over the positions of the pattern
  llvm::SmallVector<LoopOp, 2> batchLoops; // around a sampled sum, over h alone; those over copies stand outside

  bool isSampled() const { return stored != left; }
  FormatAttr format() const;
  LoopName sumName() const;
  StoredBlock block() const;
  /// The loop over n, or, of a batch that is folded with it, over all of it, when its loops are one.
  std::string columnLoop() const;
  /// What follows the sum may be arithmetic on the sum, on vectors along rows or columns (the same in all matrices of a
  /// batch), on numbers, and on the same element of one residual in the type of the right operand; of a sampled sum on
  /// vectors along columns and numbers alone. That residual, or null; nullopt where more follows.
  std::optional<ReadOp> residual();
};

/// What a value was before it was widened, or the value.
mlir::Value behindCast(mlir::Value value);
/// What is walked through a companion, whose links say where the values lie; or the tensor.
mlir::Value behindWalk(mlir::Value tensor);
/// The read of an operand that a factor is, or null.
ReadOp operandOf(mlir::Value factor);

/// The product of the main nest, or, where it is none, nullopt and `why`. Of a sum the product of `part`, if that is
/// named.
std::optional<Product> productOf(Nest &nest, std::string &why, llvm::StringRef part = "");

/// Does a loop run over the positions of a level, or over shares of them?
bool isOverPositions(LoopOp loop);

/// The format of a workspace that lies in tiles of `rows` x `columns`, as accumulators are loaded and kept: its axes
/// are the letters `n` of the columns and `m` of the rows.
FormatAttr accumulatorTiles(mlir::MLIRContext *context, llvm::StringRef n, llvm::StringRef m, int64_t columns,
                            int64_t rows);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_PRODUCT_H
