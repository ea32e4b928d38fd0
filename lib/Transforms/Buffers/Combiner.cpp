// SPDX-License-Identifier: Apache-2.0
/// \file
/// What brings two values of a sum together.
#include "Combiner.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;

std::optional<vector::CombiningKind> lacis::kindOf(Operation *combiner) {
  return llvm::TypeSwitch<Operation *, std::optional<vector::CombiningKind>>(combiner)
      .Case<arith::AddFOp, arith::AddIOp>([](auto) { return vector::CombiningKind::ADD; })
      .Case<arith::MulFOp, arith::MulIOp>([](auto) { return vector::CombiningKind::MUL; })
      .Case([](arith::MaximumFOp) { return vector::CombiningKind::MAXIMUMF; })
      .Case([](arith::MinimumFOp) { return vector::CombiningKind::MINIMUMF; })
      .Case([](arith::OrIOp) { return vector::CombiningKind::OR; })
      .Case([](arith::AndIOp) { return vector::CombiningKind::AND; })
      .Case([](vector::ReductionOp reduction) { return reduction.getKind(); })
      .Default([](Operation *) { return std::nullopt; });
}
