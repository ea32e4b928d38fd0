// SPDX-License-Identifier: Apache-2.0
/// \file
/// share: part[share] = s; after: y[i] = the parts  -->  before: y[i] = 0; share: y[i] += s, atomically
#include "RaceStrategies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;

namespace {
/// What `split_nnz` made of the rows that several shares meet.
struct Parts {
  WriteOp part;     // of a row, into a workspace
  scf::IfOp choice; // a row that lies in the share whole, else a part of one
  ReadOp read;      // of a part, in the nest after the shares
  LoopOp sum;       // of the parts, there

  WriteOp whole() { return cast<WriteOp>(choice.thenBlock()->getTerminator()->getPrevNode()); }
};
} // namespace

static std::optional<Parts> partsOf(LoopOp nest) {
  std::optional<Parts> found;
  nest->walk([&](WriteOp write) {
    auto workspace = write.getTensor().getDefiningOp<WorkspaceOp>();
    auto choice = dyn_cast<scf::IfOp>(write->getParentOp());
    if (!workspace || !choice || write->getBlock() != choice.elseBlock())
      return;
    for (Operation *user : workspace->getUsers())
      if (auto read = dyn_cast<ReadOp>(user))
        if (auto sum = dyn_cast<LoopOp>(read->getParentOp()); sum && sum.getNumResults() == 1)
          found = Parts{write, choice, read, sum};
  });
  return found;
}

/// The instruction that adds as `combiner` does, or nothing.
static StringRef instructionOf(Operation *combiner) {
  return llvm::TypeSwitch<Operation *, StringRef>(combiner)
      .Case([](arith::AddFOp) { return "fadd"; })
      .Case([](arith::MaximumFOp) { return "fmaximum"; })
      .Case([](arith::OrIOp) { return "_or"; })
      .Default([](Operation *) { return ""; });
}

LogicalResult lacis::addAtomically(LoopOp shares, Nest &nest, Location loc) {
  std::optional<Parts> parts = partsOf(outermostLoop(shares));
  if (!parts)
    return success(); // another loop of the shares has said so
  Block *then = parts->choice.thenBlock();
  auto whole = isa<WriteOp>(then->getTerminator()->getPrevNode()) ? parts->whole() : WriteOp();
  if (!whole || whole.getValue() != parts->part.getValue())
    return emitError(loc) << "race: 'atomic' adds to the output itself, so nothing can follow the sum (a bias, an activation, "
                          << "a rounding); 'order' would do";
  StringRef instruction = instructionOf(combinerOf(parts->sum));
  if (instruction.empty())
    return emitError(loc) << "race: no instruction brings these parts together atomically; 'order' would do";
  if (instruction == "fadd" && !nest.getFunction()->hasAttr("lacis.nondeterministic"))
    return emitError(loc) << "race: with 'atomic' the sum depends on which part arrives first; 'order' would do, or "
                          << "deterministic=False";
  // A part is finished as a whole row is, and added.
  IRMapping mapping;
  OpBuilder b(parts->part);
  for (Operation &op : then->without_terminator())
    b.clone(op, mapping);
  auto added = cast<WriteOp>(parts->part->getPrevNode());
  added->setAttr("lacis.atomic", b.getStringAttr(instruction));
  // Rows that are not written whole begin before the shares as what the sum begins with.
  LoopOp begin = outermostLoop(parts->sum);
  begin->moveBefore(outermostLoop(shares));
  begin->setAttr("lacis.begins", b.getUnitAttr());
  Operation *workspace = parts->read.getTensor().getDefiningOp();
  parts->sum.getResult(0).replaceAllUsesWith(parts->sum.getInits()[0]);
  parts->sum.erase();
  parts->part.erase();
  workspace->erase();
  return success();
}
