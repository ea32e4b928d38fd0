// SPDX-License-Identifier: Apache-2.0
/// \file
/// The statements of a round of a rolled loop, each a loop over the tiles of the round.
#include "RolledNest.h"

#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "lacis/Dialect/Lacis/IR/RolledTileSizes.h"

#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lacis;

static Value constant(OpBuilder &b, Location loc, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }

/// A score or a maximum, of what a tile holds.
Value RolledNest::scaled(OpBuilder &b, Value score) {
  if (!factor)
    return score;
  return arith::MulFOp::create(b, loc, score, arith::ConstantOp::create(b, loc, factor));
}

/// A factor above 0 comes off a score, and off one of two that a mask chooses from where the other is -infinity: the
/// largest of products with it is the product with the largest, to the bit, and 2^(t - m) takes it in one instruction.
static TypedAttr takeFactor(OpBuilder &b, Value &score) {
  FloatAttr factor;
  if (auto product = score.getDefiningOp<arith::MulFOp>();
      product && matchPattern(product.getRhs(), m_Constant(&factor)) && factor.getValueAsDouble() > 0) {
    score = product.getLhs();
    return factor;
  }
  auto mask = score.getDefiningOp<arith::SelectOp>();
  if (!mask || !matchPattern(mask.getFalseValue(), m_NegInfFloat()))
    return {};
  Value chosen = mask.getTrueValue();
  TypedAttr found = takeFactor(b, chosen);
  if (found)
    score = arith::SelectOp::create(b, score.getLoc(), mask.getCondition(), chosen, mask.getFalseValue());
  return found;
}

/// p(score, largest).
FailureOr<Value> RolledNest::share(OpBuilder &b, Tile &tile, Value score, Value largest) {
  Expression expression(outer.sizes);
  expression.setSummed(chain.made[0].getResult(0), scaled(b, score));
  expression.setSummed(chain.largest.getResult(0), scaled(b, largest));
  return expression.element(b, chain.shares.getResult(0), coordinates(b, chain.shares, tile));
}

/// Columns of the round's operands, transposed.
void RolledNest::copyOperands(OpBuilder &b) {
  auto function = cast<func::FuncOp>(pattern.getParentBlock()->getParentOp());
  for (const RolledCopy &copy : copies) {
    auto name = function.getArgAttrOfType<StringAttr>(copy.operand.getArgNumber(), "lacis.name");
    PathAttr path = lacis::pathOf(b.getContext(), PathKind::Copy, name.getValue());
    int64_t length = cast<RankedTensorType>(copy.operand.getType()).getShape().back();
    Value upper = constant(b, loc, columns), last = constant(b, loc, length);
    auto over = LoopOp::create(b, loc, {digitName(column.name, 1, 2), path}, upper);
    over.setCopies(true);
    OpBuilder inner = OpBuilder::atBlockEnd(over.getBlock());
    auto along = LoopOp::create(inner, loc, {copy.letters.back(), path}, last);
    inner = OpBuilder::atBlockEnd(along.getBlock());
    Tile tile{inner, {over, along}, {}, over.getCoordinate(), {}, {}, {}};
    for (const Letter &row : rows) {
      tile.letters.push_back(row);
      if (row.name != tiledRow)
        tile.letters.back().compose(inner, loc);
    }
    if (Value inside = placeColumn(tile, inner))
      inner = scf::IfOp::create(inner, loc, inside, /*withElseRegion=*/false).getThenBodyBuilder();
    SmallVector<Value> from;
    for (const std::string &letter : ArrayRef(copy.letters).drop_back())
      from.push_back(llvm::find_if(tile.letters, [&](Letter &each) { return each.name == letter; })->coordinate);
    from.push_back(along.getCoordinate());
    Type type = cast<RankedTensorType>(copy.operand.getType()).getElementType();
    Value value = ReadOp::create(inner, loc, type, copy.operand, from, Value(), IntegerAttr());
    write(inner, value, copy.tile, {along.getCoordinate(), over.getCoordinate()});
    close(tile);
  }
}

/// What adds nothing: the least score, or 0.
Value RolledNest::neutral(OpBuilder &b) {
  APFloat value = APFloat::getZero(cast<FloatType>(element).getFloatSemantics());
  if (chain.largest)
    value = APFloat::getInf(value.getSemantics(), /*Negative=*/true);
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(element, value));
}

/// What `reader` reads of the tiles is known at a place.
void RolledNest::setMade(Expression &expression, OpBuilder &b, linalg::GenericOp reader, Tile &tile) {
  for (auto [statement, place] : llvm::zip(chain.linear, linear))
    if (statement != reader && isReadBy(reader, statement))
      return expression.setSummed(statement.getResult(0), read(b, place, {tile.row, tile.column}));
  for (auto [number, place] : llvm::enumerate(made)) {
    linalg::GenericOp statement = madeOf(number);
    if (statement != reader && isReadBy(reader, statement))
      expression.setSummed(statement.getResult(0), read(b, place, {tile.row, tile.column}));
  }
}

/// Whether the element is an entry, as the bits of a layout or the bitmap of blocks say; null where all are. `place` is that
/// of its value.
Value RolledNest::isEntry(OpBuilder &b, Tile &tile, Value place) {
  if (!bits)
    return mayPad(pattern) ? EntryOp::create(b, loc, b.getI1Type(), pattern, place).getResult() : Value();
  int64_t rows = chain.layout.getLevels().drop_back().back().getDigits()[0].mod;
  auto number = [&](int64_t value) { return arith::ConstantIntOp::create(b, loc, value, 32).getResult(); };
  Value row = llvm::find_if(tile.letters, [&](Letter &each) { return each.name == tiledRow; })->coordinate;
  row = arith::IndexCastOp::create(b, loc, b.getI32Type(), row);
  Value block = arith::ShRUIOp::create(b, loc, row, number(llvm::Log2_64(rows)));
  Value bit = arith::AndIOp::create(b, loc, block, number(kTileSide / rows - 1));
  Value word = arith::AndIOp::create(b, loc, arith::ShRUIOp::create(b, loc, bits, bit), number(1));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, word, number(0));
}

/// Is the value 0 where one of the tiles is?
static bool isProductWith(Value value, ArrayRef<Value> tiles) {
  if (auto read = value.getDefiningOp<ReadOp>())
    return llvm::is_contained(tiles, read.getTensor());
  auto product = value.getDefiningOp<arith::MulFOp>();
  return product && (isProductWith(product.getLhs(), tiles) || isProductWith(product.getRhs(), tiles));
}

/// What adds nothing where there is no entry, or where a tile has columns behind the last one.
Value RolledNest::masked(OpBuilder &b, Tile &tile, Value value, Value place, Value inside) {
  auto choose = [&](Value condition) -> Value { return arith::SelectOp::create(b, loc, condition, value, neutral(b)); };
  bool isNeutral = bits && !chain.largest && isProductWith(value, made); // 0 is what adds nothing there
  bool isOfZeros = !chain.largest && value.getDefiningOp<LoopOp>();      // tiles have zeros behind the last column
  if (inside && chain.isOfTiles && !isOfZeros)
    value = choose(inside);
  if (Value entry = isNeutral ? Value() : isEntry(b, tile, place))
    value = choose(entry);
  return value;
}

/// What a statement makes of each entry, what adds nothing elsewhere.
LogicalResult RolledNest::fill(OpBuilder &b, unsigned number) {
  linalg::GenericOp statement = chain.made[number];
  Value none = neutral(b);
  Tile tile = open(b, statement, pathOf(statement), /*columns=*/true, /*others=*/false);
  OpBuilder inner = tile.b;
  scf::IfOp guard;
  Value inside = placeColumn(tile, inner);
  if (inside && !chain.isOfTiles) {
    guard = scf::IfOp::create(inner, loc, none.getType(), inside, /*addThenBlock=*/true, /*addElseBlock=*/true);
    OpBuilder otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
    scf::YieldOp::create(otherwise, loc, none);
    inner = OpBuilder::atBlockEnd(guard.thenBlock());
  }
  Value at = position;
  auto inTile = chain.layout ? ArrayRef<LevelAttr>() : format.getLevels().drop_front(chain.level + 1);
  for (auto [below, level] : llvm::enumerate(inTile)) {
    SmallVector<Value> digits;
    for (Digit digit : level.getDigits())
      digits.push_back(digit.axis == summedAxis() ? placeInBlock(inner, columnPart, columns, tile.column)
                                                  : placeInBlock(inner, rowPart, height, tile.row));
    at = LocateOp::create(inner, loc, b.getIndexType(), pattern, chain.level + 1 + below, at, digits);
  }
  Expression expression(outer.sizes);
  expression.setSample(pattern, at);
  setMade(expression, inner, statement, tile);
  for (const RolledCopy &copy : copies)
    expression.setCopied(copy.operand, copy.tile, copy.axis(), tile.column);
  FailureOr<Value> value = expression.element(inner, statement.getResult(0), coordinates(inner, statement, tile));
  if (failed(value))
    return failure();
  if (chain.readsInPlace && chain.largest) // of tiles; vectors of a CPU are as fast with it
    factor = takeFactor(inner, *value);
  *value = masked(inner, tile, *value, at, inside);
  if (guard)
    scf::YieldOp::create(inner, loc, *value);
  write(guard ? tile.b : inner, guard ? guard.getResult(0) : *value, made[number], {tile.row, tile.column});
  close(tile);
  return success();
}

/// n = max(m, t), for now in the place of r.
LogicalResult RolledNest::findLargest(OpBuilder &b) {
  Tile tile = open(b, chain.largest, pathOf(chain.largest), /*columns=*/false, /*others=*/false), inner = tile;
  LoopOp loop;
  Value carried = openColumns(inner, pathOf(chain.largest), read(tile.b, largest, {tile.row}), loop,
                              reductionOf(chain.largest));
  (void)placeColumn(inner, inner.b);
  Expression expression(outer.sizes);
  expression.setSummed(chain.made[0].getResult(0), read(inner.b, made[0], {inner.row, inner.column}));
  FailureOr<Value> next = expression.add(inner.b, chain.largest, inner.letters, carried);
  if (failed(next))
    return failure();
  if (auto larger = next->getDefiningOp<arith::MaximumFOp>()) // of m no use tells the sign of 0
    larger.setFastmath(arith::FastMathFlags::nsz);
  if (loop)
    YieldOp::create(inner.b, loc, *next);
  write(loop ? tile.b : inner.b, loop ? loop.getResult(0) : *next, ratio, {tile.row});
  close(tile);
  return success();
}

/// r = p(m, n), m = n.
LogicalResult RolledNest::rescale(OpBuilder &b) {
  Tile tile{b, {}, {}, {}, {}, {}, {}};
  if (height > 1) {
    LoopName name(nameOfRow(), pathOf(chain.largest, "scale"));
    tile.loops.push_back(LoopOp::create(b, loc, name, constant(b, loc, height)));
    tile.loops.back().setRescales(true);
    tile.b = OpBuilder::atBlockEnd(tile.loops.back().getBlock());
  }
  tile.row = height > 1 ? tile.loops.back().getCoordinate() : constant(b, loc, 0);
  Value after = read(tile.b, ratio, {tile.row});
  FailureOr<Value> scale = share(tile.b, tile, read(tile.b, largest, {tile.row}), after);
  if (failed(scale))
    return failure();
  write(tile.b, *scale, ratio, {tile.row});
  write(tile.b, after, largest, {tile.row});
  close(tile);
  return success();
}

/// p(t, m) in the place of t.
LogicalResult RolledNest::fillShares(OpBuilder &b) {
  Tile tile = open(b, chain.shares, pathOf(chain.shares), /*columns=*/false, /*others=*/false), inner = tile;
  Value top = read(tile.b, largest, {tile.row});
  LoopOp loop;
  openColumns(inner, pathOf(chain.shares), {}, loop);
  (void)placeColumn(inner, inner.b);
  FailureOr<Value> value = share(inner.b, inner, read(inner.b, made[0], {inner.row, inner.column}), top);
  if (failed(value))
    return failure();
  write(inner.b, *value, made[0], {inner.row, inner.column});
  if (loop)
    YieldOp::create(inner.b, loc);
  isShared = true;
  close(tile);
  return success();
}

/// What sums read in the place of p.
LogicalResult RolledNest::fillLinear(OpBuilder &b, unsigned number) {
  linalg::GenericOp statement = chain.linear[number];
  Tile tile = open(b, statement, pathOf(statement), /*columns=*/true, /*others=*/false);
  (void)placeColumn(tile, tile.b);
  Expression expression(outer.sizes);
  setMade(expression, tile.b, statement, tile);
  FailureOr<Value> value = expression.element(tile.b, statement.getResult(0), coordinates(tile.b, statement, tile));
  if (failed(value))
    return failure();
  write(tile.b, *value, linear[number], {tile.row, tile.column});
  close(tile);
  return success();
}

/// sum = sum r + what the round adds.
LogicalResult RolledNest::updateFollower(OpBuilder &b, unsigned number) {
  linalg::GenericOp statement = chain.followers[number];
  PathAttr path = pathOf(statement);
  Tile tile = open(b, statement, path, /*columns=*/false, /*others=*/true);
  SmallVector<Value> at{tile.row};
  llvm::append_range(at, tile.others);
  Value sum = read(tile.b, states[number], at);
  if (ratio)
    sum = arith::MulFOp::create(tile.b, loc, sum, read(tile.b, ratio, {tile.row}));
  Tile inner = tile;
  LoopOp loop;
  Value carried = openColumns(inner, path, sum, loop, reductionOf(statement));
  Value inside = placeColumn(inner, inner.b);
  if (chain.isOfTiles) // which have what adds nothing behind the last column
    inside = {};
  auto guard = inside ? scf::IfOp::create(inner.b, loc, element, inside, /*withElseRegion=*/true) : scf::IfOp();
  OpBuilder then = guard ? guard.getThenBodyBuilder() : inner.b;
  Expression expression(outer.sizes);
  setMade(expression, then, statement, inner);
  FailureOr<Value> next = expression.add(then, statement, inner.letters, carried);
  if (failed(next))
    return failure();
  if (guard) {
    OpBuilder otherwise = guard.getElseBodyBuilder();
    scf::YieldOp::create(then, loc, *next);
    scf::YieldOp::create(otherwise, loc, carried);
    *next = guard.getResult(0);
    inner.b.setInsertionPointAfter(guard);
  }
  if (loop) {
    YieldOp::create(inner.b, loc, *next);
    *next = loop.getResult(0);
  } else {
    tile.b = inner.b;
  }
  write(tile.b, *next, states[number], at);
  close(tile);
  return success();
}

