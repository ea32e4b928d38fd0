// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products, and arithmetic on accumulators: 64 rows over the 128 threads of a warpgroup.
///
/// Elements 4n and 4n + 1 of a thread are neighbours in one row, 4n + 2 and 4n + 3 those eight rows below;
/// the four threads of a quad share their rows.
#include "RoleLowering.h"
#include "Walk.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::hopper;

LogicalResult hopper::checkAcc(Operation *op, AccType type) {
  if (type.getRows() == 64 && type.getElementType().isF32() && type.getColumns() % 8 == 0 && type.getColumns() <= 256)
    return success();
  return op->emitError("tiles: a consumer holds 64 rows of up to 256 float32 columns, a multiple of 8; got ") << type;
}

//===- Products -----------------------------------------------------------===//

Value hopper::descriptor(OpBuilder &b, Location loc, Instructions &i, Value address, const Walk &walk) {
  Value units = arith::ShRUIOp::create(b, loc, address, i.constant(4));
  Value low = arith::ExtUIOp::create(b, loc, b.getI64Type(), units);
  return arith::OrIOp::create(b, loc, low, i.constant64(static_cast<int64_t>(walk.descriptorBits())));
}

/// One group of products: tile n of `a` with slab `slabs[n]` of `b`, all of them where `slabs` is empty.
RoleLowering::Pieces RoleLowering::products(OpBuilder &b, MmaOp op, Pieces acc, Value a, Value bTile, Pieces slabs) {
  Instructions i(b, op.getLoc());
  Walk left(op.getA().getType(), op.getATransposed()), right(op.getB().getType(), op.getBTransposed());
  int64_t count = slabs.empty() ? right.depth / left.depth : slabs.size();
  auto shifted = [&](Value base, int64_t units) {
    return units == 0 ? base : arith::AddIOp::create(b, op.getLoc(), base, i.constant64(units)).getResult();
  };
  i.fenceProducts();
  for (int64_t tile = 0; tile < count; ++tile) {
    Value slab = slabs.empty() ? shifted(bTile, tile * left.steps() * right.step)
                               : arith::AddIOp::create(b, op.getLoc(), bTile, slabs[tile]).getResult();
    for (int64_t step = 0; step < left.steps(); ++step)
      acc = i.product(acc, {shifted(a, tile * left.tile + step * left.step), left.transposed},
                      {shifted(slab, step * right.step), right.transposed}, op.getA().getType().getElementType());
  }
  i.commitProducts();
  i.waitProducts(1);
  return acc;
}

/// The products of exactly `count` stored tiles, the lowest bits of `present` first.
RoleLowering::Pieces RoleLowering::storedProducts(OpBuilder &b, MmaOp op, int64_t count, Value present, Pieces acc,
                                                  Value a, Value bTile) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  if (count == 0) {
    i.waitProducts(0);
    return acc;
  }
  Walk left(op.getA().getType(), op.getATransposed()), right(op.getB().getType(), op.getBTransposed());
  Pieces slabs;
  if (count < right.depth / left.depth)
    for (int64_t n = 0; n < count; ++n) {
      Value slab = LLVM::CountTrailingZerosOp::create(b, loc, b.getI32Type(), present, /*is_zero_poison=*/true);
      Value units = arith::ExtUIOp::create(b, loc, b.getI64Type(), slab);
      slabs.push_back(arith::MulIOp::create(b, loc, units, i.constant64(left.steps() * right.step)));
      present = arith::AndIOp::create(b, loc, present, i.add(present, -1));
    }
  return products(b, op, acc, a, bTile, slabs);
}

/// One straight path for each number of stored tiles in [low, high]: a test around single products would serialise
/// them. Halving makes branches; a chain of equalities would become an indirect jump.
RoleLowering::Pieces RoleLowering::choose(OpBuilder &b, MmaOp op, int64_t low, int64_t high, Value found, Value present,
                                          Pieces acc, Value a, Value bTile) {
  if (low == high)
    return storedProducts(b, op, low, present, acc, a, bTile);
  Location loc = op.getLoc();
  int64_t middle = (low + high + 1) / 2;
  Value less = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, found, Instructions(b, loc).constant(middle));
  auto guard = scf::IfOp::create(b, loc, TypeRange(ValueRange(acc)), less, /*addThenBlock=*/true,
                                 /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
  scf::YieldOp::create(then, loc, choose(then, op, low, middle - 1, found, present, acc, a, bTile));
  scf::YieldOp::create(otherwise, loc, choose(otherwise, op, middle, high, found, present, acc, a, bTile));
  return Pieces(guard.getResults());
}

LogicalResult hopper::checkOperand(Operation *op, TileType tile, bool transposed) {
  if (!lineBytes(tile) || !(tile.getElementType().isBF16() || tile.getElementType().isF16()))
    return op->emitError("tiles: rows of bf16 or f16 tiles have 16, 32 or 64 elements; got ") << tile;
  if (tile.getDepth(transposed) % 16 != 0 || tile.getRows() % 8 != 0)
    return op->emitError("tiles: a product has 16 elements of the contraction, and 8 rows, or a multiple; got ") << tile;
  return success();
}

LogicalResult RoleLowering::lowerMma(OpBuilder &b, MmaOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  TileType a = op.getA().getType(), bType = op.getB().getType();
  bool isTf32 = op.getTf32() && !op.getATransposed() && !op.getBTransposed() && lineBytes(a) && lineBytes(bType);
  if (failed(checkAcc(op, op.getAcc().getType())) ||
      (!isTf32 &&
       (failed(checkOperand(op, a, op.getATransposed())) || failed(checkOperand(op, bType, op.getBTransposed())))))
    return failure();
  Walk left(a, op.getATransposed()), right(bType, op.getBTransposed());
  Value aTile = descriptor(b, loc, i, tileAddress(i, op.getA(), op.getFirst()), left);
  Value bTile = descriptor(b, loc, i, tileAddress(i, op.getB(), op.getSecond()), right);
  Pieces acc = pieces(op.getAcc());
  if (!op.getPresent()) {
    acc = products(b, op, acc, aTile, bTile, {});
  } else {
    Value present = mapping.lookupOrDefault(op.getPresent());
    Value found = math::CtPopOp::create(b, loc, present);
    acc = choose(b, op, 0, right.depth / left.depth, found, present, acc, aTile, bTile);
  }
  setPieces(op.getResult(), acc);
  if (!previous.empty() && acquiredIn == op->getBlock())
    releasePrevious(i);
  return success();
}

//===- Arithmetic ---------------------------------------------------------===//

void RoleLowering::lowerSplat(OpBuilder &b, SplatOp op) {
  Value value = mapping.lookupOrDefault(op.getValue());
  int64_t columns = op.getAcc().getType().getColumns();
  setPieces(op.getAcc(), Pieces(columns == 1 ? 2 : columns / 2, value));
}

Value RoleLowering::element(OpBuilder &b, Value acc, size_t n) {
  if (waitsForStore(acc)) {
    if (auto map = acc.getDefiningOp<MapOp>())
      return applyMap(b, map, [&](Value value) { return element(b, value, n); });
    if (n % 8 == 0) // elements are asked for in order
      setPieces(acc, readPair(b, acc.getDefiningOp<ReadTileOp>(), n / 8));
    return pieces(acc)[n % 8];
  }
  return cast<AccType>(acc.getType()).getColumns() == 1 ? pieces(acc)[n % 4 / 2] : pieces(acc)[n];
}

LogicalResult RoleLowering::lowerMap(OpBuilder &b, MapOp op) {
  AccType type = op.getResult().getType();
  bool isColumn = type.getColumns() == 1;
  if (!isColumn && failed(checkAcc(op, type)))
    return failure();
  if (waitsForStore(op.getResult()))
    return success();
  Pieces results;
  for (int64_t n = 0, count = isColumn ? 2 : type.getColumns() / 2; n < count; ++n)
    results.push_back(applyMap(b, op, [&](Value value) { return element(b, value, isColumn ? 2 * n : n); }));
  setPieces(op.getResult(), results);
  return success();
}

/// Within a thread, then across the four threads that share a row.
void RoleLowering::lowerReduceRows(OpBuilder &b, ReduceRowsOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  auto combine = [&](Value x, Value y) -> Value {
    if (op.getKind() == "sum")
      return arith::AddFOp::create(b, loc, x, y);
    return LLVM::MaximumOp::create(b, loc, x, y); // one instruction, and NaN stays NaN
  };
  Pieces values = pieces(op.getValue()), rows(2);
  for (auto [n, value] : llvm::enumerate(values)) {
    Value &row = rows[values.size() == 2 ? n : n % 4 / 2];
    row = row ? combine(row, value) : value;
  }
  if (values.size() != 2)
    for (Value &row : rows)
      for (int64_t distance : {1, 2})
        row = combine(row, i.shuffleXor(row, distance));
  setPieces(op.getResult(), rows);
}
