// SPDX-License-Identifier: Apache-2.0
/// \file
/// What consumers do with the tiles of a product: sums in accumulators, what follows them, and stores.
#include "TileForm.h"

using namespace mlir;
using namespace lacis;

/// The first stored tile of each of `count` accumulators, and which of its tiles are stored (null where all are).
SmallVector<std::pair<Value, Value>> TileForm::findTiles(OpBuilder &at, Value consumer, Value step, size_t count) {
  Type word = at.getI32Type();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  int64_t width = layout.width;
  Value who = arith::IndexCastOp::create(at, loc, word, consumer);
  Value shift = arith::MulIOp::create(at, loc, who, number(width * static_cast<int64_t>(count)));
  SmallVector<std::pair<Value, Value>> own;
  if (layout.isFull && width == 1) {
    for (size_t n = 0; n < count; ++n)
      own.push_back({arith::AddIOp::create(at, loc, shift, number(n)), Value()});
    return own;
  }
  Value below = arith::SubIOp::create(at, loc, arith::ShLIOp::create(at, loc, number(1), shift), number(1));
  Value bits = PresenceOp::create(at, loc, word, regrouped, 2, step);
  Value first = math::CtPopOp::create(at, loc, arith::AndIOp::create(at, loc, bits, below));
  Value rest = arith::ShRUIOp::create(at, loc, bits, shift);
  for (size_t n = 0; n < count; ++n) {
    Value mine = arith::AndIOp::create(at, loc, rest, number((int64_t(1) << width) - 1));
    own.push_back({first, mine});
    if (n + 1 == count)
      break;
    first = arith::AddIOp::create(at, loc, first, math::CtPopOp::create(at, loc, mine));
    rest = arith::ShRUIOp::create(at, loc, rest, number(width));
  }
  return own;
}

/// The products of one step: of each accumulator those tiles of its rows that are stored.
SmallVector<Value> TileForm::multiplyStep(OpBuilder &at, Value consumer, Value step, Value ring, ValueRange accs) {
  SmallVector<std::pair<Value, Value>> own = findTiles(at, consumer, step, accs.size());
  ValueRange tiles = acquire(at, ring);
  TileFactor dense{tiles[0], !nest.product.isRightAlong};
  SmallVector<Value> results;
  for (auto [acc, place] : llvm::zip(accs, own)) {
    TileFactor stored{tiles[1], layout.transposed, place.first, place.second};
    results.push_back(multiplyTiles(at, loc, accType, stored, dense, acc, nest.isTf32));
  }
  return results;
}

/// Rows stand where the layout put them. Before the sum, so that nothing waits for these loads after it.
SmallVector<TileForm::Part> TileForm::locate(OpBuilder &at, Value consumer, const TileItem &item) {
  WriteOp write = nest.product.write;
  Part common{Value(), item.scalars, TileMaps::Known()};
  mapsOf(common.scalars, common.known).loadAhead(at, write.getValue(), {});
  Value base = add(at, multiply(at, item.panel, layout.height), multiply(at, consumer, nest.numParts()));
  SmallVector<Part> parts(nest.numParts(), common);
  for (auto [n, part] : llvm::enumerate(parts)) {
    Value number = add(at, base, constant(static_cast<int64_t>(n)));
    part.group = OriginOp::create(at, loc, at.getIndexType(), regrouped, number);
    part.scalars.map(rowIndex, multiply(at, part.group, layout.rows));
    mapsOf(part.scalars, part.known).loadAhead(at, write.getValue(), variance.of(rowIndex));
  }
  return parts;
}

/// What follows the sum, and the store, as the nest has them.
void TileForm::store(OpBuilder &at, Value acc, Part part, Value tile) {
  part.known[nest.product.sum->getResult(0)] = acc;
  if (tile) {
    UnitAttr transposed = nest.product.isRowsFirst ? UnitAttr() : at.getUnitAttr();
    part.known[residual] = ReadTileOp::create(at, loc, accType, tile, /*place=*/Value(), transposed);
  }
  if (failed(mapsOf(part.scalars, part.known).store(at, *Access::ofStore(nest.product.write), nest.product.write.getValue())))
    result = failure();
}

/// Takes the stages of `consumers` others from the ring and gives them back as they are.
Value TileForm::pass(OpBuilder &at, Value consumers, Value ring) {
  auto loop = LoopOp::create(at, loc, "part", consumers, ring);
  OpBuilder in = OpBuilder::atBlockEnd(loop.getBlock());
  Value place = loop.getIterArgs()[0];
  for (int64_t n = 0; n < nest.numParts(); ++n) {
    acquire(in, place);
    place = release(in, place);
  }
  YieldOp::create(in, loc, place);
  return loop.getResult(0);
}

/// Stores what a consumer has. Each part of a residual arrives in a stage of its own, after the steps: a consumer lets
/// those of the others pass, and stores its own while the stage is there.
Value TileForm::finish(OpBuilder &at, Value consumer, Value ring, StorePart store) {
  if (!residual) {
    for (int64_t n = 0; n < nest.numParts(); ++n)
      store(at, n, /*residual=*/Value());
    return ring;
  }
  ring = pass(at, consumer, ring);
  for (int64_t n = 0; n < nest.numParts(); ++n) {
    store(at, n, acquire(at, ring)[0]);
    ring = release(at, ring);
  }
  return pass(at, arith::SubIOp::create(at, loc, constant(nest.numConsumers() - 1), consumer), ring);
}

/// What an accumulator holds before the first product: a constant, or a tile of what other parts were summed up to. Of
/// rows that a panel lacks it is any tile, as nobody stores them.
Value TileForm::begin(OpBuilder &at, Part &part) {
  if (!nest.product.start) {
    Value initial = arith::ConstantOp::create(at, loc, nest.product.initial);
    return SplatOp::create(at, loc, accType, initial);
  }
  Value last = arith::SubIOp::create(at, loc, rowTiles, constant(1));
  Value across = arith::DivUIOp::create(
      at, loc, part.scalars.baseOf(at, *variance.placeOf(columnIndex), loc), constant(nest.columns));
  Value place =
      add(at, arith::MulIOp::create(at, loc, across, rowTiles), arith::MinUIOp::create(at, loc, part.group, last));
  return LoadAccOp::create(at, loc, accType, nest.product.start.getTensor(), place, /*onto=*/Value());
}

Value TileForm::sum(OpBuilder &at, Value consumer, const TileItem &item, Value ring) {
  SmallVector<Part> parts = locate(at, consumer, item);
  SmallVector<Value> begun{ring};
  for (Part &part : parts)
    begun.push_back(begin(at, part));
  Block *outer = at.getBlock();
  auto [position, coordinate, carried] = openRounds(at, item, begun);
  SmallVector<Value> next = multiplyStep(at, consumer, position, carried[0], carried.drop_front());
  next.insert(next.begin(), release(at, carried[0]));
  ValueRange done = complete(at, leaveLoops(at, outer, next));
  auto storeAll = [&](OpBuilder &in) {
    return finish(in, consumer, done[0], [&](OpBuilder &then, int64_t n, Value tile) {
      store(then, done[1 + n], parts[n], tile);
    });
  };
  return whereWhole(at, item, storeAll, [&](OpBuilder &in) {
    for (auto [n, acc] : llvm::enumerate(done.drop_front()))
      StoreAccOp::create(in, loc, acc, kept, slotPlace(in, item.slot, layout.height, consumer, nest.numParts(), n));
    return done[0];
  });
}
