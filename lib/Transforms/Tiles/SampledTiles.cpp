// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns a sampled product whose loops are marked into roles: the producer gathers what the steps of a share need, the
/// consumers multiply, and store the blocks of the share where the values lie.
#include "SampledForm.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lacis;

/// The indices of both factors. Which rows and columns a share has is what lists say; where a round of the sum begins,
/// and in which matrix of a batch, is what the nest says.
LogicalResult SampledForm::prepare() {
  Product &product = nest.product;
  SmallVector<Value> indices[] = {foldDigits(product.readLeft.getIndices()), foldDigits(product.readRight.getIndices())};
  rowIndex = indices[0][indices[0].size() - (product.isLeftAlong ? 2 : 1)];
  columnIndex = indices[1][indices[1].size() - (product.isRightAlong ? 2 : 1)];
  variance.addAxis(rowIndex, nest.rowLoops, nest.rows);
  variance.addAxis(columnIndex, nest.columnLoops, layout.columns);
  llvm::for_each(nest.depthLoops, [&](LoopOp loop) { variance.add(loop); });
  ReadOp reads[] = {product.readLeft, product.readRight};
  for (auto [read, own] : llvm::zip(reads, indices))
    if (!llvm::all_of(own, [&](Value index) { return variance.placeOf(index).has_value(); }))
      return refuseStatement(read);
  sumLoop = cast<LoopOp>(product.sum);
  rounds = sumLoop.getUpper();
  left = nest.sideOf(layout.rows), right = nest.sideOf(layout.step);
  MLIRContext *context = function.getContext();
  auto tiles = [&](int64_t count, int64_t lines, bool isAlong) {
    int64_t depth = roundsOf(nest.depthLoops);
    SmallVector<int64_t> shape{count, isAlong ? lines : depth, isAlong ? depth : lines};
    return TileType::get(context, ArrayRef(shape).drop_front(count == 1 ? 1 : 0), getElementTypeOrSelf(product.left));
  };
  int64_t columns = nest.lists.getWithin().value_or(nest.share * layout.step);
  ringType = RingType::get(context, nest.stages, {tiles(layout.panel / left, left, product.isLeftAlong),
                                                 tiles(columns / right, right, product.isRightAlong)});
  accType = AccType::get(context, {nest.rows, nest.columns}, b.getF32Type());
  return success();
}

RoleScalars SampledForm::roundOf(OpBuilder &at, const TileItem &share, Value coordinate) {
  RoleScalars scalars = share.scalars;
  scalars.map(sumLoop.getCoordinate(), nest.isCut() ? add(at, share.from, coordinate) : coordinate);
  for (Value index : foldDigits(nest.product.readLeft.getIndices()))
    if (index != rowIndex)
      (void)scalars.baseOf(at, *variance.placeOf(index), loc);
  return scalars;
}

TileRoles::Round SampledForm::openRounds(OpBuilder &at, const TileItem &share, ValueRange carried) {
  auto loop = LoopOp::create(at, loc, nest.product.sumName(), share.rounds, carried);
  at = OpBuilder::atBlockEnd(loop.getBlock());
  return {Value(), loop.getCoordinate(), loop.getIterArgs()};
}

//===- Producer -----------------------------------------------------------===//

/// The part of a factor from `line` on along its own axis, in the round of `scalars`.
void SampledForm::loadPart(OpBuilder &at, ReadOp read, RoleScalars scalars, Value line, Value tile, Value place) {
  scalars.map(read == nest.product.readLeft ? rowIndex : columnIndex, line);
  loadBox(at, read, basesOf(at, read, variance, scalars), tile, place);
}

/// The first row of each tile that is loaded of a panel; the rows of such a tile are neighbours.
SmallVector<Value> SampledForm::rowsOf(OpBuilder &at, const TileItem &share) {
  SmallVector<Value> rows;
  for (int64_t row = 0; row < layout.panel; row += left) {
    Value place = add(at, multiply(at, share.panel, layout.height), constant(row / layout.rows));
    Value group = OriginOp::create(at, loc, at.getIndexType(), regrouped, place);
    rows.push_back(add(at, multiply(at, group, layout.rows), constant(row % layout.rows)));
  }
  return rows;
}

/// The columns that the steps of a share are gathered from: from the first of one tile on, up to the last step's.
std::pair<Value, Value> SampledForm::spanOf(OpBuilder &at, const TileItem &share) {
  Value last = arith::SubIOp::create(at, loc, share.end, constant(1));
  Value first = firstColumn(at, share);
  return {first, add(at, columnOf(at, share, last), constant(layout.step))};
}

/// Where the columns begin that are loaded at once, and does the share have them? Those of its steps, or of a span.
SmallVector<std::pair<Value, Value>> SampledForm::columnsOf(OpBuilder &at, const TileItem &share, Value first,
                                                            Value end) {
  SmallVector<std::pair<Value, Value>> found;
  for (int64_t n = 0; first && n < *nest.lists.getWithin(); n += right) {
    Value from = add(at, first, constant(n));
    found.push_back({from, arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, from, end)});
  }
  Value last = first ? Value() : arith::SubIOp::create(at, loc, share.end, constant(1)).getResult();
  for (int64_t n = 0; !first && n < nest.share; ++n) {
    Value step = arith::MinSIOp::create(at, loc, add(at, share.first, constant(n)), last);
    Value column = columnOf(at, share, step);
    found.push_back({column, arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sgt, share.count, constant(n))});
  }
  return found;
}

/// Rows of the panel, and columns, in the order of memory: what stays the same from round to round is looked up once.
Value SampledForm::fill(OpBuilder &at, const TileItem &share, Value ring) {
  auto [begin, end] = nest.isGathered() ? spanOf(at, share) : std::pair<Value, Value>();
  SmallVector<Value> rows = rowsOf(at, share);
  SmallVector<std::pair<Value, Value>> columns = columnsOf(at, share, begin, end);
  Block *outer = at.getBlock();
  Round round = openRounds(at, share, ring);
  RoleScalars scalars = roundOf(at, share, round.coordinate);
  ValueRange tiles = acquire(at, round.carried[0]);
  for (auto [n, row] : llvm::enumerate(rows))
    loadPart(at, nest.product.readLeft, scalars, row, tiles[0], constant(n));
  int64_t parts = cast<TileType>(tiles[1].getType()).getCount() / columns.size(), place = 0;
  for (auto [first, some] : columns) {
    OpBuilder then = scf::IfOp::create(at, loc, some, /*withElseRegion=*/false).getThenBodyBuilder();
    for (int64_t part = 0; part < parts; ++part)
      loadPart(then, nest.product.readRight, scalars, add(then, first, constant(part * right)), tiles[1],
               constant(place++));
  }
  return leaveLoops(at, outer, release(at, round.carried[0]))[0];
}

//===- Consumers ----------------------------------------------------------===//

/// Numbers that follow the sum are read before it.
TileItem SampledForm::withNumbers(OpBuilder &at, TileItem share) {
  TileMaps::Known known;
  mapsOf(share.scalars, known).loadAhead(at, nest.product.result, {});
  return share;
}

Value SampledForm::sum(OpBuilder &at, Value consumer, const TileItem &share, Value ring) {
  auto sums = nest.isGathered() ? &SampledForm::sumSome : &SampledForm::sumShare;
  return (this->*sums)(at, consumer, withNumbers(at, share), nest.ownSteps(), ring);
}

/// What a consumer sums up of a share in `steps` steps, round by round, and what becomes of it. Steps that are gathered
/// and stand behind the end of the share are multiplied, and not stored.
Value SampledForm::sumShare(OpBuilder &at, Value consumer, const TileItem &share, int64_t steps, Value ring) {
  auto type = AccType::get(at.getContext(), {nest.rows, steps * layout.step}, at.getF32Type());
  SmallVector<Value> rows, columns;
  if (nest.isGathered())
    std::tie(rows, columns) = findBlocks(at, consumer, share, steps);
  Value initial = arith::ConstantOp::create(at, loc, nest.product.initial);
  Value begun = SplatOp::create(at, loc, type, initial);
  Block *outer = at.getBlock();
  auto [position, coordinate, carried] = openRounds(at, share, {ring, begun});
  ValueRange tiles = acquire(at, carried[0]);
  Value more = nest.isGathered()
                   ? MmaGatheredOp::create(at, loc, type, tiles[0], rows, tiles[1], columns, carried[1]).getResult()
                   : multiplyOwn(at, consumer, tiles, carried[1]);
  Value next = release(at, carried[0]);
  ValueRange done = complete(at, leaveLoops(at, outer, {next, more}));
  return finish(at, consumer, share, steps, done[1], done[0]);
}

Value SampledForm::multiplyOwn(OpBuilder &at, Value consumer, ValueRange tiles, Value onto) {
  Value row = multiply(at, nest.splitsRows() ? consumer : zero, nest.rows / left);
  Value column = multiply(at, ownStepOf(consumer), nest.columns / right);
  auto isList = [](Value tile) { return cast<TileType>(tile.getType()).isList(); };
  TileFactor one{tiles[0], !nest.product.isLeftAlong, isList(tiles[0]) ? row : Value()};
  TileFactor other{tiles[1], !nest.product.isRightAlong, isList(tiles[1]) ? column : Value()};
  return multiplyTiles(at, loc, accType, one, other, onto, nest.isTf32);
}

/// The steps of a share that a consumer has, up to `steps` of them, each where it is one.
void SampledForm::forEachOwnStep(OpBuilder &at, Value consumer, const TileItem &share, int64_t steps, StepBody body) {
  Value own = add(at, share.first, multiply(at, ownStepOf(consumer), steps));
  for (int64_t n = 0; n < steps; ++n) {
    Value step = add(at, own, constant(n));
    Value some = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, step, share.end);
    OpBuilder then = scf::IfOp::create(at, loc, some, /*withElseRegion=*/false).getThenBodyBuilder();
    body(then, n, step);
  }
}

/// The slot of the block at a position, where there is one; else negative.
Value SampledForm::slotWhere(OpBuilder &at, Value some, llvm::function_ref<Value(OpBuilder &)> position) {
  Type wordType = at.getI32Type();
  auto guard = scf::IfOp::create(at, loc, wordType, some, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
  Value slot = LocateOp::create(then, loc, at.getIndexType(), regrouped, 3, position(then), ValueRange());
  scf::YieldOp::create(then, loc, arith::IndexCastOp::create(then, loc, wordType, slot).getResult());
  scf::YieldOp::create(otherwise, loc, word(otherwise, -1));
  return guard.getResult(0);
}

/// The slot of the block whose bit is `bit` in a step; negative where none is stored.
Value SampledForm::slotOf(OpBuilder &at, Value bits, Value lo, Value bit) {
  Value flag = arith::ShLIOp::create(at, loc, word(at, 1), bit);
  Value below = arith::SubIOp::create(at, loc, flag, word(at, 1));
  Value some = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::ne, arith::AndIOp::create(at, loc, bits, flag),
                                     word(at, 0));
  return slotWhere(at, some, [&](OpBuilder &then) {
    Value before = math::CtPopOp::create(then, loc, arith::AndIOp::create(then, loc, bits, below));
    return add(then, lo, arith::IndexCastOp::create(then, loc, at.getIndexType(), before));
  });
}

/// The columns of one stored block.
Value SampledForm::columns(OpBuilder &at, Value acc, int64_t first, int64_t count) {
  auto type = AccType::get(at.getContext(), {64, count}, at.getF32Type());
  return type == acc.getType() ? acc : ColumnsOp::create(at, loc, type, acc, first).getResult();
}

/// What follows the sums of a block, `across` columns behind the first of its step.
Value SampledForm::finished(OpBuilder &at, Value sums, const TileItem &share, Value step, int64_t across) {
  Value sum = sumLoop.getResult(0);
  if (nest.product.result == sum)
    return sums;
  RoleScalars scalars = share.scalars;
  scalars.map(columnIndex, add(at, columnOf(at, share, step), constant(across)));
  TileMaps::Known known;
  known[sum] = sums;
  FailureOr<Value> made = mapsOf(scalars, known).make(at, nest.product.result, columnIndex, loc);
  result = failed(made) ? failure() : result;
  return made.value_or(sums);
}

/// Stores the blocks that a consumer has of one step, from `column` of the accumulator on: those of 64 rows of the panel,
/// or gathered ones.
void SampledForm::storeStep(OpBuilder &at, Value consumer, Value acc, const TileItem &share, Value step, int64_t column) {
  Type index = at.getIndexType();
  Value bits, lo, firstBit, rowGroup = nest.splitsRows() ? consumer : zero;
  int64_t blocks = 64 / layout.rows; // one below the other
  if (!layout.isFull && !nest.isGathered()) {
    bits = PresenceOp::create(at, loc, at.getI32Type(), regrouped, 2, step);
    lo = BoundsOp::create(at, loc, index, index, regrouped, 2, step).getLo();
    firstBit = arith::IndexCastOp::create(at, loc, at.getI32Type(), multiply(at, rowGroup, blocks * layout.width));
  }
  Value row = layout.rows > 64 ? multiply(at, rowGroup, 64) : zero;
  for (int64_t beside = 0; beside < layout.width; ++beside) {
    int64_t across = beside * layout.columns;
    Value own = finished(at, columns(at, acc, column + across, layout.columns), share, step, across);
    if (layout.isFull) {
      SmallVector<Value> place{LocateOp::create(at, loc, index, regrouped, 3, step, ValueRange()), row, zero};
      if (share.copy)
        place.insert(place.begin(), share.copy);
      StoreTileOp::create(at, loc, own, nest.product.output, place, /*through=*/Value(), /*slot=*/Value(), UnitAttr(),
                          ArrayAttr(), TypeAttr());
      continue;
    }
    SmallVector<Value> slots = nest.isGathered() ? gatheredSlots(at, step) : SmallVector<Value>();
    for (int64_t n = 0; n < blocks && bits; ++n)
      slots.push_back(slotOf(at, bits, lo, add(at, firstBit, word(at, n * layout.width + beside))));
    StoreBlocksOp::create(at, loc, own, nest.product.output, slots, share.copy, ArrayAttr(), TypeAttr());
  }
}

//===- Gathered steps -----------------------------------------------------===//

/// The first column of a step.
Value SampledForm::columnOf(OpBuilder &at, const TileItem &share, Value step) {
  auto found = CoordinateOp::create(at, loc, at.getIndexType(), at.getI1Type(), regrouped, 1, share.begin, step);
  return multiply(at, found.getDigits()[0], layout.step);
}

/// Where the loaded columns of a share begin: at a whole tile.
Value SampledForm::firstColumn(OpBuilder &at, const TileItem &share) {
  Value tile = constant(right);
  Value number = arith::DivUIOp::create(at, loc, columnOf(at, share, share.first), tile);
  return arith::MulIOp::create(at, loc, number, tile);
}

/// A share with fewer steps multiplies fewer: a consumer has up to `steps`, or three quarters, a half, a quarter of them.
Value SampledForm::sumSome(OpBuilder &at, Value consumer, const TileItem &share, int64_t steps, Value ring) {
  int64_t less = steps - std::max<int64_t>(nest.ownSteps() / 4, 1);
  if (less < 1)
    return sumShare(at, consumer, share, steps, ring);
  Value fits = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sle, share.count,
                                     constant(less * nest.numConsumers()));
  auto guard = scf::IfOp::create(at, loc, ring.getType(), fits, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
  scf::YieldOp::create(then, loc, sumSome(then, consumer, share, less, ring));
  scf::YieldOp::create(otherwise, loc, sumShare(otherwise, consumer, share, steps, ring));
  return guard.getResult(0);
}

/// Where the blocks of `steps` steps of one consumer lie in the loaded rows and columns.
std::pair<SmallVector<Value>, SmallVector<Value>>
SampledForm::findBlocks(OpBuilder &at, Value consumer, const TileItem &share, int64_t steps) {
  Value own = add(at, share.first, multiply(at, consumer, steps));
  Value last = arith::SubIOp::create(at, loc, share.end, constant(1)), first = firstColumn(at, share);
  Value mostColumns = constant(*nest.lists.getWithin() - layout.step), mostRows = word(at, layout.panel - layout.rows);
  SmallVector<Value> rows, columns;
  for (int64_t n = 0; n < steps; ++n) {
    Value step = arith::MinSIOp::create(at, loc, add(at, own, constant(n)), last);
    Value column = arith::SubIOp::create(at, loc, columnOf(at, share, step), first);
    columns.push_back(arith::MinUIOp::create(at, loc, column, mostColumns));
    Value bits = PresenceOp::create(at, loc, at.getI32Type(), regrouped, 2, step);
    for (int64_t block = 0; block < *layout.capacity; ++block) {
      Value bit = math::CountTrailingZerosOp::create(at, loc, bits);
      Value row = arith::MulIOp::create(at, loc, bit, word(at, layout.rows)); // anywhere, where no block is left
      rows.push_back(arith::MinUIOp::create(at, loc, row, mostRows));
      bits = arith::AndIOp::create(at, loc, bits, arith::SubIOp::create(at, loc, bits, word(at, 1)));
    }
  }
  return {rows, columns};
}

/// The slots of the blocks of one step, in their order; negative behind the last.
SmallVector<Value> SampledForm::gatheredSlots(OpBuilder &at, Value step) {
  auto bounds = BoundsOp::create(at, loc, at.getIndexType(), at.getIndexType(), regrouped, 2, step);
  SmallVector<Value> slots;
  for (int64_t block = 0; block < *layout.capacity; ++block) {
    Value position = add(at, bounds.getLo(), constant(block));
    Value some = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, position, bounds.getHi());
    slots.push_back(slotWhere(at, some, [&](OpBuilder &) { return position; }));
  }
  return slots;
}
