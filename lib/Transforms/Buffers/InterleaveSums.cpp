// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i in lo..hi: c += s[i]  -->  c += s[lo], where the count is odd; for i by 2: c0 += s[i]; c1 += s[i+1]; c += c0 + c1
///
/// A sum waits for its last addition in every round; sums of their own do not wait for one another. The order in which
/// they are added up depends on the number of rounds alone.
#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "lacis/Transforms/Passes.h"

#include "mlir/AsmParser/AsmParser.h"

namespace lacis {
#define GEN_PASS_DEF_LACISINTERLEAVESUMS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

class Interleaver {
public:
  Interleaver(scf::ForOp loop, int64_t sums, int64_t rounds) : loop(loop), sums(sums), rounds(rounds), b(loop) {}

  /// Leaves a loop as it is that does not say how its sums are added up.
  void run() {
    auto known = loop->getAttrOfType<ReductionAttr>("lacis.reduce");
    if (!known)
      return;
    kind = known.getValue();
    Location loc = loop.getLoc();
    for (Type type : loop.getResultTypes())
      neutrals.push_back(arith::ConstantOp::create(b, loc, neutralOf(kind, type)));
    Value lo = loop.getLowerBound(), hi = loop.getUpperBound();
    Value count = arith::MaxSIOp::create(b, loc, arith::SubIOp::create(b, loc, hi, lo), constant(b, 0));
    Value single = arith::RemUIOp::create(b, loc, count, constant(b, rounds));
    Value middle = arith::AddIOp::create(b, loc, lo, single);
    scf::ForOp rest = make(lo, middle, 1, SmallVector<Value>(loop.getInits()));
    SmallVector<Value> starts;
    for (int64_t sum = 0; sum < sums; ++sum)
      llvm::append_range(starts, neutrals);
    scf::ForOp main = make(middle, hi, rounds, starts);
    SmallVector<Value> results(rest.getResults());
    for (int64_t sum = 0; sum < sums; ++sum)
      results = combine(results, SmallVector<Value>(main.getResults().slice(sum * results.size(), results.size())));
    loop.replaceAllUsesWith(results);
    loop.erase();
  }

private:
  Value constant(OpBuilder &at, int64_t value) {
    Type type = loop.getInductionVar().getType();
    return arith::ConstantOp::create(at, loop.getLoc(), at.getIntegerAttr(type, value));
  }

  /// A loop that runs `step` rounds at once, in turn for each set of carried values.
  scf::ForOp make(Value lo, Value hi, int64_t step, ArrayRef<Value> inits) {
    Location loc = loop.getLoc();
    auto made = scf::ForOp::create(b, loc, lo, hi, constant(b, step), inits);
    made->setAttrs(loop->getDiscardableAttrDictionary());
    made->removeAttr("lacis.sums");
    made->removeAttr("lacis.rounds");
    made->setAttr("llvm.loop_annotation",
                  parseAttribute("#llvm.loop_annotation<unroll = <disable = true>>", b.getContext()));
    made.getBody()->clear();
    unsigned own = loop.getNumResults();
    SmallVector<Value> carried(made.getRegionIterArgs());
    OpBuilder inner = OpBuilder::atBlockEnd(made.getBody());
    for (int64_t round = 0; round < step; ++round) {
      IRMapping mapping;
      Value place = made.getInductionVar();
      if (round > 0)
        place = arith::AddIOp::create(inner, loc, place, constant(inner, round));
      mapping.map(loop.getInductionVar(), place);
      MutableArrayRef<Value> sum(carried.begin() + round % (inits.size() / own) * own, own);
      mapping.map(loop.getRegionIterArgs(), sum);
      for (Operation &op : loop.getBody()->without_terminator())
        inner.clone(op, mapping);
      for (auto [value, yielded] : llvm::zip(sum, loop.getYieldedValues()))
        value = mapping.lookupOrDefault(yielded);
    }
    scf::YieldOp::create(inner, loc, carried);
    return made;
  }

  SmallVector<Value> combine(ArrayRef<Value> left, ArrayRef<Value> right) {
    SmallVector<Value> result;
    for (auto [one, other] : llvm::zip(left, right))
      result.push_back(lacis::combine(b, loop.getLoc(), kind, one, other));
    return result;
  }

  scf::ForOp loop;
  int64_t sums, rounds;
  OpBuilder b;
  Reduction kind = Reduction::Add;
  SmallVector<Value> neutrals;
};

struct InterleaveSums : lacis::impl::LacisInterleaveSumsBase<InterleaveSums> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> marked;
    getOperation().walk([&](scf::ForOp loop) {
      if (loop->hasAttr("lacis.sums"))
        marked.push_back(loop);
    });
    for (scf::ForOp loop : marked)
      Interleaver(loop, loop->getAttrOfType<IntegerAttr>("lacis.sums").getInt(),
                  loop->getAttrOfType<IntegerAttr>("lacis.rounds").getInt())
          .run();
  }
};

} // namespace
