// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products of gathered parts: rows from anywhere in a stage go through registers, columns begin anywhere in a line.
#include "RoleLowering.h"
#include "Walk.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::hopper;

namespace {
/// One group of columns of the accumulator, from the beginning of the two operands.
struct Slot {
  Value rows;    // bytes, of this lane
  Value columns; // in units of 16 bytes
};
} // namespace

/// Where this lane reads its part of 16 elements of the contraction and the 16 rows of its warp: four matrices of 8x8,
/// which lie transposed. The warp has 16 rows of one of the groups that begin at `firsts`.
static Value laneRows(OpBuilder &b, Location loc, const Warpgroup &group, ValueRange firsts, TileType tile) {
  Instructions i(b, loc);
  constexpr int64_t columns = 64, line = 128;
  auto masked = [&](Value value, int64_t bits) { return arith::AndIOp::create(b, loc, value, i.constant(bits)); };
  auto shifted = [&](Value value, int64_t by) { return arith::ShRUIOp::create(b, loc, value, i.constant(by)); };
  int64_t warps = 4 / static_cast<int64_t>(firsts.size()); // that share a group
  Value first = firsts[0];
  if (firsts.size() > 1)
    first = chosenOf(b, loc, firsts, arith::DivUIOp::create(b, loc, group.warp, i.constant(warps)));
  Value row = i.add(first, i.multiply(masked(group.warp, warps - 1), 16));
  Value depth = i.add(i.multiply(shifted(group.lane, 4), 8), masked(group.lane, 7));
  Value chunk = i.add(shifted(masked(row, columns - 1), 3), masked(shifted(group.lane, 3), 1));
  Value exchanged = arith::XOrIOp::create(b, loc, chunk, masked(group.lane, 7));
  Value within = i.add(i.multiply(depth, line), i.multiply(exchanged, 16));
  return i.add(i.multiply(arith::DivUIOp::create(b, loc, row, i.constant(columns)), bytesPerTile(tile)), within);
}

/// `column` of transposed tiles that stand side by side.
static Value unitsOf(OpBuilder &b, Location loc, Value column, const Walk &walk) {
  Instructions i(b, loc);
  int64_t columns = walk.line / 2;
  Value tile = arith::DivUIOp::create(b, loc, column, i.constant(columns));
  Value within = arith::RemUIOp::create(b, loc, column, i.constant(columns));
  return i.add(i.multiply(tile, walk.tile), arith::ShRUIOp::create(b, loc, within, i.constant(3)));
}

static LogicalResult checkGathered(MmaGatheredOp op) {
  TileType a = op.getA().getType(), bType = op.getB().getType();
  auto groups = static_cast<int64_t>(op.getRows().size() / op.getColumns().size());
  int64_t width = op.getAcc().getType().getColumns() / static_cast<int64_t>(op.getColumns().size());
  if (failed(checkOperand(op, a, true)) || failed(checkOperand(op, bType, true)))
    return failure();
  bool fits = op.getAcc().getType().getRows() == 64 && op.getAcc().getType().getElementType().isF32() &&
              (groups == 1 || groups == 2 || groups == 4) && width >= 16 && 64 % width == 0;
  if (!fits || lineBytes(a) != 128 || lineBytes(bType) != 128)
    return op.emitError("tiles: rows are gathered by 16, 32 or 64, and columns by 16, 32 or 64, from tiles of 64");
  return success();
}

/// A few slots at a time: the next ones are read while those before are multiplied.
LogicalResult RoleLowering::lower(OpBuilder &b, MmaGatheredOp op) {
  if (failed(checkGathered(op)))
    return failure();
  Location loc = op.getLoc();
  Instructions i(b, loc);
  auto count = static_cast<int64_t>(op.getColumns().size()), groups = static_cast<int64_t>(op.getRows().size()) / count;
  Walk right(op.getB().getType(), /*transposed=*/true);
  Pieces rows = pieces(op.getRows()), acc = pieces(op.getAcc());
  SmallVector<Slot> slots;
  for (auto [n, column] : llvm::enumerate(pieces(op.getColumns())))
    slots.push_back({laneRows(b, loc, group, ValueRange(rows).slice(n * groups, groups), op.getA().getType()),
                     unitsOf(b, loc, column, right)});
  Value a = tileAddress(i, op.getA(), Value());
  Value bTile = descriptor(b, loc, i, tileAddress(i, op.getB(), Value()), right);
  constexpr int64_t most = 4; // whose registers fit beside the accumulators
  const int64_t atOnce = std::clamp<int64_t>(count / 4, 1, most), size = acc.size() / count;
  Pieces before;
  for (int64_t step = 0; step < right.steps(); ++step) {
    Value below = step == 0 ? bTile : i.apart(arith::AddIOp::create(b, loc, bTile, i.constant64(step * right.step)));
    for (int64_t from = 0; from < count; from += atOnce) {
      Pieces read;
      const int64_t end = std::min(from + atOnce, count);
      for (int64_t n = from; n < end; ++n)
        llvm::append_range(read, i.loadMatrices(i.add(i.add(a, slots[n].rows), step * right.step * 16), true));
      i.fenceProducts();
      for (int64_t n = from; n < end; ++n) {
        Value units = arith::ExtUIOp::create(b, loc, b.getI64Type(), slots[n].columns);
        Value address = arith::AddIOp::create(b, loc, below, units);
        Pieces sum = i.product(ArrayRef(acc).slice(n * size, size), size, ArrayRef(read).slice(4 * (n - from), 4),
                               {address, /*transposed=*/true}, op.getA().getType().getElementType());
        llvm::copy(sum, acc.begin() + n * size);
      }
      i.commitProducts();
      i.waitProducts(1);
      i.keep(before);
      before = read;
    }
  }
  i.waitProducts(0);
  i.keep(before);
  isSettled = true;
  setPieces(op.getResult(), acc);
  return success();
}
