// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest over equal shares of the positions of an operand whose first levels name a row for each of them.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_SHAREDROWS_H
#define LACIS_LIB_TRANSFORMS_LOOPS_SHAREDROWS_H

#include "OwnedNest.h"

namespace lacis {

/// Why the sum of a product has no parts that are brought together, or nothing.
std::string objectionToParts(mlir::linalg::GenericOp product);

/// for share: for p in it: i = row p; s += w * x; where a row ends: y[i] = finish(s), or a part of it is kept;
/// for row that several shares meet: y[i] = finish(its parts, in their order)
class SharedRows : OwnedNest {
public:
  SharedRows(mlir::linalg::GenericOp root, mlir::OpOperand &operand, Letters letters, mlir::BlockArgument output,
             const llvm::StringMap<mlir::Value> &sizes);
  llvm::LogicalResult build(mlir::OpBuilder &b);

private:
  using Value = mlir::Value;
  using Builder = mlir::OpBuilder;
  using Row = llvm::SmallVector<Value>; // the value of each of `digits`

  /// The positions `[first, end)` of a share, its first row and its last, and whether these go on outside of it.
  struct Share {
    Value first, end, goesBack, goesOn;
    Row head, last;
  };
  /// A loop over a digit that the levels do not share, around the entries.
  struct Other {
    Letter *letter;
    Digit digit;
    std::string name;
    Value size;
  };

  bool isShared(Digit digit) const { return llvm::is_contained(digits, digit); }
  Value constant(Builder &b, int64_t value) { return mlir::arith::ConstantIndexOp::create(b, loc, value); }
  Value compare(Builder &b, mlir::arith::CmpIPredicate predicate, Value lhs, Value rhs);
  Value both(Builder &b, Value lhs, Value rhs);
  Value negate(Builder &b, Value condition);
  Value combine(Builder &b, Value carried, Value part);
  void prepare(Builder &b);
  /// Opens the loops over shares and over other digits, the shares first or where their letter is; where a share has
  /// positions.
  mlir::OpBuilder openNest(Builder b, PathAttr path, llvm::StringRef shares, bool sharesFirst);
  Share shareAt(Builder &b);
  Row rowAt(Builder &b, Value position);
  Value isSame(Builder &b, const Row &lhs, const Row &rhs);
  /// The position behind the last of the row that goes on at `from`.
  Value endOfRow(Builder &b, const Row &row, Value from);
  /// Where the part of a row that a share holds is kept: (share, 1 where the row begins in it, the other loops).
  llvm::SmallVector<Value> place(Value share, Value begins);
  llvm::LogicalResult finish(Builder &b, const Row &row, Value total);
  llvm::LogicalResult makeShares(Builder &b);
  llvm::LogicalResult walkShare(Builder &b, const Share &share);
  llvm::LogicalResult endRow(Builder &b, const Share &share, const Row &row, Value isLast, Value sum);
  llvm::LogicalResult makeEdges(Builder &b);

  unsigned firstLevel;             // of the pattern
  llvm::SmallVector<Digit> digits; // of a row
  std::string name;
  llvm::SmallVector<Other> others;
  llvm::SmallVector<Value> coordinatesOfOthers;
  Reduction reduction;
  Value start; // what a part begins with
  bool startIsInit = false;
  Value size, count, workspace;
  Value number, lo, hi; // of the share, and the positions of the first level
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_SHAREDROWS_H
