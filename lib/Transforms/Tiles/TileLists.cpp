// SPDX-License-Identifier: Apache-2.0
/// \file
/// The items of a product of tiles that a worker has, and what becomes of panels that were cut: long ones, where there are
/// few tiles of the dense axis.
#include "TileForm.h"

using namespace mlir;
using namespace lacis;

/// The worker's list: groups of neighbouring tiles of the dense axis, in each group its pairs of panel and tile. Where
/// panels are cut there is one group; where none are, nothing is summed up.
TileItem TileForm::openItems(OpBuilder &at, Value worker, Value &ring) {
  LoopName panels = nest.top.getLoopName(), columns = nest.items.getLoopName();
  int64_t groups = nest.lists.getGroups();
  Value raster = constant(nest.lists.getRaster()), one = constant(1), isFew;
  Value count = arith::CeilDivUIOp::create(at, loc, tiles, raster);
  if (nest.isCut()) {
    isFew = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::ule, tiles, constant(*nest.lists.getCut()));
    Value some = arith::MinUIOp::create(at, loc, count, one);
    count = arith::SelectOp::create(at, loc, isFew, some, isSummingUp ? zero : count);
  }
  auto loop = LoopOp::create(at, loc, columns + "0", count, ring);
  at = OpBuilder::atBlockEnd(loop.getBlock());
  ring = loop.getIterArgs()[0];
  Value first = arith::MulIOp::create(at, loc, loop.getCoordinate(), raster);
  Value left = arith::SubIOp::create(at, loc, tiles, first);
  Value width = arith::MinUIOp::create(at, loc, left, raster);
  Value turn = arith::RemUIOp::create(at, loc, loop.getCoordinate(), constant(groups));
  Value before = arith::MulIOp::create(at, loc, turn, raster);
  Value list = add(at, before, arith::SubIOp::create(at, loc, width, one));
  if (nest.isCut()) {
    Value behind = add(at, tiles, constant(groups * nest.lists.getRaster() - 1));
    list = arith::SelectOp::create(at, loc, isFew, behind, list);
  }
  Value own = add(at, arith::MulIOp::create(at, loc, list, workers), worker);
  SmallVector<Value> found = openList(at, panels, columns, own, ring);
  RoleScalars scalars = scalarsOf(at, add(at, first, found[1]));
  if (!nest.isCut())
    return {scalars, found[0]};
  return {scalars, found[0], found[2], found[3], found[4], found[5], found[6]};
}

/// The steps of an item, or of a whole panel.
TileRoles::Round TileForm::openRounds(OpBuilder &at, const TileItem &item, ValueRange carried) {
  LoopName name = nest.product.sumName();
  if (!item.count) {
    auto steps = LevelLoopOp::create(at, loc, name, regrouped, 1, item.panel, carried);
    at = OpBuilder::atBlockEnd(steps.getBlock());
    return {steps.getPosition(), steps.getCoordinates()[0], steps.getIterArgs()};
  }
  Type index = at.getIndexType();
  Value begin = BoundsOp::create(at, loc, index, index, regrouped, 1, item.panel).getLo();
  Value first = add(at, begin, item.first);
  auto steps = LoopOp::create(at, loc, name, item.count, carried);
  at = OpBuilder::atBlockEnd(steps.getBlock());
  Value position = add(at, first, steps.getCoordinate());
  auto found = CoordinateOp::create(at, loc, index, at.getI1Type(), regrouped, 1, begin, position);
  return {position, found.getDigits()[0], steps.getIterArgs()};
}

//===- Parts of panels ----------------------------------------------------===//

/// The accumulators of a panel that is cut, each by who had the part of its number, and what follows.
Value TileForm::addUp(OpBuilder &at, Value consumer, const TileItem &item, Value ring) {
  auto nothing = [&](OpBuilder &) { return ring; };
  return whereWhole(at, item, nothing, [&](OpBuilder &cut) {
    SmallVector<Part> parts = locate(cut, consumer, item);
    Value slots = arith::SubIOp::create(cut, loc, item.slot, item.part);
    Value first = multiply(cut, consumer, nest.numParts());
    return finish(cut, consumer, ring, [&](OpBuilder &in, int64_t n, Value tile) {
      auto placeOf = [&](OpBuilder &own, Value slot) {
        return slotPlace(own, slot, layout.height, consumer, nest.numParts(), n);
      };
      addUpOwn(in, item, slots, add(in, first, constant(n)), accType, placeOf,
               [&](OpBuilder &own, Value acc) { store(own, acc, parts[n], tile); });
    });
  });
}
