// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest that adds to the output itself what an operand's lower levels find of it.
#include "PushedOutput.h"

using namespace mlir;
using namespace lacis;

/// The loops of the walk that is at the end of `block`. What is constant stands before them, so that a nest is perfect.
static void markMeeting(Block *block) {
  auto outermost = llvm::to_vector(block->getOps<LoopOp>());
  if (outermost.empty())
    return;
  outermost.back()->walk([](LoopOp loop) { loop.setMeets(true); });
  LoopOp nest = outermostLoop(outermost.back());
  for (auto number : llvm::make_early_inc_range(block->getOps<arith::ConstantIndexOp>()))
    if (nest->isProperAncestor(number))
      number->moveBefore(nest);
}

LogicalResult PushedOutput::build(OpBuilder &b) {
  RunningSum sum(root, product, product, output);
  sum.prepare(b, letters);
  setRunning(&sum, /*adds=*/false);
  OpBuilder before = b, walk = b; // each moves to where sizes stand
  if (failed(fillAll(before)))
    return failure();
  SmallVector<Letter> all(letters);
  OpBuilder inner = openOwners(walk);
  auto place = [&](OpBuilder &) {
    return llvm::map_to_vector(letters, [](const Letter &letter) { return letter.coordinate; });
  };
  if (failed(push(inner, sum.getTensor(), place)))
    return failure();
  markMeeting(inner.getBlock());
  closeLoops();
  return sum.isFinished() ? success() : sum.finish(b, all, sizes);
}
