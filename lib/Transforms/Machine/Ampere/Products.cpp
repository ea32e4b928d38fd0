// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products of tiles in shared memory, and of what warps hold.
#include "Fragments.h"
#include "RoleLowering.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

//===- Products -----------------------------------------------------------===//

/// How far along the contraction products go at once: a tile of the left side, or of the right one where registers hold
/// the left.
static int64_t passOf(MmaOp op) {
  TileType bType = op.getB().getType();
  return op.getATile() ? op.getATile().getDepth(op.getATransposed())
                       : std::min<int64_t>(op.getDepth(), bType.getDepth(op.getBTransposed()));
}

/// All products of tile `a` with the part of `bTile` that begins `slab` of such tiles into the contraction.
RoleLowering::Pieces RoleLowering::products(OpBuilder &b, MmaOp op, Pieces acc, Value a, Value bTile, int64_t first,
                                            int64_t slab) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  Share share = shareOf(op.getResult().getType());
  TileType aType = op.getATile(), bType = op.getB().getType();
  Value zero = i.constant(0);
  std::optional<Fragments> left;
  if (a)
    left.emplace(i, b, loc, aType, op.getATransposed(), /*isLeft=*/true, a,
                 byRows ? i.multiply(group.warp, share.rows) : zero, group.lane);
  Pieces held = a ? Pieces() : pieces(op.getA());
  Fragments right(i, b, loc, bType, op.getBTransposed(), /*isLeft=*/false, bTile,
                  byRows ? zero : i.multiply(group.warp, share.columns), group.lane);
  int64_t steps = passOf(op) / (bType.getElementType().isF32() ? 8 : 16), all = op.getDepth() / 16;
  for (int64_t step = 0; step < steps; ++step) {
    SmallVector<SmallVector<Value>> rows;
    for (int64_t row = 0; row < share.tall(); ++row)
      rows.push_back(a ? left->load(row, step) : Pieces(ArrayRef(held).slice(4 * (row * all + first + step), 4)));
    for (int64_t pair = 0; pair < share.wide() / 2; ++pair) {
      SmallVector<Value> columns = right.load(pair, slab * steps + step);
      for (int64_t row = 0; row < share.tall(); ++row)
        for (int64_t half : {0, 1})
          i.product(MutableArrayRef(acc).slice(4 * (row * share.wide() + 2 * pair + half), 4), rows[row],
                    ValueRange(columns).slice(2 * half, 2), bType.getElementType());
    }
  }
  return acc;
}

/// Words of accumulators that depend on all that their products loaded: of a product with each row and each column.
static SmallVector<Value> wordsOfProducts(OpBuilder &b, Location loc, ValueRange acc, const Share &share) {
  SmallVector<Value> words;
  for (int64_t n = 0; n < std::max(share.tall(), share.wide()); ++n) {
    Value piece = acc[4 * (n % share.tall() * share.wide() + n % share.wide())];
    words.push_back(LLVM::BitcastOp::create(b, loc, b.getI32Type(), piece));
  }
  return words;
}

/// Warps read rows of 32, 64 or 128 bytes, and 32 bytes of the contraction at once.
static LogicalResult checkOperand(MmaOp op, TileType tile, bool transposed) {
  Type element = tile.getElementType();
  bool isKnown = element.isBF16() || element.isF16() || (element.isF32() && op.getTf32());
  if (lineBytes(tile) && isKnown && tile.getDepth(transposed) % 16 == 0 &&
      (transposed ? tile.getColumns() : tile.getRows()) % 16 == 0)
    return success();
  return op.emitError("tiles: a product is of bf16 or f16 tiles, or in tf32 of f32 ones, whose rows have 32, 64 or 128 "
                      "bytes, with 16 elements of the contraction, and 16 rows, or a multiple; got ")
         << tile;
}

LogicalResult RoleLowering::lower(OpBuilder &b, MmaOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  if (failed(checkAcc(op, op.getResult().getType())) ||
      failed(op.getATile() ? checkOperand(op, op.getATile(), op.getATransposed())
                           : checkHeld(op, cast<AccType>(op.getA().getType()))) ||
      failed(checkOperand(op, op.getB().getType(), op.getBTransposed())))
    return failure();
  Value a = op.getATile() ? tileAddress(i, op.getA(), op.getFirst()) : Value();
  Value bTile = tileAddress(i, op.getB(), op.getSecond());
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  Pieces acc = op.getAcc() ? pieces(op.getAcc()) : Pieces(countPieces(op.getResult().getType()), zero);
  auto setResult = [&](const Pieces &sums) {
    setPieces(op.getResult(), sums);
    llvm::append_range(loads[b.getInsertionBlock()], wordsOfProducts(b, loc, sums, shareOf(op.getResult().getType())));
    return success();
  };
  TileType aType = op.getATile(), bType = op.getB().getType();
  if (!op.getPresent()) { // tiles of a list follow each other along the contraction
    for (int64_t number = 0; number < op.getDepth() / passOf(op); ++number) {
      bool isList = bType.isList() && !op.getSecond();
      acc = products(b, op, acc, a ? i.add(a, number * bytesPerTile(aType)) : a,
                     i.add(bTile, isList ? number * bytesPerTile(bType) : 0), number * passOf(op) / 16,
                     isList ? 0 : number);
    }
    return setResult(acc);
  }
  int64_t count = bType.getDepth(op.getBTransposed()) / aType.getDepth(op.getATransposed());
  Value present = mapping.lookupOrDefault(op.getPresent());
  for (int64_t slab = 0; slab < count; ++slab) {
    Value bit = arith::AndIOp::create(b, loc, present, i.constant(int64_t(1) << slab));
    Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit, i.constant(0));
    auto guard = scf::IfOp::create(b, loc, TypeRange(ValueRange(acc)), some, /*addThenBlock=*/true,
                                   /*addElseBlock=*/true);
    OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
    scf::YieldOp::create(then, loc, products(then, op, acc, a, bTile, /*first=*/0, slab));
    scf::YieldOp::create(otherwise, loc, acc);
    acc = Pieces(guard.getResults());
    Value next = i.add(a, bytesPerTile(aType));
    a = arith::SelectOp::create(b, loc, some, next, a);
  }
  return setResult(acc);
}
