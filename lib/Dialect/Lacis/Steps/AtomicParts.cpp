// SPDX-License-Identifier: Apache-2.0
/// \file
/// share: part[share] = s; after: y[i] = the parts  -->  before: y[i] = 0; share: y[i] += s, atomically
#include "ShareParts.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;

/// The instruction that adds as `combiner` does, or nothing.
static StringRef instructionOf(Operation *combiner) {
  return llvm::TypeSwitch<Operation *, StringRef>(combiner)
      .Case([](arith::AddFOp) { return "fadd"; })
      .Case([](arith::MaximumFOp) { return "fmaximum"; })
      .Case([](arith::OrIOp) { return "_or"; })
      .Default([](Operation *) { return ""; });
}

static std::string objection(LoopOp shares, Nest &nest) {
  std::optional<ShareParts> parts = partsOf(outermostLoop(shares));
  if (!parts)
    return "'atomic' adds the parts of rows that shares of entries leave; there are none here";
  auto *last = parts->choice.thenBlock()->getTerminator()->getPrevNode();
  auto whole = dyn_cast_or_null<WriteOp>(last);
  if (!whole || whole.getValue() != parts->part.getValue())
    return "'atomic' adds to the output itself, so nothing can follow the sum (a bias, an activation, a rounding)";
  StringRef instruction = instructionOf(combinerOf(parts->sum));
  if (instruction.empty())
    return "no instruction brings these parts together atomically";
  if (instruction == "fadd" && !nest.getFunction()->hasAttr("lacis.nondeterministic"))
    return "with 'atomic' the sum depends on which part arrives first, and only deterministic=False allows that";
  return "";
}

static void addAtomically(LoopOp shares, Nest &, Location) {
  ShareParts parts = *partsOf(outermostLoop(shares));
  // A part is finished as a whole row is, and added.
  IRMapping mapping;
  OpBuilder b(parts.part);
  for (Operation &op : parts.choice.thenBlock()->without_terminator())
    b.clone(op, mapping);
  auto added = cast<WriteOp>(parts.part->getPrevNode());
  added->setAttr("lacis.atomic", b.getStringAttr(instructionOf(combinerOf(parts.sum))));
  // Rows that are not written whole begin before the shares as what the sum begins with.
  LoopOp begin = outermostLoop(parts.sum);
  begin->moveBefore(outermostLoop(shares));
  begin->setAttr("lacis.begins", b.getUnitAttr());
  Operation *workspace = parts.workspace();
  parts.sum.getResult(0).replaceAllUsesWith(parts.sum.getInits()[0]);
  parts.sum.erase();
  parts.part.erase();
  workspace->erase();
}

static const bool registered = registerRaceStrategy({"atomic", objection, addAtomically});
