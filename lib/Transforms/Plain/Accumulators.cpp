// SPDX-License-Identifier: Apache-2.0
/// \file
/// Accumulators in plain loops: products, arithmetic on elements, and stores.
#include "../Roles/Reads.h"
#include "TileLoops.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::plain;

//===- Memory -------------------------------------------------------------===//

Acc TileLoops::make(AccType type) {
  int64_t rows = llvm::divideCeil(type.getRows(), threads);
  return {allocate(type.getElementType(), rows * type.getColumns()), type.getColumns()};
}

Value TileLoops::get(OpBuilder &b, const Acc &from, Value row, Value column) {
  Value place = add(b, multiply(b, row, constant(from.stride)), column);
  return LLVM::LoadOp::create(b, loc, b.getF32Type(), address(b, from.pointer, b.getF32Type(), place));
}

void TileLoops::put(OpBuilder &b, const Acc &to, Value row, Value column, Value value) {
  Value place = add(b, multiply(b, row, constant(to.stride)), column);
  LLVM::StoreOp::create(b, loc, value, address(b, to.pointer, b.getF32Type(), place));
}

void TileLoops::eachRow(OpBuilder &b, AccType type, llvm::function_ref<void(OpBuilder &, Value, Value)> body) {
  loop(b, thread, constant(type.getRows()), constant(threads), [&](OpBuilder &in, Value number) {
    body(in, threads == 1 ? number : arith::DivUIOp::create(in, loc, number, constant(threads)).getResult(), number);
  });
}

void TileLoops::eachElement(OpBuilder &b, AccType type,
                            llvm::function_ref<void(OpBuilder &, Value, Value, Value)> body) {
  eachRow(b, type, [&](OpBuilder &in, Value row, Value number) {
    loop(in, constant(0), constant(type.getColumns()), constant(1),
         [&](OpBuilder &at, Value column) { body(at, row, number, column); });
  });
}

void TileLoops::copy(OpBuilder &b, AccType type, const Acc &from, const Acc &to) {
  if (from.pointer == to.pointer)
    return;
  eachElement(b, type, [&](OpBuilder &in, Value row, Value, Value column) {
    put(in, to, row, column, get(in, from, row, column));
  });
}

//===- Products -----------------------------------------------------------===//

void TileLoops::splat(SplatOp op) {
  OpBuilder b(op);
  Acc to = made(op.getAcc(), op.getAcc().getType());
  eachElement(b, op.getAcc().getType(),
              [&](OpBuilder &in, Value row, Value, Value column) { put(in, to, row, column, op.getValue()); });
}

/// Nothing else needs what the product adds to, so it may change.
static bool isLastUse(Operation *product, Value acc) {
  bool isOwn =
      isa<BlockArgument>(acc) || isa<scf::ForOp, MmaOp, MmaGatheredOp, SplatOp, LoadAccOp>(acc.getDefiningOp());
  return isOwn && acc.hasOneUse() && acc.getParentBlock() == product->getBlock();
}

/// Where a product adds to `before`: in place, or in a copy.
Acc TileLoops::sumOf(OpBuilder &b, Operation *product, Value before) {
  Acc acc = accs.lookup(before);
  if (!isLastUse(product, before)) {
    auto type = cast<AccType>(before.getType());
    Acc own = make(type);
    copy(b, type, acc, own);
    acc = own;
  }
  return accs[product->getResult(0)] = acc;
}

void TileLoops::mma(MmaOp op) {
  OpBuilder b(op);
  Acc acc = sumOf(b, op, op.getAcc());
  Value right = tileAt(b, op.getB(), op.getSecond());
  if (!op.getPresent())
    return multiply(b, op, acc, tileAt(b, op.getA(), op.getFirst()), right, 0);
  TileType left = op.getA().getType();
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

/// The product of a tile with the part of the other that begins `skipped` elements into the contraction. A sum has no
/// order, so that lanes share it.
void TileLoops::multiply(OpBuilder &b, MmaOp op, const Acc &acc, Value a, Value right, int64_t skipped) {
  int64_t depth = op.getA().getType().getDepth(op.getATransposed());
  eachElement(b, op.getAcc().getType(), [&](OpBuilder &in, Value row, Value number, Value column) {
    Side x{op.getA().getType(), op.getATransposed(), a, number, 0};
    Side y{op.getB().getType(), op.getBTransposed(), right, column, skipped};
    Value before = get(in, acc, row, column);
    put(in, acc, row, column, arith::AddFOp::create(in, loc, before, dot(in, x, y, depth)));
  });
}

Value TileLoops::dot(OpBuilder &b, const Side &x, const Side &y, int64_t depth) {
  auto flags = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
  Value none = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  auto sum = scf::ForOp::create(b, loc, constant(0), constant(depth), constant(1), none);
  if (sum.getBody()->mightHaveTerminator())
    sum.getBody()->getTerminator()->erase();
  OpBuilder at = OpBuilder::atBlockEnd(sum.getBody());
  auto element = [&](const Side &side) {
    Value k = sum.getInductionVar(), beyond = side.skipped == 0 ? k : add(at, k, constant(side.skipped));
    return elementOf(at, side.tile, side.transposed, side.base, side.number, beyond);
  };
  Value left = element(x), right = element(y), product = arith::MulFOp::create(at, loc, left, right, flags);
  scf::YieldOp::create(at, loc,
                       arith::AddFOp::create(at, loc, sum.getRegionIterArgs()[0], product, flags).getResult());
  return sum.getResult(0);
}

/// Each group of columns is the product of its own rows and columns.
void TileLoops::mmaGathered(MmaGatheredOp op) {
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

//===- Arithmetic ---------------------------------------------------------===//

void TileLoops::map(MapOp op) {
  OpBuilder b(op);
  AccType type = op.getResult().getType();
  Acc to = made(op.getResult(), type);
  Block &body = op.getBody().front();
  eachElement(b, type, [&](OpBuilder &in, Value row, Value, Value column) {
    IRMapping mapping;
    for (auto [value, argument] : llvm::zip(op.getValues(), body.getArguments())) {
      bool isColumn = cast<AccType>(value.getType()).getColumns() == 1;
      mapping.map(argument, get(in, accs.lookup(value), row, isColumn ? constant(0) : column));
    }
    for (Operation &inner : body.without_terminator())
      in.clone(inner, mapping);
    put(in, to, row, column, mapping.lookupOrDefault(body.getTerminator()->getOperand(0)));
  });
}

void TileLoops::reduceRows(ReduceRowsOp op) {
  OpBuilder b(op);
  AccType from = op.getValue().getType(), type = op.getResult().getType();
  Acc to = made(op.getResult(), type), values = accs.lookup(op.getValue());
  eachRow(b, type, [&](OpBuilder &in, Value row, Value) {
    Value first = get(in, values, row, constant(0));
    auto all = scf::ForOp::create(in, loc, constant(1), constant(from.getColumns()), constant(1), first);
    if (all.getBody()->mightHaveTerminator())
      all.getBody()->getTerminator()->erase();
    OpBuilder at = OpBuilder::atBlockEnd(all.getBody());
    Value so = all.getRegionIterArgs()[0], value = get(at, values, row, all.getInductionVar());
    Value next = op.getKind() == "sum" ? arith::AddFOp::create(at, loc, so, value).getResult()
                                       : arith::MaximumFOp::create(at, loc, so, value).getResult();
    scf::YieldOp::create(at, loc, next);
    put(in, to, row, constant(0), all.getResult(0));
  });
}

/// They lie where they lie.
void TileLoops::columns(ColumnsOp op) {
  OpBuilder b(op);
  Acc from = accs.lookup(op.getValue());
  accs[op.getResult()] = {address(b, from.pointer, b.getF32Type(), constant(op.getFirst())), from.stride};
}

void TileLoops::readTile(ReadTileOp op) {
  OpBuilder b(op);
  AccType type = op.getAcc().getType();
  Acc to = made(op.getAcc(), type);
  Value base = tileAt(b, op.getTile(), op.getPlace());
  eachElement(b, type, [&](OpBuilder &in, Value row, Value number, Value column) {
    bool turned = op.getTransposed();
    put(in, to, row, column,
        elementOf(in, op.getTile().getType(), /*transposed=*/false, base, turned ? column : number,
                  turned ? number : column));
  });
}

void TileLoops::loadRows(LoadRowsOp op) {
  OpBuilder b(op);
  Type element = *op.getType();
  Acc to = made(op.getAcc(), op.getAcc().getType());
  Value first = wide(b, op.getFirst()), size = wide(b, op.getSize());
  eachRow(b, op.getAcc().getType(), [&](OpBuilder &in, Value row, Value number) {
    Value index = add(in, first, number);
    Value value = elementOr0(in, loc, op.getSource(), index, element, less(in, index, size));
    if (!element.isF32())
      value = arith::ExtFOp::create(in, loc, in.getF32Type(), value);
    put(in, to, row, constant(0), value);
  });
}

void TileLoops::loadAcc(LoadAccOp op) {
  OpBuilder b(op);
  AccType type = op.getAcc().getType();
  Acc to = made(op.getAcc(), type);
  Value columns = constant(type.getColumns());
  Value first = multiply(b, wide(b, op.getPlace()), constant(type.getRows() * type.getColumns()));
  eachElement(b, type, [&](OpBuilder &in, Value row, Value number, Value column) {
    Value place = add(in, add(in, first, multiply(in, number, columns)), column);
    Value from = address(in, op.getSource(), in.getF32Type(), place);
    Value value = LLVM::LoadOp::create(in, loc, in.getF32Type(), from);
    if (op.getOnto())
      value = arith::AddFOp::create(in, loc, get(in, accs.lookup(op.getOnto()), row, column), value);
    put(in, to, row, column, value);
  });
}

void TileLoops::storeAcc(StoreAccOp op) {
  OpBuilder b(op);
  AccType type = op.getAcc().getType();
  Acc from = accs.lookup(op.getAcc());
  Value columns = constant(type.getColumns());
  Value first = multiply(b, wide(b, op.getPlace()), constant(type.getRows() * type.getColumns()));
  eachElement(b, type, [&](OpBuilder &in, Value row, Value number, Value column) {
    Value place = add(in, add(in, first, multiply(in, number, columns)), column);
    LLVM::StoreOp::create(in, loc, get(in, from, row, column), address(in, op.getTarget(), in.getF32Type(), place));
  });
}

/// The row in memory of row `row`, which is one of groups of `rows`; negative where its group is none.
Value TileLoops::rowOfGroup(OpBuilder &b, ValueRange firsts, int64_t rows, Value row) {
  if (firsts.size() == 1)
    return add(b, wide(b, firsts[0]), row);
  Value number = arith::DivUIOp::create(b, loc, row, constant(rows)), first = wide(b, firsts[0]);
  for (auto [n, other] : llvm::enumerate(firsts.drop_front())) {
    Value own = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, constant(static_cast<int64_t>(n) + 1));
    first = arith::SelectOp::create(b, loc, own, wide(b, other), first);
  }
  Value none = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, first, constant(0));
  Value place = add(b, first, arith::RemUIOp::create(b, loc, row, constant(rows)));
  return arith::SelectOp::create(b, loc, none, constant(-1), place);
}

/// 1 where there is no bitmap, and in groups that are none.
void TileLoops::loadEntries(LoadEntriesOp op) {
  OpBuilder b(op);
  AccType type = op.getAcc().getType();
  Acc to = made(op.getAcc(), type);
  int64_t rows = type.getRows() / static_cast<int64_t>(op.getRows().size());
  Value column = wide(b, op.getColumn()), stride = constant(static_cast<int64_t>(op.getStride()));
  Value has = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, wide(b, op.getSize()), constant(0));
  Type byte = b.getI8Type();
  eachRow(b, type, [&](OpBuilder &in, Value row, Value number) {
    Value from = rowOfGroup(in, op.getRows(), rows, number);
    Value lies = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::sge, from, constant(0));
    Value some = arith::AndIOp::create(in, loc, has, lies), start = add(in, multiply(in, from, stride), column);
    loop(in, constant(0), constant(type.getColumns()), constant(1), [&](OpBuilder &at, Value n) {
      Value one = arith::ConstantOp::create(at, loc, at.getF32FloatAttr(1.0f));
      Value bit = elementOr0(at, loc, op.getBitmap(), add(at, start, n), byte, some);
      Value entry = arith::SelectOp::create(at, loc, some, arith::UIToFPOp::create(at, loc, at.getF32Type(), bit), one);
      put(at, to, row, n, entry);
    });
  });
}

//===- Stores -------------------------------------------------------------===//

void TileLoops::storeAt(OpBuilder &b, Location loc, Value target, ArrayAttr shape, Type element, Value row,
                        Value column, Value value) {
  Value rows = size(cast<ArrayAttr>(shape[0])), columns = size(cast<ArrayAttr>(shape[1]));
  Value inside = arith::AndIOp::create(b, loc, less(b, row, rows), less(b, column, columns));
  OpBuilder then = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false).getThenBodyBuilder();
  if (!element.isF32())
    value = arith::TruncFOp::create(then, loc, element, value);
  Value place = add(then, multiply(then, row, columns), column);
  LLVM::StoreOp::create(then, loc, value, address(then, target, element, place));
}

void TileLoops::storeTile(StoreTileOp op) {
  OpBuilder b(op);
  Acc from = accs.lookup(op.getValue());
  Value row = wide(b, op.getIndices()[0]), column = wide(b, op.getIndices()[1]);
  eachElement(b, op.getValue().getType(), [&](OpBuilder &in, Value m, Value number, Value n) {
    bool turned = op.getTransposed();
    storeAt(in, loc, op.getTarget(), *op.getShape(), *op.getType(), add(in, row, turned ? n : number),
            add(in, column, turned ? number : n), get(in, from, m, n));
  });
}

/// Groups of rows, each where its slot is.
void TileLoops::storeBlocks(StoreBlocksOp op) {
  OpBuilder b(op);
  AccType type = op.getValue().getType();
  Acc from = accs.lookup(op.getValue());
  int64_t rows = type.getRows() / static_cast<int64_t>(op.getSlots().size());
  eachElement(b, type, [&](OpBuilder &in, Value m, Value number, Value n) {
    Value row = rowOfGroup(in, op.getSlots(), rows, number);
    storeAt(in, loc, op.getTarget(), *op.getShape(), *op.getType(), row, n, get(in, from, m, n));
  });
}
