// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products of tiles in shared memory, and of what registers hold: 64 rows over the 128 threads of a warpgroup.
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

/// Four registers have the rows of 16 columns of an accumulator, which are the contraction.
LogicalResult RoleLowering::checkHeld(Operation *op, AccType type) const {
  if (type.getRows() == 64 && type.getColumns() % 16 == 0 && isHalf(type.getElementType()))
    return success();
  return op->emitError("tiles: registers hold 64 rows of bf16 or f16, and a multiple of 16 columns; got ") << type;
}

static LogicalResult checkMma(MmaOp op) {
  TileType bTile = op.getB().getType();
  if (failed(checkAcc(op, op.getResult().getType())))
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
  if (!op.getATile() && failed(checkHeld(op, cast<AccType>(op.getA().getType()))))
    return failure();
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
