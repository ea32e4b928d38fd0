// SPDX-License-Identifier: Apache-2.0
/// \file
/// The copies of a role that has no warps of its own: consumers begin them, a place before each that they take.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_COPIESAHEAD_H
#define LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_COPIESAHEAD_H

#include "RoleLowering.h"

namespace lacis::ampere {

/// The loops of a producer whose rounds can be begun one by one, ring by ring, outermost first: each but the first has
/// a constant number of rounds and is all that the one around it does with rings, and nothing is copied behind them.
/// Empty where the producer has no such loops, or where there are several groups.
llvm::SmallVector<mlir::scf::ForOp> loopsToBegin(RolesOp roles);

class CopiesAhead : public RoleLowering {
public:
  /// `group`: its lane is the number of the thread among all consumers'.
  CopiesAhead(const SharedMemory &memory, Warpgroup group, mlir::ArrayRef<mlir::scf::ForOp> loops,
              mlir::func::FuncOp kernel)
      : RoleLowering(memory, group, /*isProducer=*/true, /*byRows=*/false, kernel), loops(loops) {}

  /// What is copied before the loops, and the first rounds: all stages of each ring but one.
  llvm::LogicalResult begin(mlir::OpBuilder &b);
  /// Begins what is copied `stages - 1` rounds behind the place `at`, if there is such a round.
  llvm::LogicalResult copy(mlir::OpBuilder &b, RingOp ring, mlir::ArrayRef<mlir::Value> at);
  bool copies(RingOp ring) { return argumentOf(ring) != nullptr; }

private:
  mlir::BlockArgument argumentOf(RingOp ring);
  llvm::LogicalResult copyRound(mlir::OpBuilder &b, RingOp ring, mlir::Value round, mlir::ValueRange place);
  llvm::SmallVector<mlir::Operation *> partOf(mlir::BlockArgument ring);

  /// Counts the loops up to a round of the innermost; is there such a round?
  mlir::Value setCounters(mlir::OpBuilder &b, mlir::Value round);

  llvm::SmallVector<mlir::scf::ForOp> loops;
};

} // namespace lacis::ampere

#endif // LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_COPIESAHEAD_H
