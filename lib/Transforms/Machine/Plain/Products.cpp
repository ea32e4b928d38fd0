// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products in plain loops: of tiles, of lists of them, and of accumulators with tiles.
#include "TileLoops.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::plain;

/// Nothing else needs what the product adds to, so it may change.
static bool isLastUse(Operation *product, Value acc) {
  bool isOwn =
      isa<BlockArgument>(acc) || isa<scf::ForOp, MmaOp, MmaGatheredOp, SplatOp, LoadAccOp>(acc.getDefiningOp());
  return isOwn && acc.hasOneUse() && acc.getParentBlock() == product->getBlock();
}

Acc TileLoops::zeros(OpBuilder &b, Value acc) {
  auto type = cast<AccType>(acc.getType());
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  Acc to = made(acc, type);
  eachElement(b, type, [&](OpBuilder &in, Value row, Value, Value column) { put(in, to, row, column, none); });
  return to;
}

/// Where a product adds to `before`: in place, or in a copy; 0 where it adds to nothing.
Acc TileLoops::sumOf(OpBuilder &b, Operation *product, Value before) {
  if (!before)
    return zeros(b, product->getResult(0));
  Acc acc = accs.lookup(before);
  if (!isLastUse(product, before)) {
    auto type = cast<AccType>(before.getType());
    Acc own = make(type);
    copy(b, type, acc, own);
    acc = own;
  }
  return accs[product->getResult(0)] = acc;
}

void TileLoops::lower(MmaOp op) {
  OpBuilder b(op);
  Acc acc = sumOf(b, op, op.getAcc());
  Value right = tileAt(b, op.getB(), op.getSecond());
  TileType left = op.getATile();
  if (!left)
    return multiplyHeld(b, op, acc, right);
  if (!op.getPresent())
    return multiplyLists(b, op, acc, tileAt(b, op.getA(), op.getFirst()), right);
  int64_t depth = left.getDepth(op.getATransposed()), all = op.getB().getType().getDepth(op.getBTransposed());
  Type word = b.getI32Type();
  auto number = [&](int64_t value) { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(word, value)); };
  Value place = wide(b, op.getFirst()), elements = constant(left.getRows() * left.getColumns());
  for (int64_t slab = 0; slab < all / depth; ++slab) {
    Value shifted = arith::ShRUIOp::create(b, loc, op.getPresent(), number(slab));
    Value bit = arith::AndIOp::create(b, loc, shifted, number(1));
    Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit, number(0));
    OpBuilder then = scf::IfOp::create(b, loc, some, /*withElseRegion=*/false).getThenBodyBuilder();
    Value a = address(then, tiles.lookup(op.getA()), left.getElementType(), multiply(then, place, elements));
    multiply(then, op, acc, a, right, slab * depth);
    place = add(b, place, arith::ExtUIOp::create(b, loc, b.getI64Type(), bit));
  }
}

/// Tile by tile, where they follow each other along the contraction.
void TileLoops::multiplyLists(OpBuilder &b, MmaOp op, const Acc &acc, Value a, Value right) {
  TileType left = op.getATile(), bType = op.getB().getType();
  int64_t depth = left.getDepth(op.getATransposed()), own = bType.getDepth(op.getBTransposed());
  for (int64_t done = 0; done < op.getDepth(); done += depth) {
    auto at = [&](Value base, TileType tile, int64_t number) {
      return number == 0 ? base : address(b, base, tile.getElementType(), constant(number * tile.getRows() * tile.getColumns()));
    };
    multiply(b, op, acc, at(a, left, done / depth), at(right, bType, done / own), done % own);
  }
}

/// The rows of an accumulator with the columns of a tile, or of tiles that follow each other along the contraction.
void TileLoops::multiplyHeld(OpBuilder &b, MmaOp op, const Acc &acc, Value right) {
  Acc held = accs.lookup(op.getA());
  TileType tile = op.getB().getType();
  Value own = constant(tile.getDepth(op.getBTransposed())), elements = constant(tile.getRows() * tile.getColumns());
  eachElement(b, op.getResult().getType(), [&](OpBuilder &in, Value row, Value, Value column) {
    auto left = [&](OpBuilder &at, Value k) { return single(at, get(at, held, row, k)); };
    auto other = [&](OpBuilder &at, Value k) {
      Value number = arith::DivUIOp::create(at, loc, k, own), within = arith::RemUIOp::create(at, loc, k, own);
      Value base = address(at, right, tile.getElementType(), multiply(at, number, elements));
      return elementOf(at, tile, op.getBTransposed(), base, column, within);
    };
    put(in, acc, row, column, arith::AddFOp::create(in, loc, get(in, acc, row, column), dot(in, op.getDepth(), left, other)));
  });
}

/// The product of a tile with the part of the other that begins `skipped` elements into the contraction. A sum has no
/// order, so that lanes share it.
void TileLoops::multiply(OpBuilder &b, MmaOp op, const Acc &acc, Value a, Value right, int64_t skipped) {
  int64_t depth = std::min(op.getATile().getDepth(op.getATransposed()), op.getDepth());
  eachElement(b, op.getResult().getType(), [&](OpBuilder &in, Value row, Value number, Value column) {
    Side x{op.getATile(), op.getATransposed(), a, number, 0};
    Side y{op.getB().getType(), op.getBTransposed(), right, column, skipped};
    Value before = get(in, acc, row, column);
    put(in, acc, row, column, arith::AddFOp::create(in, loc, before, dot(in, x, y, depth)));
  });
}

Value TileLoops::dot(OpBuilder &b, const Side &x, const Side &y, int64_t depth) {
  auto element = [&](const Side &side) {
    return [&](OpBuilder &at, Value k) {
      Value beyond = side.skipped == 0 ? k : add(at, k, constant(side.skipped));
      return elementOf(at, side.tile, side.transposed, side.base, side.number, beyond);
    };
  };
  return dot(b, depth, element(x), element(y));
}

Value TileLoops::dot(OpBuilder &b, int64_t depth, Element left, Element right) {
  auto flags = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
  Value none = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  auto sum = scf::ForOp::create(b, loc, constant(0), constant(depth), constant(1), none);
  if (sum.getBody()->mightHaveTerminator())
    sum.getBody()->getTerminator()->erase();
  OpBuilder at = OpBuilder::atBlockEnd(sum.getBody());
  Value x = left(at, sum.getInductionVar()), y = right(at, sum.getInductionVar());
  Value product = arith::MulFOp::create(at, loc, x, y, flags);
  scf::YieldOp::create(at, loc,
                       arith::AddFOp::create(at, loc, sum.getRegionIterArgs()[0], product, flags).getResult());
  return sum.getResult(0);
}

/// Each group of columns is the product of its own rows and columns.
void TileLoops::lower(MmaGatheredOp op) {
  OpBuilder b(op);
  AccType type = op.getAcc().getType();
  Acc acc = sumOf(b, op, op.getAcc());
  Value left = tileAt(b, op.getA(), Value()), right = tileAt(b, op.getB(), Value());
  TileType a = op.getA().getType(), bType = op.getB().getType();
  auto count = static_cast<int64_t>(op.getColumns().size()), groups = static_cast<int64_t>(op.getRows().size()) / count;
  int64_t width = type.getColumns() / count, height = type.getRows() / groups;
  for (int64_t slot = 0; slot < count; ++slot)
    eachRow(b, type, [&](OpBuilder &in, Value row, Value number) {
      Value from = rowOfGroup(in, op.getRows().slice(slot * groups, groups), height, number);
      loop(in, constant(0), constant(width), constant(1), [&](OpBuilder &at, Value n) {
        Value column = add(at, n, constant(slot * width));
        Side x{a, /*transposed=*/true, left, from, 0};
        Side y{bType, /*transposed=*/true, right, add(at, wide(at, op.getColumns()[slot]), n), 0};
        Value sum = dot(at, x, y, a.getDepth(/*transposed=*/true));
        put(at, acc, row, column, arith::AddFOp::create(at, loc, get(at, acc, row, column), sum));
      });
    });
}
