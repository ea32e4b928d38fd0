// SPDX-License-Identifier: Apache-2.0
/// \file
/// The stored tiles of a step of an execution layout.
#include "StepTiles.h"

#include "TileFactors.h"
#include "TileStatements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lacis;

std::optional<StepTiles> StepTiles::of(const Access &access) {
  StepTiles made;
  made.found = findOf(access);
  if (!made.found)
    return std::nullopt;
  made.walked = access.tensor.getDefiningOp<RegroupOp>();
  made.layout.format = made.walked.getLayout().getFormat();
  made.layout.capacity = made.walked.getLayout().getCapacity();
  ArrayRef<LevelAttr> levels = made.layout.format.getLevels();
  auto axisOf = [&](unsigned level) { return levels[level].getDigits()[0].axis; };
  if (failed(made.layout.read(axisOf(0), axisOf(1))))
    return std::nullopt;
  ArrayRef<LevelAttr> ofBlock = formatOf(made.walked.getSource()).getLevels().take_back(2);
  made.block = {ofBlock[0].getDigits()[0].mod, ofBlock[1].getDigits()[0].mod};
  auto [tall, wide] = made.layout.transposed ? std::pair(made.layout.step, made.layout.panel)
                                             : std::pair(made.layout.panel, made.layout.step);
  made.layout.isFull = made.layout.isLinked && made.block.first % tall == 0 && made.block.second % wide == 0;
  return made;
}

Value StepTiles::constant(OpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, walked.getLoc(), value);
}

TileType StepTiles::list() {
  auto [tall, wide] = layout.shape();
  Type element = getElementTypeOrSelf(walked.getSource());
  return TileType::get(element.getContext(), {layout.tilesPerStep(), tall, wide}, element);
}

//===- Producer -----------------------------------------------------------===//

void StepTiles::load(OpBuilder &b, const LoopName &name, RoleScalars &scalars, Value list) {
  Location loc = walked.getLoc();
  if (block.first == 0)
    return loadMatrix(b, scalars, list);
  Value step = scalars.get(b, found.getParent());
  if (layout.isFull) {
    Value first = arith::MulIOp::create(b, loc, step, constant(b, layout.tilesPerStep()));
    for (int64_t n = 0; n < layout.tilesPerStep(); ++n)
      loadLinked(b, arith::AddIOp::create(b, loc, first, constant(b, n)), constant(b, n), list);
    return;
  }
  auto bounds = BoundsOp::create(b, loc, b.getIndexType(), b.getIndexType(), walked, 2, step);
  Value count = arith::SubIOp::create(b, loc, bounds.getHi(), bounds.getLo());
  if (!layout.isLinked) {
    LoadRunOp::create(b, loc, walked, bounds.getLo(), count, list);
    return;
  }
  auto loop = LoopOp::create(b, loc, name, count);
  OpBuilder in = OpBuilder::atBlockEnd(loop.getBlock());
  Value position = arith::AddIOp::create(in, loc, bounds.getLo(), loop.getCoordinate());
  loadLinked(in, position, loop.getCoordinate(), list);
  YieldOp::create(in, loc, ValueRange());
}

/// A tile that lies where the values are: part of a stored block, numbered row by row within the block.
void StepTiles::loadLinked(OpBuilder &b, Value position, Value place, Value list) {
  Location loc = walked.getLoc();
  Value part = LocateOp::create(b, loc, b.getIndexType(), walked, 3, position, ValueRange());
  auto [tall, wide] = layout.shape();
  int64_t across = block.second / wide, parts = block.first / tall * across;
  Value slot = part, row = constant(b, 0), column = row;
  if (parts != 1) {
    slot = arith::DivUIOp::create(b, loc, part, constant(b, parts));
    Value within = arith::RemUIOp::create(b, loc, part, constant(b, parts));
    row = arith::MulIOp::create(b, loc, arith::DivUIOp::create(b, loc, within, constant(b, across)), constant(b, tall));
    column = arith::MulIOp::create(b, loc, arith::RemUIOp::create(b, loc, within, constant(b, across)), constant(b, wide));
  }
  loadTile(b, loc, walked.getSource(), {slot, row, column}, list, place);
}

/// The tiles of a dense matrix, whose panels stand in its order; the last may lack rows.
void StepTiles::loadMatrix(OpBuilder &b, RoleScalars &scalars, Value list) {
  Location loc = walked.getLoc();
  auto steps = cast<LevelLoopOp>(cast<BlockArgument>(found.getParent()).getOwner()->getParentOp());
  Value panel = scalars.get(b, steps.getParent()), coordinate = scalars.get(b, steps.getCoordinates()[0]);
  Value depth = arith::MulIOp::create(b, loc, coordinate, constant(b, layout.step));
  Value rows = tensor::DimOp::create(b, loc, walked.getSource(), layout.format.getLevels()[0].getDigits()[0].axis);
  Value begin = arith::MulIOp::create(b, loc, panel, constant(b, layout.panel));
  for (int64_t n = 0; n < layout.tilesPerStep(); ++n) {
    Value row = arith::AddIOp::create(b, loc, begin, constant(b, n * layout.rows));
    Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, row, rows);
    OpBuilder then = scf::IfOp::create(b, loc, some, /*withElseRegion=*/false).getThenBodyBuilder();
    SmallVector<Value> from{constant(then, 0), layout.transposed ? depth : row, layout.transposed ? row : depth};
    loadTile(then, loc, walked.getSource(), from, list, constant(then, n));
  }
}

//===- Consumers ----------------------------------------------------------===//

/// A number and what is added to it, as accumulators that stand side by side have it.
static std::pair<Value, int64_t> splitPlace(Value place) {
  auto sum = place.getDefiningOp<arith::AddIOp>();
  APInt number;
  bool isNext = sum && matchPattern(sum.getRhs(), m_ConstantInt(&number));
  return isNext ? std::pair(sum.getLhs(), number.getSExtValue()) : std::pair(place, int64_t(0));
}

StepTiles::Found StepTiles::find(OpBuilder &b, RoleScalars &scalars, const Found &last) {
  Location loc = walked.getLoc();
  Type word = b.getI32Type();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  int64_t width = layout.width;
  Found own;
  std::tie(own.base, own.number) = splitPlace(found.getDigits()[0]);
  own.base = scalars.get(b, own.base);
  own.step = scalars.get(b, found.getParent());
  bool isNext = last.step == own.step && last.base == own.base && last.number + 1 == own.number;
  auto shift = [&] {
    Value who = arith::IndexCastOp::create(b, loc, word, own.base);
    Value from = arith::MulIOp::create(b, loc, who, number(width));
    return own.number == 0 ? from : arith::AddIOp::create(b, loc, from, number(own.number * width)).getResult();
  };
  if (layout.isFull && width == 1) {
    own.first = shift();
    return own;
  }
  if (isNext) {
    own.first = arith::AddIOp::create(b, loc, last.first, math::CtPopOp::create(b, loc, last.stored));
    own.rest = arith::ShRUIOp::create(b, loc, last.rest, number(width));
  } else {
    Value from = shift();
    Value below = arith::SubIOp::create(b, loc, arith::ShLIOp::create(b, loc, number(1), from), number(1));
    Value bits = PresenceOp::create(b, loc, word, walked, 2, own.step);
    own.first = math::CtPopOp::create(b, loc, arith::AndIOp::create(b, loc, bits, below));
    own.rest = arith::ShRUIOp::create(b, loc, bits, from);
  }
  own.stored = arith::AndIOp::create(b, loc, own.rest, number((int64_t(1) << width) - 1));
  return own;
}
