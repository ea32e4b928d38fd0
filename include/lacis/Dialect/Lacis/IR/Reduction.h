// SPDX-License-Identifier: Apache-2.0
/// \file
/// What loops bring together: recorded where a loop is made, and what it means for values.
#ifndef LACIS_DIALECT_LACIS_IR_REDUCTION_H
#define LACIS_DIALECT_LACIS_IR_REDUCTION_H

#include "lacis/Dialect/Lacis/IR/LacisOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace lacis {

/// How a loop that carries one value brings its rounds together, as it says itself; nothing where it does not.
std::optional<Reduction> reductionOf(mlir::Operation *loop);

/// `lhs` and `rhs` brought together.
mlir::Value combine(mlir::OpBuilder &b, mlir::Location loc, Reduction kind, mlir::Value lhs, mlir::Value rhs);
/// What changes nothing that it is brought together with, in all lanes of a vector.
mlir::TypedAttr neutralOf(Reduction kind, mlir::Type type);
/// `value` is known to change nothing; of sums a zero of any sign.
bool isNeutral(Reduction kind, mlir::Value value);

/// The operation of a round that brings a value to what is carried.
struct Combination {
  mlir::Operation *op = nullptr;
  mlir::Value added = {};
  llvm::SmallVector<mlir::Value> conditions = {}; // under which it does
  bool isOnly = true; // no other one does: before an inner loop, or on the other side of a condition
  /// What the operation does; nothing where it is none that loops record.
  std::optional<Reduction> kind() const;
};

/// The operation that makes `next` of `carried`, behind inner loops, guards and selections, as the statement of an
/// expression or a text has it.
std::optional<Combination> combinationOf(mlir::Value next, mlir::Value carried);
/// That of the innermost rounds of a loop that carries one value; nothing where several operations bring values to it.
std::optional<Combination> combinationOf(mlir::Operation *loop);

/// The two factors of what each round of a loop adds to its sum, under conditions or always; or null.
mlir::arith::MulFOp factorsOf(mlir::Operation *loop);

/// What the body of a loop with so many carried values, which a text does not say, does with all of them.
std::optional<Reduction> reductionIn(mlir::Region &body, unsigned carried);
/// The body does what is recorded.
llvm::LogicalResult verifyReduction(LoopOpInterface loop);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_REDUCTION_H
