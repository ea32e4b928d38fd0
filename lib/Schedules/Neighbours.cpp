// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loops whose rounds do the same on neighbours: they are lanes, though an entry is walked in each.
#include "Facts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lacis;

namespace {
/// Follows what is one more in the next round of a loop.
class Neighbours {
public:
  explicit Neighbours(LoopOp loop) : loop(loop) { next.insert(loop.getCoordinate()); }

  bool run() {
    bool walks = false;
    WalkResult result = loop->walk<WalkOrder::PreOrder>([&](Operation *op) {
      walks |= isa<LevelLoopOp>(op) || (isa<LoopOp>(op) && op != loop);
      return op == loop || !touches(op) || follow(op) ? WalkResult::advance() : WalkResult::interrupt();
    });
    return walks && hasBand && !result.wasInterrupted();
  }

private:
  bool isNext(Value value) const { return next.contains(value); }
  bool touches(Operation *op) const { return llvm::any_of(op->getOperands(), [&](Value v) { return isNext(v); }); }

  /// The last of `values` goes on in steps of one, and no other does.
  bool isLast(ValueRange values) const {
    return !values.empty() && isNext(values.back()) && llvm::none_of(values.drop_back(), [&](Value v) { return isNext(v); });
  }

  bool follow(Operation *op) {
    if (isa<arith::AddIOp>(op) && isNext(op->getOperand(0)) != isNext(op->getOperand(1)))
      return next.insert(op->getResult(0)).second;
    if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      bool isLow = compare.getPredicate() == arith::CmpIPredicate::sge;
      hasBand |= isLow;
      return isNext(compare.getLhs()) && !isNext(compare.getRhs()) &&
             (isLow || compare.getPredicate() == arith::CmpIPredicate::slt);
    }
    if (auto locate = dyn_cast<LocateOp>(op))
      return !isNext(locate.getParent()) && isLast(locate.getDigits()) && next.insert(locate.getResult()).second;
    if (auto read = dyn_cast<ReadOp>(op))
      return isLast(read.getIndices());
    if (auto write = dyn_cast<WriteOp>(op))
      return isLast(write.getIndices());
    return isa<ValueOp, EntryOp, SetOp>(op);
  }

  LoopOp loop;
  DenseSet<Value> next;
  bool hasBand = false; // some rounds lie before those that a binding leaves inside of an axis
};
} // namespace

LoopOp lacis::neighbourLoop(Nest &nest) {
  SmallVector<LoopOp> chain = nest.mainChain();
  for (LoopOp loop : llvm::reverse(chain))
    if (!loop.getTrip() && !isMarked(loop) && Neighbours(loop).run())
      return loop;
  return {};
}
