// SPDX-License-Identifier: Apache-2.0
/// \file
/// Arithmetic on accumulators that lie over the warps of a consumer.
#include "../Roles/Halves.h"
#include "RoleLowering.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

Value RoleLowering::element(OpBuilder &b, Value acc, size_t n, const Share &share) {
  if (waitsForStore(acc)) {
    if (auto map = acc.getDefiningOp<MapOp>())
      return applyAt(b, map, n, share);
    int64_t product = static_cast<int64_t>(n) / 4, row = product / share.wide(), column = product % share.wide();
    Pieces &pair = pairs[{row, column / 2}];
    if (pair.empty())
      pair = readPair(b, acc.getDefiningOp<ReadTileOp>(), row, column / 2 * 2);
    return pair[4 * (column % 2) + n % 4];
  }
  if (auto load = acc.getDefiningOp<LoadColumnsOp>()) {
    int64_t eight = static_cast<int64_t>(n) / 4 % share.wide();
    Pieces &pair = columnPairs[{load, eight}];
    if (pair.empty())
      pair = loadColumnPair(b, load, eight);
    return pair[n % 2];
  }
  if (auto found = entries.find(acc); found != entries.end())
    return found->second[static_cast<int64_t>(n) / 4 % share.wide() * 2 + n % 2];
  auto type = cast<AccType>(acc.getType());
  if (!type.getElementType().isF32())
    return halfOf(b, acc.getLoc(), pieces(acc)[n / 2], type.getElementType(), n % 2 == 1);
  return pieces(acc)[type.isOfRows() ? share.rowOf(n) : n];
}

/// Where piece `n` stands, behind the places that the body of the map is told of.
RoleLowering::Pieces RoleLowering::coordinates(OpBuilder &b, MapOp op, size_t n, const Share &share) {
  if (op.getPlaces().empty())
    return {};
  Location loc = op.getLoc();
  Instructions i(b, loc);
  auto [row, column] = firstPiece(b, loc, share);
  int64_t product = static_cast<int64_t>(n) / 4;
  row = i.add(row, product / share.wide() * 16 + static_cast<int64_t>(n) % 4 / 2 * 8);
  column = op.getResult().getType().isOfRows() ? i.constant(0)
                                               : i.add(column, product % share.wide() * 8 + static_cast<int64_t>(n) % 2);
  return placesAt(b, op, row, column);
}

/// What the map makes of piece `n`.
Value RoleLowering::applyAt(OpBuilder &b, MapOp op, size_t n, const Share &share) {
  bool isEven = n % 2 == 0 && !op.getResult().getType().isOfRows();
  return applyMap(b, op, [&](Value value) { return element(b, value, n, share); }, coordinates(b, op, n, share), isEven);
}

/// Neighbours are rounded by one instruction, and share a register.
LogicalResult RoleLowering::lowerRounding(OpBuilder &b, MapOp op) {
  AccType type = op.getResult().getType();
  arith::TruncFOp rounding = roundingOf(op);
  if (failed(checkHeld(op, type)))
    return failure();
  if (!rounding)
    return op.emitError("tiles: registers hold what a map rounds last, by 'arith.truncf' of f32; got ") << type;
  Instructions i(b, op.getLoc());
  Share share = shareOf(type);
  Pieces results;
  for (size_t n = 0; n < 2 * countPieces(type); n += 2) {
    Value pair[2];
    for (size_t side : {0, 1}) {
      (void)applyAt(b, op, n + side, share);
      pair[side] = mapping.lookup(rounding.getIn());
    }
    results.push_back(i.pack(pair[0], pair[1], type.getElementType()));
  }
  setPieces(op.getResult(), results);
  return success();
}

LogicalResult RoleLowering::lower(OpBuilder &b, MapOp op) {
  AccType type = op.getResult().getType();
  bool isColumn = type.isOfRows(), isRounded = !type.getElementType().isF32();
  if (!isColumn && !isRounded && failed(checkAcc(op, type)))
    return failure();
  if (waitsForStore(op.getResult()))
    return success();
  if (llvm::any_of(op.getValues(), [](Value value) { return value.getDefiningOp<LoadEntriesOp>(); }))
    return op.emitError("tiles: only what is stored, and nothing else, may read entries");
  loadRowsOf(b, op.getResult());
  if (isRounded)
    return lowerRounding(b, op);
  Share share = shareOf(type);
  if (isColumn)
    share = Share{share.rows, 8, byRows};
  Pieces results;
  for (size_t n = 0; n < countPieces(type); ++n) { // of a column, the first piece of each row in products of 16 x 8
    size_t piece = isColumn ? n / 2 * 4 + n % 2 * 2 : n;
    results.push_back(applyAt(b, op, piece, share));
  }
  setPieces(op.getResult(), results);
  return success();
}

/// Within a thread, then across the four threads that share a row; a warp holds whole rows. Parts stay with the threads.
void RoleLowering::lower(OpBuilder &b, ReduceRowsOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  auto combine = [&](Value x, Value y) -> Value {
    if (op.getKind() == "sum")
      return arith::AddFOp::create(b, loc, x, y);
    return LLVM::MaximumOp::create(b, loc, x, y); // one instruction, and NaN stays NaN
  };
  AccType type = cast<AccType>(op.getValue().getType());
  Share share = shareOf(type);
  loadRowsOf(b, op.getValue());
  Pieces values = pieces(op.getValue()), rows(2 * share.tall());
  for (auto [n, value] : llvm::enumerate(values)) {
    Value &row = rows[type.isOfRows() ? n : share.rowOf(n)];
    row = row ? combine(row, value) : value;
  }
  if (type.getColumns() != 1 && op.getResult().getType().getColumns() == 1)
    for (Value &row : rows)
      for (int64_t distance : {1, 2})
        row = combine(row, i.shuffleXor(row, distance));
  for (size_t n = 0; op.getOnto() && n < rows.size(); ++n)
    rows[n] = combine(pieces(op.getOnto())[n], rows[n]);
  setPieces(op.getResult(), rows);
}

LogicalResult RoleLowering::lower(OpBuilder &, ColumnsOp op) {
  AccType from = cast<AccType>(op.getValue().getType()), to = op.getResult().getType();
  Share share = shareOf(from), part = shareOf(to);
  int64_t first = op.getFirst();
  if (first % 8 != 0 || to.getColumns() % 8 != 0)
    return op.emitError("tiles: columns are taken by eight, from a multiple of eight");
  Pieces all = pieces(op.getValue()), own;
  for (int64_t row = 0; row < share.tall(); ++row)
    llvm::append_range(own, ArrayRef(all).slice(4 * (row * share.wide() + first / 8), 4 * part.wide()));
  setPieces(op.getResult(), own);
  return success();
}
