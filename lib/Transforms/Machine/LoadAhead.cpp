// SPDX-License-Identifier: Apache-2.0
/// \file
/// for p: y += f(load(p))  -->  r = load(0); for p: next = load(p + 1); y += f(r); r = next
///
/// A round adds up what registers hold, so the loads of later rounds are under way while it does. What an address is
/// made of is loaded as many rounds before. Past the last round its loads are repeated: nothing outside of it is read.
#include "lacis/Transforms/Passes.h"

#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace lacis {
#define GEN_PASS_DEF_LACISLOADAHEAD
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

/// Loops inside with so few rounds are no loops any more: what they load is loaded ahead too.
constexpr int64_t kMostRounds = 8;

using Operations = llvm::SetVector<Operation *>;

class Ahead {
public:
  Ahead(scf::ForOp loop, int64_t rounds) : loop(loop), rounds(rounds), loc(loop.getLoc()) {}

  LogicalResult run() {
    if (loop->hasAttr("lacis.bind"))
      return refuse("is bound to units, which run its rounds at once");
    unrollInner();
    WalkResult written = loop.getBody()->walk([](Operation *op) {
      bool known = isa<scf::ForOp, scf::IfOp, LLVM::LoadOp, NVVM::MmaOp>(op) || isMemoryEffectFree(op);
      return known ? WalkResult::advance() : WalkResult::interrupt();
    });
    if (written.wasInterrupted())
      return refuse("writes in its rounds, or waits for others, so that no load may pass them");
    Operations loads = firstLoads();
    if (loads.empty())
      return refuse(
          "has no load of its own that depends on its coordinate alone; those of loops and guards inside stay there");
    while (!loads.empty())
      loads = advance(loads);
    return success();
  }

private:
  LogicalResult refuse(const Twine &why) {
    auto name = loop->getAttrOfType<StringAttr>("lacis.name");
    return loop.emitError("pipeline: loop '") << (name ? name.getValue() : "") << "' " << why;
  }

  /// The rounds of short loops inside, one after another.
  void unrollInner() {
    SmallVector<scf::ForOp> inner;
    loop.getBody()->walk([&](scf::ForOp op) { inner.push_back(op); });
    for (scf::ForOp op : inner) {
      auto lo = getConstantIntValue(op.getLowerBound()), hi = getConstantIntValue(op.getUpperBound());
      bool isShort = lo && hi && getConstantIntValue(op.getStep()) == 1 && *hi - *lo <= kMostRounds;
      if (isShort && !op->hasAttr("lacis.bind"))
        (void)loopUnrollFull(op); // what stays a loop keeps its loads
    }
  }

  /// What `roots` are made of in one round, themselves included, in the order of the round.
  Operations sliceOf(const Operations &roots) {
    Operations needed = roots;
    SmallVector<Operation *> slice;
    for (Operation &op : llvm::reverse(*loop.getBody())) {
      if (!needed.contains(&op))
        continue;
      slice.push_back(&op);
      for (Value operand : op.getOperands())
        if (Operation *source = operand.getDefiningOp(); source && source->getBlock() == loop.getBody())
          needed.insert(source);
    }
    return Operations(slice.rbegin(), slice.rend());
  }

  /// Those of `loads` that `users` need, but for what these loads need themselves.
  Operations neededBy(const Operations &users, const Operations &loads) {
    Operations needed, found;
    for (Operation &op : llvm::reverse(*loop.getBody())) {
      if (loads.contains(&op) && needed.contains(&op))
        found.insert(&op);
      if (!users.contains(&op) && (!needed.contains(&op) || loads.contains(&op)))
        continue;
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (Operation *source = operand.getDefiningOp(); source && source->getBlock() == loop.getBody())
            needed.insert(source);
      });
    }
    return found;
  }

  /// Does the round of an operation need nothing but the coordinate?
  bool isFree(const Operations &slice) {
    return llvm::none_of(slice, [&](Operation *op) {
      auto load = dyn_cast<LLVM::LoadOp>(op);
      bool stays =
          op->getNumRegions() != 0 || (load && (load.getVolatile_() || !OpBuilder(op).getZeroAttr(load.getType())));
      return stays || llvm::any_of(op->getOperands(), [&](Value operand) {
               return llvm::is_contained(loop.getRegionIterArgs(), operand);
             });
    });
  }

  /// The loads whose results the round adds up, of those that need nothing but its coordinate.
  Operations firstLoads() {
    Operations loads, addresses, users;
    for (auto load : loop.getBody()->getOps<LLVM::LoadOp>()) {
      Operations root, slice;
      root.insert(load);
      if (slice = sliceOf(root); !isFree(slice))
        continue;
      loads.insert(load);
      addresses.insert_range(slice);
    }
    for (Operation &op : *loop.getBody())
      if (!addresses.contains(&op))
        users.insert(&op);
    return neededBy(users, loads);
  }

  Value constant(OpBuilder &b, int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(loop.getInductionVar().getType(), value));
  }

  /// The results of `loads` in the round at `place`. Frozen, LLVM does not move them to where they are used.
  SmallVector<Value> loadAt(OpBuilder &b, const Operations &slice, const Operations &loads, Value place,
                            IRMapping &mapping) {
    mapping.map(loop.getInductionVar(), place);
    for (Operation *op : slice)
      b.clone(*op, mapping);
    return llvm::map_to_vector(loads, [&](Operation *load) -> Value {
      return LLVM::FreezeOp::create(b, loc, mapping.lookup(load->getResult(0)));
    });
  }

  /// What the first rounds load, one round after another; zeros where there is none.
  SmallVector<Value> first(OpBuilder &b, const Operations &slice, const Operations &loads, Value last) {
    SmallVector<Type> types;
    for (int64_t round = 0; round < rounds; ++round)
      for (Operation *load : loads)
        types.push_back(load->getResult(0).getType());
    Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, loop.getLowerBound(), loop.getUpperBound());
    auto guard = scf::IfOp::create(b, loc, types, some, /*addThenBlock=*/true, /*addElseBlock=*/true);
    OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
    SmallVector<Value> loaded, none;
    for (int64_t round = 0; round < rounds; ++round) {
      Value place = loop.getLowerBound(), step = loop.getStep();
      for (int64_t n = 0; n < round; ++n) // a step at a time: no sum lies past the last round
        place = arith::MinSIOp::create(then, loc, last, arith::AddIOp::create(then, loc, place, step));
      IRMapping mapping;
      llvm::append_range(loaded, loadAt(then, slice, loads, place, mapping));
    }
    for (Type type : types)
      none.push_back(arith::ConstantOp::create(otherwise, loc, cast<TypedAttr>(b.getZeroAttr(type))));
    scf::YieldOp::create(then, loc, loaded);
    scf::YieldOp::create(otherwise, loc, none);
    return SmallVector<Value>(guard.getResults());
  }

  /// The round that lies ahead of another, and the last one.
  struct Limits {
    Value last, latest, distance;
  };

  Limits limits(OpBuilder &b) {
    Value step = loop.getStep(), end = arith::SubIOp::create(b, loc, loop.getUpperBound(), constant(b, 1));
    Value span = arith::SubIOp::create(b, loc, end, loop.getLowerBound());
    Value last = arith::SubIOp::create(b, loc, end, arith::RemSIOp::create(b, loc, span, step));
    Value distance = arith::MulIOp::create(b, loc, step, constant(b, rounds));
    return {last, arith::SubIOp::create(b, loc, last, distance), distance};
  }

  /// Makes the loop with `loads` so many rounds ahead; returns those that their addresses wait for now.
  Operations advance(const Operations &loads) {
    OpBuilder b(loop);
    Operations slice = sliceOf(loads), inside;
    for (Operation *op : slice)
      if (isa<LLVM::LoadOp>(op))
        inside.insert(op);
    Operations waiting = neededBy(loads, inside);
    Limits limit = limits(b);
    unsigned sums = loop.getNumResults();
    SmallVector<Value> inits(loop.getInits());
    llvm::append_range(inits, first(b, slice, loads, limit.last));
    auto made = scf::ForOp::create(b, loc, loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), inits);
    made->setAttrs(loop->getDiscardableAttrDictionary());
    made.getBody()->clear();

    OpBuilder in = OpBuilder::atBlockEnd(made.getBody());
    Value place = arith::MinSIOp::create(in, loc, made.getInductionVar(), limit.latest);
    IRMapping next, own;
    SmallVector<Value> ahead = loadAt(in, slice, loads, arith::AddIOp::create(in, loc, place, limit.distance), next);
    ValueRange held = made.getRegionIterArgs().drop_front(sums);
    own.map(loop.getInductionVar(), made.getInductionVar());
    own.map(loop.getRegionIterArgs(), made.getRegionIterArgs().take_front(sums));
    for (auto [load, value] : llvm::zip_first(loads, held))
      own.map(load->getResult(0), value);
    for (Operation &op : loop.getBody()->without_terminator())
      if (!loads.contains(&op))
        in.clone(op, own);
    SmallVector<Value> yielded =
        llvm::map_to_vector(loop.getYieldedValues(), [&](Value value) { return own.lookupOrDefault(value); });
    llvm::append_range(yielded, held.drop_front(loads.size()));
    llvm::append_range(yielded, ahead);
    scf::YieldOp::create(in, loc, yielded);
    return replace(made, next, waiting);
  }

  /// The new loop stands for the old one, without what nobody needs any more.
  Operations replace(scf::ForOp made, IRMapping &next, const Operations &waiting) {
    Operations remaining;
    for (Operation *load : waiting)
      remaining.insert(next.lookup(load->getResult(0)).getDefiningOp());
    loop.replaceAllUsesWith(made.getResults().take_front(loop.getNumResults()));
    loop.erase();
    loop = made;
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*loop.getBody())))
      if (isOpTriviallyDead(&op))
        op.erase();
    return remaining;
  }

  scf::ForOp loop;
  int64_t rounds;
  Location loc;
};

struct LoadAhead : lacis::impl::LacisLoadAheadBase<LoadAhead> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> marked;
    getOperation().walk([&](scf::ForOp loop) {
      if (loop->hasAttr("lacis.pipeline"))
        marked.push_back(loop);
    });
    for (scf::ForOp loop : marked) {
      auto stages = cast<IntegerAttr>(loop->removeAttr("lacis.pipeline"));
      if (failed(Ahead(loop, stages.getInt() - 1).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
