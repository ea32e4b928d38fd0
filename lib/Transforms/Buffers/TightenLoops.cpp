// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i in n: if i * 32 + k < m: s  -->  for i in min(n, ceil((m - k) / 32)): s
///
/// Every lane of a warp has a bound of its own in place of a test in each round, so that rounds can be in flight together.
#include "lacis/Transforms/Passes.h"

namespace lacis {
#define GEN_PASS_DEF_LACISTIGHTENLOOPS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

/// i * factor + rest < limit, where only i changes in the loop.
struct Bound {
  int64_t factor;
  Value rest, limit;
};

std::optional<Bound> boundOf(scf::ForOp loop, Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt || !loop.isDefinedOutsideOfLoop(compare.getRhs()))
    return std::nullopt;
  auto sum = compare.getLhs().getDefiningOp<arith::AddIOp>();
  for (unsigned side : {0u, 1u}) {
    auto scaled = sum ? sum->getOperand(side).getDefiningOp<arith::MulIOp>() : arith::MulIOp();
    Value rest = sum ? sum->getOperand(1 - side) : Value();
    if (!scaled || scaled.getLhs() != loop.getInductionVar() || !loop.isDefinedOutsideOfLoop(rest))
      continue;
    if (auto factor = getConstantIntValue(scaled.getRhs()); factor && *factor > 0)
      return Bound{*factor, rest, compare.getRhs()};
  }
  return std::nullopt;
}

/// The guard around all that the loop does, which passes the carried values on where it does not hold; or null.
scf::IfOp guardOf(scf::ForOp loop) {
  scf::IfOp guard;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto found = dyn_cast<scf::IfOp>(op)) {
      if (guard)
        return {};
      guard = found;
    } else if (guard || !isPure(&op)) {
      return {};
    }
  }
  if (!guard || !llvm::equal(loop.getBody()->getTerminator()->getOperands(), guard.getResults()))
    return {};
  if (!guard.elseBlock())
    return guard;
  bool passes = guard.elseBlock()->getOperations().size() == 1 &&
                llvm::equal(guard.elseYield().getOperands(), loop.getRegionIterArgs());
  return passes ? guard : scf::IfOp();
}

void tighten(scf::ForOp loop) {
  scf::IfOp guard = guardOf(loop);
  std::optional<Bound> bound = guard ? boundOf(loop, guard.getCondition()) : std::nullopt;
  if (!bound || !matchPattern(loop.getLowerBound(), m_Zero()) || !matchPattern(loop.getStep(), m_One()))
    return;
  Location loc = loop.getLoc();
  OpBuilder b(loop);
  Type type = bound->rest.getType();
  auto constant = [&](int64_t value) { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value)); };
  Value left = arith::SubIOp::create(b, loc, bound->limit, bound->rest);
  left = arith::AddIOp::create(b, loc, left, constant(bound->factor - 1));
  left = arith::MaxSIOp::create(b, loc, left, constant(0));
  Value rounds = arith::DivUIOp::create(b, loc, left, constant(bound->factor));
  loop.setUpperBound(arith::MinSIOp::create(b, loc, rounds, loop.getUpperBound()));
  Block *then = guard.thenBlock();
  SmallVector<Value> yielded(then->getTerminator()->getOperands());
  then->getTerminator()->erase();
  loop.getBody()->getOperations().splice(guard->getIterator(), then->getOperations());
  guard.replaceAllUsesWith(yielded);
  guard.erase();
}

struct TightenLoops : lacis::impl::LacisTightenLoopsBase<TightenLoops> {
  void runOnOperation() override {
    getOperation().walk([](scf::ForOp loop) {
      if (!loop->hasAttr("lacis.bind"))
        tighten(loop);
    });
  }
};

} // namespace
