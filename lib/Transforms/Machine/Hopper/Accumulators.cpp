// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products, and arithmetic on accumulators: 64 rows over the 128 threads of a warpgroup.
///
/// Elements 4n and 4n + 1 of a thread are neighbours in one row, 4n + 2 and 4n + 3 those eight rows below;
/// the four threads of a quad share their rows.
#include "../Roles/Halves.h"
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

RoleLowering::Sides RoleLowering::sides(OpBuilder &b, MmaOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  Sides from;
  if (TileType tile = op.getATile())
    from.a = descriptor(b, loc, i, tileAddress(i, op.getA(), op.getFirst()), Walk(tile, op.getATransposed()));
  else
    from.held = pieces(op.getA());
  from.b = descriptor(b, loc, i, tileAddress(i, op.getB(), op.getSecond()), Walk(op.getB().getType(), op.getBTransposed()));
  return from;
}

/// One group of products: tile n of `a` with slab `slabs[n]` of `b`, the whole contraction where `slabs` is empty.
RoleLowering::Pieces RoleLowering::products(OpBuilder &b, MmaOp op, Pieces acc, const Sides &from, Pieces slabs) {
  Instructions i(b, op.getLoc());
  Walk right(op.getB().getType(), op.getBTransposed()), left = op.getATile() ? Walk(op.getATile(), op.getATransposed()) : right;
  int64_t steps = slabs.empty() ? op.getDepth() / right.once : slabs.size() * left.steps();
  size_t count = op.getResult().getType().getColumns() / 2;
  auto shifted = [&](Value base, int64_t units) {
    return units == 0 ? base : arith::AddIOp::create(b, op.getLoc(), base, i.constant64(units)).getResult();
  };
  i.fenceProducts();
  Value slab = from.b;
  for (int64_t step = 0; step < steps; ++step) {
    int64_t within = step % left.steps(), begin = right.at(step - within);
    if (within == 0)
      slab = slabs.empty() ? shifted(from.b, begin)
                           : arith::AddIOp::create(b, op.getLoc(), from.b, slabs[step / left.steps()]).getResult();
    Value first = from.a ? shifted(from.a, left.at(step)) : Value();
    Instructions::Factor second{shifted(slab, slabs.empty() ? right.at(step) - begin : within * right.step), right.transposed};
    Type element = op.getB().getType().getElementType();
    if (from.a)
      acc = i.product(acc, count, {first, left.transposed}, second, element);
    else
      acc = i.product(acc, count, ArrayRef(from.held).slice(4 * step, 4), second, element);
  }
  i.commitProducts();
  return acc;
}

/// The products of exactly `count` stored tiles, the lowest bits of `present` first.
RoleLowering::Pieces RoleLowering::storedProducts(OpBuilder &b, MmaOp op, int64_t count, Value present, Pieces acc,
                                                  const Sides &from) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  if (count == 0) {
    i.waitProducts(0);
    return acc;
  }
  Walk left(op.getATile(), op.getATransposed()), right(op.getB().getType(), op.getBTransposed());
  Pieces slabs;
  if (count < right.depth / left.depth)
    for (int64_t n = 0; n < count; ++n) {
      Value slab = LLVM::CountTrailingZerosOp::create(b, loc, b.getI32Type(), present, /*is_zero_poison=*/true);
      Value units = arith::ExtUIOp::create(b, loc, b.getI64Type(), slab);
      slabs.push_back(arith::MulIOp::create(b, loc, units, i.constant64(left.steps() * right.step)));
      present = arith::AndIOp::create(b, loc, present, i.add(present, -1));
    }
  acc = products(b, op, acc, from, slabs);
  i.waitProducts(1);
  return acc;
}

/// One straight path for each number of stored tiles in [low, high]: a test around single products would serialise
/// them. Halving makes branches; a chain of equalities would become an indirect jump.
RoleLowering::Pieces RoleLowering::choose(OpBuilder &b, MmaOp op, int64_t low, int64_t high, Value found, Value present,
                                          Pieces acc, const Sides &from) {
  if (low == high)
    return storedProducts(b, op, low, present, acc, from);
  Location loc = op.getLoc();
  int64_t middle = (low + high + 1) / 2;
  Value less = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, found, Instructions(b, loc).constant(middle));
  auto guard = scf::IfOp::create(b, loc, TypeRange(ValueRange(acc)), less, /*addThenBlock=*/true,
                                 /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
  scf::YieldOp::create(then, loc, choose(then, op, low, middle - 1, found, present, acc, from));
  scf::YieldOp::create(otherwise, loc, choose(otherwise, op, middle, high, found, present, acc, from));
  return Pieces(guard.getResults());
}

LogicalResult hopper::checkOperand(Operation *op, TileType tile, bool transposed) {
  if (!lineBytes(tile) || !(tile.getElementType().isBF16() || tile.getElementType().isF16()))
    return op->emitError("tiles: rows of bf16 or f16 tiles have 16, 32 or 64 elements; got ") << tile;
  if (tile.getDepth(transposed) % 16 != 0 || tile.getRows() % 8 != 0)
    return op->emitError("tiles: a product has 16 elements of the contraction, and 8 rows, or a multiple; got ") << tile;
  return success();
}

/// Halves that registers hold, two a register.
static bool isHeld(AccType type) {
  return type.getRows() == 64 && type.getColumns() % 16 == 0 && isHalf(type.getElementType());
}

/// Four registers have the rows of 16 columns of an accumulator, which are the contraction.
static LogicalResult checkHeld(MmaOp op) {
  auto held = cast<AccType>(op.getA().getType());
  if (isHeld(held))
    return success();
  return op.emitError("tiles: an accumulator as a has 64 rows of bf16 or f16, and a multiple of 16 columns; got ") << held;
}

static LogicalResult checkMma(MmaOp op) {
  TileType bTile = op.getB().getType();
  if (failed(checkAcc(op, op.getResult().getType())))
    return failure();
  if (!op.getATile() && failed(checkHeld(op)))
    return failure();
  bool isTf32 = op.getTf32() && !op.getATransposed() && !op.getBTransposed() && lineBytes(op.getATile()) && lineBytes(bTile);
  if (isTf32)
    return success();
  if (op.getATile() && failed(checkOperand(op, op.getATile(), op.getATransposed())))
    return failure();
  return checkOperand(op, bTile, op.getBTransposed());
}

/// What the products from here to the next wait add to, and hold, stays where it is once the first one has begun.
void RoleLowering::settleOperands(OpBuilder &b, MmaOp first) {
  Instructions i(b, first.getLoc());
  for (Operation *op = first; op && !isa<CompleteOp>(op); op = op->getNextNode())
    if (auto product = dyn_cast<MmaOp>(op); product && awaited.contains(product))
      for (Value value : {Value(product.getAcc()), product.getATile() ? Value() : product.getA()})
        if (value && isKnown(value) && value.getParentBlock() == first->getBlock()) // what is outside is known there, too
          setPieces(value, i.settle(pieces(value)));
}

void RoleLowering::lowerAwaited(OpBuilder &b, MmaOp op) {
  if (underWay.empty())
    settleOperands(b, op);
  Sides from = sides(b, op);
  setPieces(op.getResult(), products(b, op, op.getAcc() ? pieces(op.getAcc()) : Pieces(), from, {}));
  underWay.push_back({op.getResult(), from.held});
}

LogicalResult RoleLowering::lower(OpBuilder &b, MmaOp op) {
  if (failed(checkMma(op)))
    return failure();
  if (awaited.contains(op))
    return lowerAwaited(b, op), success();
  if (!op.getAcc() || !op.getATile())
    return op.emitError("tiles: a product that begins at 0, or whose a is an accumulator, is complete in the block that "
                        "begins it, and before its stage is released");
  Location loc = op.getLoc();
  Instructions i(b, loc);
  Sides from = sides(b, op);
  Pieces acc = pieces(op.getAcc());
  if (!op.getPresent()) {
    acc = products(b, op, acc, from, {});
    i.waitProducts(1);
  } else {
    Value present = mapping.lookupOrDefault(op.getPresent());
    Value found = math::CtPopOp::create(b, loc, present);
    int64_t slabs = op.getB().getType().getDepth(op.getBTransposed()) / op.getATile().getDepth(op.getATransposed());
    acc = choose(b, op, 0, slabs, found, present, acc, from);
  }
  setPieces(op.getResult(), acc);
  if (!previous.empty() && acquiredIn == op->getBlock())
    releasePrevious(i);
  return success();
}

//===- Arithmetic ---------------------------------------------------------===//

LogicalResult RoleLowering::lower(OpBuilder &b, SplatOp op) {
  Location loc = op.getLoc();
  AccType type = op.getAcc().getType();
  Value value = mapping.lookupOrDefault(op.getValue());
  if (!type.getElementType().isF32()) {
    if (!isHeld(type) || value.getType() != type.getElementType())
      return op.emitError("tiles: registers hold 64 rows of bf16 or f16, and a multiple of 16 columns, of the number's type; "
                          "got ")
             << type;
    value = twiceInWord(b, loc, value);
  }
  setPieces(op.getAcc(), Pieces(countPieces(type), value));
  return success();
}

Value RoleLowering::element(OpBuilder &b, Value acc, size_t n) {
  if (waitsForStore(acc)) {
    if (auto map = acc.getDefiningOp<MapOp>())
      return applyAt(b, map, n);
    if (n % 8 == 0) // elements are asked for in order
      setPieces(acc, readPair(b, acc.getDefiningOp<ReadTileOp>(), n / 8));
    return pieces(acc)[n % 8];
  }
  if (auto load = acc.getDefiningOp<LoadColumnsOp>()) {
    if (n % 4 == 0) // both rows of a thread have these two columns
      loadColumnPair(b, load, n);
    return pieces(acc)[n % 2];
  }
  auto type = cast<AccType>(acc.getType());
  if (!type.getElementType().isF32())
    return halfOf(b, acc.getLoc(), pieces(acc)[n / 2], type.getElementType(), n % 2 == 1);
  return type.isOfRows() ? pieces(acc)[n % 4 / 2] : pieces(acc)[n];
}

/// What the map makes of element `n` of a thread.
Value RoleLowering::applyAt(OpBuilder &b, MapOp op, size_t n) {
  bool isEven = n % 2 == 0 && !op.getResult().getType().isOfRows();
  return applyMap(b, op, [&](Value value) { return element(b, value, n); }, coordinates(b, op, n), isEven);
}

/// Neighbours are rounded by one instruction, and share a register.
LogicalResult RoleLowering::lowerRounding(OpBuilder &b, MapOp op) {
  AccType type = op.getResult().getType();
  arith::TruncFOp rounding = roundingOf(op);
  if (!isHeld(type) || !rounding)
    return op.emitError("tiles: registers hold 64 rows of bf16 or f16, and a multiple of 16 columns, that a map rounds last, "
                        "by 'arith.truncf' of f32; got ")
           << type;
  Instructions i(b, op.getLoc());
  Pieces results;
  for (int64_t n = 0; n < type.getColumns() / 2; n += 2) {
    Value pair[2];
    for (int64_t side : {0, 1}) {
      (void)applyAt(b, op, n + side);
      pair[side] = mapping.lookup(rounding.getIn());
    }
    results.push_back(i.pack(pair[0], pair[1], type.getElementType()));
  }
  setPieces(op.getResult(), results);
  return success();
}

LogicalResult RoleLowering::lower(OpBuilder &b, MapOp op) {
  AccType type = op.getResult().getType();
  bool isColumn = type.isOfRows();
  if (!type.getElementType().isF32())
    return lowerRounding(b, op);
  if (!isColumn && failed(checkAcc(op, type)))
    return failure();
  if (waitsForStore(op.getResult()))
    return success();
  Pieces results;
  for (int64_t n = 0, count = isColumn ? 2 : type.getColumns() / 2; n < count; ++n)
    results.push_back(applyAt(b, op, isColumn ? 2 * n : n));
  setPieces(op.getResult(), results);
  return success();
}

/// Within a thread, then across the four threads that share a row; parts stay with the threads.
void RoleLowering::lower(OpBuilder &b, ReduceRowsOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  auto combine = [&](Value x, Value y) -> Value {
    if (!x)
      return y;
    if (op.getKind() == "sum")
      return arith::AddFOp::create(b, loc, x, y);
    return LLVM::MaximumOp::create(b, loc, x, y); // one instruction, and NaN stays NaN
  };
  bool isOfRows = op.getValue().getType().isOfRows(), isShared = op.getResult().getType().getColumns() == 1;
  bool isChained = isShared && !op.getOnto(); // else neighbours are apart at first: two chains a row, half as long
  Pieces values = pieces(op.getValue()), rows(2), odd(2);
  for (auto [n, value] : llvm::enumerate(values)) {
    Value &row = (n % 2 == 0 || isChained || isOfRows ? rows : odd)[isOfRows ? n : n % 4 / 2];
    row = combine(row, value);
  }
  for (auto [n, row] : llvm::enumerate(rows)) {
    if (odd[n])
      row = combine(row, odd[n]);
    if (isShared && op.getValue().getType().getColumns() != 1)
      for (int64_t distance : {1, 2})
        row = combine(row, i.shuffleXor(row, distance));
    if (op.getOnto())
      row = combine(pieces(op.getOnto())[n], row);
  }
  setPieces(op.getResult(), rows);
}
