// SPDX-License-Identifier: Apache-2.0
/// \file
/// The sum in memory that iterations of a loop add to where they find their element.
#include "PushedSum.h"

using namespace mlir;
using namespace lacis;

std::optional<PushedSum> lacis::pushedSum(LoopOp loop) {
  std::optional<PushedSum> found;
  if (!loop.getMeets() || loop.getNumResults() != 0)
    return found;
  bool hasShares = loop->walk([](OwnerOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (hasShares) // they finish the rows that lie in them, and leave parts of others
    return found;
  loop->walk([&](WriteOp write) {
    for (auto read : write->getBlock()->getOps<ReadOp>()) {
      bool isSame = read.getTensor() == write.getTensor() && llvm::equal(read.getIndices(), write.getIndices());
      auto combination = isSame ? combinationOf(write.getValue(), read.getResult()) : std::nullopt;
      if (std::optional<Reduction> kind = combination ? combination->kind() : std::nullopt)
        found = PushedSum{read, write, *kind};
    }
  });
  return found;
}
