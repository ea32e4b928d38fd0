// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums of a rolled loop that can be complete one round later than they begin.
#ifndef LACIS_DIALECT_LACIS_IR_POSTPONEDSUMS_H
#define LACIS_DIALECT_LACIS_IR_POSTPONEDSUMS_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"

namespace lacis {

/// The loops that a round has around its statements, outermost first: over the tiles of a stored block, each a round of its
/// own, or over the positions of a level below.
llvm::SmallVector<LoopOpInterface> loopsOfRound(LoopOpInterface round);
/// Does the number follow from those of a round, or of a tile of it?
bool changesInRound(mlir::Value number, LoopOpInterface round);
/// The conditions of the guards that stand right around an operation, outermost first.
llvm::SmallVector<mlir::Value> guardsAround(mlir::Operation *op);
/// Are they the same rounds in each round of `rows`, a loop around them?
bool sharesRounds(LoopOp rows, LoopOpInterface round);

/// A tensor that rounds hand on, the one statement of a round that uses it, and the loop of its sum.
struct CarriedSum {
  mlir::Value tensor;
  LoopOp statement, sum;
};

/// What a round adds to the tensor, where a single statement uses it and writes a sum; else nullopt.
std::optional<CarriedSum> carriedSum(LoopOpInterface round, mlir::Value tensor);

/// Sums of products that can wait for the next round, as `skew` wants: of what their round made and of an operand that no
/// other product of the round takes. None where nothing would run beside them: no product is of operands alone.
llvm::SmallVector<CarriedSum> sumsToPostpone(LoopOpInterface round);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_POSTPONEDSUMS_H
