// SPDX-License-Identifier: Apache-2.0
/// \file
/// Arithmetic on the elements of a tile, as maps of accumulators.
///
/// What of it follows from rows alone is a map of its own, of one column: it is computed once a row.
#include "TileMaps.h"

#include "TileFactors.h"
#include "TileStatements.h"
#include "WholeTiles.h"
#include "lacis/Dialect/Lacis/IR/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cmath>

using namespace mlir;
using namespace lacis;

static constexpr double kLog2E = 1.4426950408889634;

Value TileMaps::rounded(OpBuilder &b, Value acc, Type element) {
  auto type = cast<AccType>(acc.getType());
  auto map = MapOp::create(b, acc.getLoc(), AccType::get(b.getContext(), type.getShape(), element), acc, ValueRange());
  Block &body = map.getBody().emplaceBlock();
  Value wide = body.addArgument(type.getElementType(), acc.getLoc());
  OpBuilder in = OpBuilder::atBlockEnd(&body);
  YieldOp::create(in, acc.getLoc(), arith::TruncFOp::create(in, acc.getLoc(), element, wide).getResult());
  return map.getResult();
}

void TileMaps::divideByRows(LoopOp nest, TileVariance &variance) {
  nest->walk([&](arith::DivFOp quotient) {
    if (variance.of(quotient.getRhs()).size() != 1 || variance.of(quotient.getLhs()).size() != 2)
      return;
    OpBuilder b(quotient);
    Location loc = quotient.getLoc();
    Value one = arith::ConstantOp::create(b, loc, b.getFloatAttr(quotient.getType(), 1.0));
    Value part = arith::DivFOp::create(b, loc, one, quotient.getRhs());
    quotient.getResult().replaceAllUsesWith(arith::MulFOp::create(b, loc, quotient.getLhs(), part));
  });
}

/// Rows and columns of the tile, from those that all coordinates are counted from.
LogicalResult TileMaps::collectPlace(Value index) {
  std::optional<TileVariance::Place> place = variance.placeOf(index);
  if (!place)
    return failure();
  Value &base = bases[place->coordinate == row ? 0 : 1];
  if (readsPlace && base && base != place->base)
    return failure();
  base = place->base;
  readsPlace = true;
  return success();
}

/// What a value is a constant times of.
static std::pair<Value, double> withoutFactor(Value value) {
  FloatAttr factor;
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product || !matchPattern(product.getRhs(), m_Constant(&factor)))
    return {value, 1.0};
  return {product.getLhs(), factor.getValueAsDouble()};
}

/// Numbers along the rows or the columns of an operand; others are read element by element.
bool TileMaps::isVector(ReadOp read) {
  if (known.contains(read))
    return true;
  auto place = read.getIndices().size() == 1 ? variance.placeOf(read.getIndices()[0]) : std::nullopt;
  return place && place->coordinate;
}

/// Finds what the map takes of the value.
LogicalResult TileMaps::collect(OpBuilder &b, Value value) {
  const TileVariance::Coordinates &along = variance.of(value);
  Operation *op = value.getDefiningOp();
  if (along.empty() || known.contains(value)) {
    leaves.insert(value);
    return success();
  }
  if (value.getType().isIndex() && variance.placeOf(value))
    return collectPlace(value);
  auto take = [&](FailureOr<Value> made) -> LogicalResult {
    if (succeeded(made))
      known[value] = *made, leaves.insert(value);
    return made;
  };
  ReadOp read = operandOf(value);
  if (read && isVector(read)) // they arrive in the type of sums
    return take(known.contains(read) ? FailureOr<Value>(known[read]) : loadVector(b, read));
  bool isElement = read && op == read;
  if (!op || !(isPure(op) || isElement) || op->getNumRegions() != 0 || op->getNumResults() != 1)
    return op ? refuseStatement(op) : refuseStatement(value.getParentBlock()->getParentOp());
  bool isOfRows = column && along.size() == 1 && along.contains(row) && isa<FloatType>(value.getType());
  if (isOfRows) {
    TileMaps ofRows(variance, scalars, known, row);
    return take(ofRows.make(b, value, Value(), value.getLoc()));
  }
  if (auto choice = dyn_cast<arith::SelectOp>(op); choice && column && branches) {
    if (FailureOr<Value> made = choose(b, choice); failed(made) || *made)
      return take(made);
  }
  bool isPower = isa<math::ExpOp>(op);
  auto difference = isPower ? op->getOperand(0).getDefiningOp<arith::SubFOp>() : arith::SubFOp();
  SmallVector<Value> operands(difference ? difference->getOperands() : op->getOperands());
  if (difference)
    operands[0] = withoutFactor(operands[0]).first;
  for (Value operand : operands)
    if (failed(collect(b, operand)))
      return failure();
  steps.insert(op);
  return success();
}

/// if (all of the tile has the first value): that; else: element by element. Null where coordinates alone do not say it.
FailureOr<Value> TileMaps::choose(OpBuilder &b, arith::SelectOp choice) {
  Location loc = choice.getLoc();
  Value whole = isTrueInTile(b, choice.getCondition(), variance, scalars);
  if (!whole)
    return Value();
  TileMaps wholly(variance, scalars, known, row);
  wholly.branchOnTiles();
  FailureOr<Value> first = wholly.make(b, choice.getTrueValue(), column, loc);
  if (failed(first))
    return failure();
  known[choice.getTrueValue()] = *first;
  auto guard = scf::IfOp::create(b, loc, first->getType(), whole, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder then = guard.getThenBodyBuilder(), otherwise = guard.getElseBodyBuilder();
  scf::YieldOp::create(then, loc, *first);
  Known inside = known;
  RoleScalars numbers = scalars;
  TileMaps partly(variance, numbers, inside, row);
  FailureOr<Value> second = partly.make(otherwise, choice, column, loc);
  if (failed(second))
    return failure();
  scf::YieldOp::create(otherwise, loc, *second);
  return guard.getResult(0);
}

/// A vector along the rows or the columns.
FailureOr<Value> TileMaps::loadVector(OpBuilder &b, ReadOp read) {
  if (read.getIndices().size() != 1 || !variance.placeOf(read.getIndices()[0]))
    return refuseStatement(read);
  return lacis::loadVector(b, read, row, variance, scalars);
}

void TileMaps::loadAhead(OpBuilder &b, Value value, const TileVariance::Coordinates &along) {
  Operation *op = value.getDefiningOp();
  auto read = behindCast(value).getDefiningOp<ReadOp>();
  if (!op || op->getNumRegions() != 0 || matchPattern(value, m_Constant()))
    return;
  bool isAlong = variance.of(value) == along;
  if (isAlong && along.empty())
    (void)scalars.get(b, value);
  else if (!read)
    llvm::for_each(op->getOperands(), [&](Value operand) { loadAhead(b, operand, along); });
  else if (isAlong && isa<BlockArgument>(read.getTensor()) && !known.contains(read))
    if (FailureOr<Value> made = loadVector(b, read); succeeded(made))
      known[read] = *made;
}

/// exp x = 2^(x log2 e), which machines have; of a difference in two instructions, a factor of its left side included.
Value TileMaps::powerOfTwo(OpBuilder &b, Operation *op) {
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  auto constant = [&](double value) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(x.getType(), value)).getResult();
  };
  auto scaled = [&](Value value) { return arith::MulFOp::create(b, loc, compute(b, value), constant(kLog2E)).getResult(); };
  auto difference = x.getDefiningOp<arith::SubFOp>();
  if (!difference)
    return math::Exp2Op::create(b, loc, scaled(x), arith::FastMathFlags::afn);
  Value less = arith::NegFOp::create(b, loc, scaled(difference.getRhs()));
  auto [left, factor] = withoutFactor(difference.getLhs());
  Value power = math::FmaOp::create(b, loc, compute(b, left), constant(factor * kLog2E), less);
  return math::Exp2Op::create(b, loc, power, arith::FastMathFlags::afn);
}

/// A quotient by a number is a product, if float32 has its inverse; tanh, and a quotient for each element, are what
/// approximate instructions make of them. Those of rows are few.
Value TileMaps::approximate(OpBuilder &b, Operation *op) {
  FloatAttr divisor;
  auto quotient = dyn_cast<arith::DivFOp>(op);
  bool isByNumber = quotient && matchPattern(quotient.getRhs(), m_Constant(&divisor));
  if (double inverse = isByNumber ? 1 / divisor.getValueAsDouble() : 0; std::isnormal(static_cast<float>(inverse))) {
    auto factor = arith::ConstantOp::create(b, op->getLoc(), b.getFloatAttr(quotient.getType(), inverse));
    return arith::MulFOp::create(b, op->getLoc(), compute(b, quotient.getLhs()), factor);
  }
  Operation *made = b.clone(*op, inner);
  if (isa<math::TanhOp>(made) || (quotient && !isByNumber && column))
    made->setAttr("fastmath", arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::afn));
  return made->getResult(0);
}

Value TileMaps::compute(OpBuilder &b, Value value) {
  if (Value done = inner.lookupOrNull(value))
    return done;
  Operation *op = value.getDefiningOp();
  Value made;
  auto place = value.getType().isIndex() ? variance.placeOf(value) : std::nullopt;
  if (place && place->coordinate) { // a map is handed whole coordinates
    made = inner.lookup(place->coordinate);
  } else if (isa<math::ExpOp>(op)) {
    made = powerOfTwo(b, op);
  } else {
    for (Value operand : op->getOperands())
      (void)compute(b, operand);
    made = approximate(b, op);
  }
  inner.map(value, made);
  return made;
}

//===- Gathered tiles -----------------------------------------------------===//

/// Which part a column is of is known when the kernel is compiled: a choice of them costs no instruction.
Value TileMaps::chosenPart(OpBuilder &b, Value part, ArrayRef<Value> values) {
  Location loc = part.getLoc();
  Value chosen = values.back();
  for (int64_t number = values.size() - 2; number >= 0; --number) {
    Value own = arith::ConstantIndexOp::create(b, loc, number);
    Value is = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, part, own);
    chosen = arith::SelectOp::create(b, loc, is, values[number], chosen);
  }
  return chosen;
}

/// In the body of a map, whose columns are counted from the first of the tile: where each begins, behind that the gathered
/// leaves.
void TileMaps::placeGathered(OpBuilder &b, Value across, ArrayRef<SmallVector<Value>> numbers) {
  Location loc = across.getLoc();
  int64_t width = variance.sizeOf(column) / scalars.parts.size();
  Value part = arith::DivUIOp::create(b, loc, across, arith::ConstantIndexOp::create(b, loc, width));
  Value within = arith::RemUIOp::create(b, loc, across, arith::ConstantIndexOp::create(b, loc, width));
  for (auto [leaf, values] : llvm::zip(gathered, numbers))
    inner.map(leaf, chosenPart(b, part, values));
  inner.map(column, arith::AddIOp::create(b, loc, chosenPart(b, part, numbers.back()), within));
}

FailureOr<Value> TileMaps::make(OpBuilder &b, Value value, Value column, Location loc, int64_t across) {
  this->column = column;
  SmallVector<int64_t> shape{variance.sizeOf(row), column ? variance.sizeOf(column) : across};
  auto type = AccType::get(b.getContext(), shape, value.getType());
  if (Value acc = known.lookup(value); acc && acc.getType() == type)
    return acc;
  if (failed(collect(b, value)))
    return failure();
  if (Value acc = known.lookup(value); acc && acc.getType() == type)
    return acc;
  SmallVector<Value> accs, elements;
  for (Value leaf : leaves) {
    if (Value acc = known.lookup(leaf))
      accs.push_back(acc), elements.push_back(leaf);
    else if (scalars.isGathered(leaf))
      gathered.push_back(leaf);
    else if (!matchPattern(leaf, m_Constant()))
      inner.map(leaf, scalars.get(b, leaf));
  }
  bool isGathered = !gathered.empty() || scalars.isGathered(bases[1]);
  readsPlace |= isGathered;
  if (accs.empty() && !readsPlace && variance.of(value).empty())
    return SplatOp::create(b, loc, type, scalars.get(b, value)).getResult();
  SmallVector<Value> places;
  for (Value base : readsPlace ? ArrayRef<Value>(bases) : ArrayRef<Value>())
    places.push_back(scalars.baseOf(b, {isGathered && base == bases[1] ? Value() : base, Value()}, loc));
  SmallVector<SmallVector<Value>> numbers; // of each part: the gathered leaves, and where the columns begin
  for (Value leaf : isGathered ? ArrayRef<Value>(gathered) : ArrayRef<Value>())
    numbers.push_back(llvm::map_to_vector(scalars.parts, [&](RoleScalars &own) { return own.get(b, leaf); }));
  if (isGathered)
    numbers.push_back(llvm::map_to_vector(scalars.parts, [&](RoleScalars &own) {
      return own.baseOf(b, {bases[1], Value()}, loc);
    }));
  auto map = MapOp::create(b, loc, type, accs, places);
  Block &body = map.getBody().emplaceBlock();
  for (auto [acc, leaf] : llvm::zip(accs, elements))
    inner.map(leaf, body.addArgument(cast<AccType>(acc.getType()).getElementType(), loc));
  OpBuilder in = OpBuilder::atBlockEnd(&body);
  if (readsPlace) {
    inner.map(row, body.addArgument(b.getIndexType(), loc));
    Value across = body.addArgument(b.getIndexType(), loc);
    if (isGathered)
      placeGathered(in, across, numbers);
    else if (column)
      inner.map(column, across);
  }
  for (Operation &op : *value.getParentBlock()) // in the order of the nest, as far as it is one block
    if (steps.contains(&op))
      (void)compute(in, op.getResult(0));
  YieldOp::create(in, loc, compute(in, value));
  return map.getResult();
}

//===- Stores -------------------------------------------------------------===//

FailureOr<StoreTileOp> TileMaps::store(OpBuilder &b, const Access &to, Value value) {
  Location loc = to.getLoc();
  if (auto rounded = value.getDefiningOp<arith::TruncFOp>())
    value = rounded.getIn(); // the store rounds
  SmallVector<Value> at, along;
  for (Value index : to.indices) {
    std::optional<TileVariance::Place> place = variance.placeOf(index);
    if (!place || (!along.empty() && !place->coordinate))
      return refuseStatement(to.op);
    if (place->coordinate)
      along.push_back(place->coordinate);
    at.push_back(scalars.baseOf(b, *place, loc));
  }
  if (along.empty() || along.size() > 2 || !llvm::is_contained(along, row))
    return refuseStatement(to.op);
  bool isTransposed = along.back() == row;
  FailureOr<Value> acc = make(b, value, along.size() == 1 ? Value() : along[isTransposed ? 0 : 1], loc);
  if (failed(acc))
    return failure();
  if (along.size() == 1) {
    StoreRowsOp::create(b, loc, *acc, to.tensor, at, Value());
    return StoreTileOp();
  }
  return StoreTileOp::create(b, loc, *acc, to.tensor, placeOfBox(b, to.tensor, at), Value(), Value(),
                             isTransposed ? b.getUnitAttr() : UnitAttr(), ArrayAttr(), TypeAttr());
}
