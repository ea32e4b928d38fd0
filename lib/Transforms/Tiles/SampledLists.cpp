// SPDX-License-Identifier: Apache-2.0
/// \file
/// The shares of a sampled product of tiles that a worker has, and what becomes of those whose sums were cut.
///
/// Where a sum has rounds enough, shares that do not come out even for all workers are cut into parts, each of some of
/// the rounds. Their sums are kept in a workspace; in the nest behind, those who had the parts add them up, each some
/// columns.
#include "SampledForm.h"

using namespace mlir;
using namespace lacis;

/// The sum of a share is cut where each part has so many rounds.
static constexpr int64_t kRounds = 4;

/// Whole shares, or where the sum is long enough parts of them.
TileItem SampledForm::openItems(OpBuilder &at, Value worker, Value &ring) {
  LoopName name = nest.top.getLoopName();
  Value list = worker;
  if (nest.isCut()) {
    Value isLong = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::uge, rounds, constant(*nest.lists.getParts() * kRounds));
    Value behind = add(at, worker, workers);
    list = arith::SelectOp::create(at, loc, isLong, behind, worker);
  }
  TileItem share = shareOf(at, openList(at, name + "_panel", name, list, ring));
  if (nest.product.hasCopies)
    openCopies(at, share, ring);
  return share;
}

/// A share of values in copies is done for one after another.
void SampledForm::openCopies(OpBuilder &at, TileItem &share, Value &ring) {
  LoopOp copies = nest.product.batchLoops[0];
  auto loop = LoopOp::create(at, loc, "copy", copies.getUpper(), ring);
  at = OpBuilder::atBlockEnd(loop.getBlock());
  share.copy = loop.getCoordinate(), ring = loop.getIterArgs()[0];
  share.scalars.map(copies.getCoordinate(), share.copy);
}

/// What a list says of a share: the panel, then which of its shares, or the first step and the number of steps.
TileItem SampledForm::shareOf(OpBuilder &in, ArrayRef<Value> found) {
  Type index = in.getIndexType();
  auto bounds = BoundsOp::create(in, loc, index, index, regrouped, 1, found[0]);
  TileItem share{RoleScalars(nest.top), found[0], {}, {}, {}, {}, {}, bounds.getLo(), bounds.getHi(), zero, rounds};
  if (nest.isGathered()) {
    share.first = add(in, share.begin, found[1]);
    share.count = found[2];
    share.end = add(in, share.first, share.count);
  } else {
    share.first = add(in, share.begin, multiply(in, found[1], nest.share));
    Value left = arith::SubIOp::create(in, loc, share.end, share.first);
    share.count = arith::MinSIOp::create(in, loc, left, constant(nest.share));
  }
  if (!nest.isCut())
    return share;
  share.part = found[found.size() - 3];
  share.parts = found[found.size() - 2];
  share.slot = found.back();
  auto upTo = [&](Value part) {
    Value product = arith::MulIOp::create(in, loc, rounds, part);
    return arith::DivUIOp::create(in, loc, product, share.parts).getResult();
  };
  share.from = upTo(share.part);
  share.rounds = arith::SubIOp::create(in, loc, upTo(add(in, share.part, constant(1))), share.from);
  return share;
}

/// Stores the sums of whole shares, step by step, and keeps those of parts.
Value SampledForm::finish(OpBuilder &at, Value consumer, const TileItem &share, int64_t steps, Value acc, Value ring) {
  auto store = [&](OpBuilder &in, int64_t n, Value step) {
    storeStep(in, consumer, acc, share, step, n * layout.step);
  };
  auto keep = [&](OpBuilder &in, int64_t n, Value) {
    StoreAccOp::create(in, loc, columns(in, acc, n * layout.step, layout.step), kept,
                       slotPlace(in, share.slot, nest.numSteps(), consumer, steps, n));
  };
  auto forEach = [&](StepBody body) {
    return [&, body](OpBuilder &in) { return forEachOwnStep(in, consumer, share, steps, body), ring; };
  };
  return whereWhole(at, share, forEach(store), forEach(keep));
}

/// The steps of a share that is cut, each by who had the part of its number.
Value SampledForm::addUp(OpBuilder &at, Value consumer, const TileItem &item, Value ring) {
  TileItem share = withNumbers(at, item);
  auto type = AccType::get(at.getContext(), {nest.rows, layout.step}, at.getF32Type());
  auto nothing = [&](OpBuilder &) { return ring; };
  return whereWhole(at, share, nothing, [&](OpBuilder &cut) {
    Value slots = arith::SubIOp::create(cut, loc, share.slot, share.part);
    forEachOwnStep(cut, consumer, share, nest.ownSteps(), [&](OpBuilder &in, int64_t n, Value step) {
      auto placeOf = [&](OpBuilder &own, Value slot) {
        return slotPlace(own, slot, nest.numSteps(), consumer, nest.ownSteps(), n);
      };
      addUpOwn(in, share, slots, constant(n), type, placeOf,
               [&](OpBuilder &own, Value acc) { storeStep(own, consumer, acc, share, step, /*column=*/0); });
    });
    return ring;
  });
}
