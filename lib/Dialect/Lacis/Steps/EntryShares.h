// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rewriting of a nest over rows to one over equal shares of all entries.
#ifndef LACIS_LIB_DIALECT_LACIS_STEPS_ENTRYSHARES_H
#define LACIS_LIB_DIALECT_LACIS_STEPS_ENTRYSHARES_H

#include "lacis/Dialect/Lacis/Steps/Conditions.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace lacis {

/// A nest whose rows are walked share by share, and the nest after it for rows that several shares meet. Its loop over
/// shares is called `shares`.
class EntryShares {
public:
  EntryShares(LoopOp rows, LevelLoopOp entries, int64_t factor, const LoopName &shares, mlir::Location loc);
  void run();

private:
  using Value = mlir::Value;
  using Builder = mlir::OpBuilder;

  /// What is known of a row: its positions, and whether it has any.
  struct Row {
    Value lo, hi, some;
  };

  mlir::Type indexType() { return mlir::IndexType::get(rows.getContext()); }
  Value constant(Builder &b, int64_t value);
  Value compare(Builder &b, mlir::arith::CmpIPredicate predicate, Value lhs, Value rhs);
  Row rowOf(Builder &b, LevelLoopOp loop);
  /// Where the part of a row that a share holds is kept: (share, 1 where the row begins in it, the other loops).
  llvm::SmallVector<Value> place(Value share, Value begins, llvm::ArrayRef<LoopOp> others);
  void makeWorkspace();
  void makeFinish();
  void makeShares();
  Value shareOfRow(Builder &b, const Row &row, Value first, Value end);

  LoopOp rows;
  LevelLoopOp entries;
  Reduction reduction;
  int64_t factor;
  mlir::Location loc;
  llvm::SmallVector<LoopOp> chain;
  LoopName name, sharesName;
  Value count;     // of the shares
  Value size;      // of a share
  Value workspace; // the parts of rows
};

} // namespace lacis

#endif // LACIS_LIB_DIALECT_LACIS_STEPS_ENTRYSHARES_H
