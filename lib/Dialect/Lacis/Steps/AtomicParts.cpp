// SPDX-License-Identifier: Apache-2.0
/// \file
/// share: part[share] = s; after: y[i] = the parts  -->  before: y[i] = 0; share: y[i] += s, atomically
///
/// Of a loop that carries a sum each iteration becomes a unit, which adds to the output too. What a loop adds to where it
/// finds its element, it adds atomically.
#include "CarriedUnits.h"
#include "PushedSum.h"
#include "ShareParts.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace lacis;

/// The instruction that brings values of `type` together, or nothing.
static std::optional<AtomicKind> instructionOf(std::optional<Reduction> kind, Type type) {
  switch (kind.value_or(Reduction::Mul)) {
  case Reduction::Add:
    return isa<FloatType>(type) ? std::optional(AtomicKind::AddF) : std::nullopt;
  case Reduction::Max:
    return AtomicKind::MaximumF;
  case Reduction::Or:
    return AtomicKind::Or;
  default:
    return std::nullopt;
  }
}

static std::optional<AtomicKind> instructionOf(LoopOp loop) {
  return instructionOf(reductionOf(loop), loop.getResultTypes()[0]);
}

static std::optional<AtomicKind> instructionOf(PushedSum sum) {
  return instructionOf(sum.kind, sum.write.getValue().getType());
}

/// Why a sum cannot be added to the output by the `instruction`, where `write` stores it, or nothing. `write` is null where
/// the sum is changed before it is stored.
static std::string objectionToAdding(std::optional<AtomicKind> instruction, WriteOp write, Nest &nest) {
  if (!write)
    return "'atomic' adds to the output itself, so nothing can follow the sum (a bias, an activation, a rounding)";
  if (!instruction)
    return "no instruction brings these parts together atomically";
  if (instruction == AtomicKind::AddF && !nest.getFunction()->hasAttr("lacis.nondeterministic"))
    return "with 'atomic' the sum depends on which part arrives first, and only deterministic=False allows that";
  return "";
}

/// The last operation before the terminator, where it stores `sum`; else null.
static WriteOp storeOf(Value sum, Block *block) {
  auto write = dyn_cast_or_null<WriteOp>(block->getTerminator()->getPrevNode());
  return write && write.getValue() == sum ? write : WriteOp();
}

static std::string objection(LoopOp loop, Nest &nest) {
  if (std::optional<PushedSum> sum = pushedSum(loop))
    return objectionToAdding(instructionOf(*sum), sum->write, nest);
  if (loop.getNumResults() != 0) {
    std::string why = objectionToUnits(loop);
    return why.empty() ? objectionToAdding(instructionOf(loop), storeOf(loop.getResult(0), loop->getBlock()), nest) : why;
  }
  std::optional<ShareParts> parts = partsOf(outermostLoop(loop));
  if (!parts)
    return "'atomic' adds the parts of rows that shares of entries leave; there are none here";
  WriteOp whole = storeOf(parts->part.getValue(), parts->choice.thenBlock());
  return objectionToAdding(instructionOf(parts->sum), whole, nest);
}

/// Before the nest, each element begins as what the sum begins with; each unit adds its sum.
static void addUnits(LoopOp loop, Location loc) {
  LoopOp top = outermostLoop(loop);
  OpBuilder b(top);
  LoopOp begin = copyNest(b, loop);
  outermostLoop(begin).setBegins(true);
  begin.getResult(0).replaceAllUsesWith(begin.getInits()[0]);
  begin.erase();
  WriteOp store = storeOf(loop.getResult(0), loop->getBlock());
  store.setAtomic(instructionOf(loop));
  std::optional<int64_t> known = loop.getTrip(); // it may stand inside the nest
  Value count = known ? arith::ConstantIndexOp::create(b, loc, *known).getResult() : loop.getUpper();
  makeUnits(loop, count, [](OpBuilder &, Value, Value) {});
}

/// y[i] = y[i] + s  -->  y[i] += neutral + s, atomically
static void addPushed(PushedSum sum, Location loc) {
  OpBuilder b(sum.read);
  TypedAttr neutral = neutralOf(sum.kind, sum.write.getValue().getType());
  sum.read.replaceAllUsesWith(arith::ConstantOp::create(b, loc, neutral).getResult());
  sum.write.setAtomic(instructionOf(sum));
  sum.read.erase();
}

static void addAtomically(LoopOp shares, Nest &, Location loc) {
  if (std::optional<PushedSum> sum = pushedSum(shares))
    return addPushed(*sum, loc);
  if (shares.getNumResults() != 0)
    return addUnits(shares, loc);
  ShareParts parts = *partsOf(outermostLoop(shares));
  // A part is finished as a whole row is, and added.
  IRMapping mapping;
  OpBuilder b(parts.part);
  for (Operation &op : parts.choice.thenBlock()->without_terminator())
    b.clone(op, mapping);
  auto added = cast<WriteOp>(parts.part->getPrevNode());
  added.setAtomic(instructionOf(parts.sum));
  // Rows that are not written whole begin before the shares as what the sum begins with.
  LoopOp begin = outermostLoop(parts.sum);
  begin->moveBefore(outermostLoop(shares));
  begin.setBegins(true);
  Operation *workspace = parts.workspace();
  parts.sum.getResult(0).replaceAllUsesWith(parts.sum.getInits()[0]);
  parts.sum.erase();
  parts.part.erase();
  workspace->erase();
}

static const bool registered = registerRaceStrategy({"atomic", objection, addAtomically});
