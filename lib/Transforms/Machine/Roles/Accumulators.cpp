// SPDX-License-Identifier: Apache-2.0
/// \file
/// Arithmetic on accumulators that lie over the warps of a consumer.
#include "Accumulators.h"

#include "Halves.h"
#include "WarpInstructions.h"

using namespace mlir;
using namespace lacis;

Share Accumulators::shareOf(AccType type) const {
  constexpr int64_t narrow = 8; // columns of a product
  int64_t columns = type.isOfRows() ? narrow : byRows ? type.getColumns() : type.getColumns() / kWarps;
  return {byRows ? type.getRows() / kWarps : type.getRows(), columns, byRows};
}

/// A register has one float32, or two halves.
static int64_t piecesOfProduct(AccType type) { return type.isOfRows() || !type.getElementType().isF32() ? 2 : 4; }

size_t Accumulators::countPieces(Type type) const {
  auto acc = dyn_cast<AccType>(type);
  if (!acc)
    return 1;
  Share share = shareOf(acc);
  return piecesOfProduct(acc) * share.tall() * share.wide();
}

std::pair<Value, Value> Accumulators::firstPiece(OpBuilder &b, Location loc, const Share &share) const {
  WarpInstructions i(b, loc);
  auto eighth = [&]() -> Value { return arith::ShRUIOp::create(b, loc, group.lane, i.constant(2)); };
  auto pair = [&] { return i.multiply(arith::AndIOp::create(b, loc, group.lane, i.constant(3)), 2); };
  Value own = byRows ? pair() : eighth(), shared = byRows ? eighth() : pair();
  Value side = i.multiply(group.warp, byRows ? share.rows : share.columns);
  return byRows ? std::pair(i.add(side, shared), own) : std::pair(own, i.add(shared, side));
}

FailureOr<RoleBody::TilePairs> Accumulators::tilePairs(OpBuilder &b, Operation *op, AccType acc) {
  WarpInstructions i(b, op->getLoc());
  if (failed(checkAcc(op, acc)))
    return failure();
  Share share = shareOf(acc);
  auto [row, column] = firstPiece(b, op->getLoc(), share);
  TilePairs own{i.add(i.multiply(row, acc.getColumns()), column), {}};
  for (int64_t tall = 0; tall < share.rows; tall += 16)
    for (int64_t eight = 0; eight < share.columns; eight += 8)
      for (int64_t below : {0, 8})
        own.offsets.push_back((tall + below) * acc.getColumns() + eight);
  return own;
}

//===- Elements -----------------------------------------------------------===//

Value Accumulators::element(OpBuilder &b, Value acc, size_t n, const Share &share) {
  int64_t product = static_cast<int64_t>(n) / 4, row = product / share.wide(), column = product % share.wide();
  if (waitsForStore(acc)) {
    if (auto map = acc.getDefiningOp<MapOp>())
      return applyAt(b, map, n, share);
    auto read = acc.getDefiningOp<ReadTileOp>();
    Pieces &pair = pairs[{read, row, column / 2}];
    if (pair.empty() || n % 8 == 0)
      pair = readPair(b, read, row, column / 2 * 2);
    return pair[4 * (column % 2) + n % 4];
  }
  if (auto load = acc.getDefiningOp<LoadColumnsOp>()) { // all rows of a thread have these two columns
    Pieces &pair = pairs[{load, 0, column}];
    if (pair.empty() || n % 4 == 0)
      pair = loadColumnPair(b, load, column);
    return pair[n % 2];
  }
  auto type = cast<AccType>(acc.getType());
  if (!type.getElementType().isF32())
    return halfOf(b, acc.getLoc(), pieces(acc)[n / 2], type.getElementType(), n % 2 == 1);
  return pieces(acc)[type.isOfRows() ? share.rowOf(n) : n];
}

/// Where piece `n` stands, behind the places that the body of the map is told of.
RoleBody::Pieces Accumulators::coordinates(OpBuilder &b, MapOp op, size_t n, const Share &share) {
  if (op.getPlaces().empty())
    return {};
  WarpInstructions i(b, op.getLoc());
  auto number = static_cast<int64_t>(n), product = number / 4;
  auto [row, column] = firstPiece(b, op.getLoc(), share);
  row = i.add(row, product / share.wide() * 16 + number % 4 / 2 * 8);
  column = op.getResult().getType().isOfRows() ? i.constant(0) : i.add(column, product % share.wide() * 8 + number % 2);
  return placesAt(b, op, row, column);
}

/// What the map makes of piece `n`.
Value Accumulators::applyAt(OpBuilder &b, MapOp op, size_t n, const Share &share) {
  bool isEven = n % 2 == 0 && !op.getResult().getType().isOfRows();
  auto own = [&](Value value) { return element(b, value, n, share); };
  return applyMap(b, op, own, coordinates(b, op, n, share), isEven);
}

std::pair<RoleBody::Pieces, RoleBody::Pieces> Accumulators::columnsAt(OpBuilder &b, Location loc, const Share &share,
                                                                      Value first) {
  WarpInstructions i(b, loc);
  Type pair = VectorType::get(2, b.getF32Type()), shared = LLVM::LLVMPointerType::get(b.getContext(), 3);
  Pieces line, loaded, values;
  for (int64_t eight = 0; eight < share.columns; eight += 8) {
    Value address = LLVM::IntToPtrOp::create(b, loc, shared, i.add(first, eight * 4));
    Value both = LLVM::LoadOp::create(b, loc, pair, address, /*alignment=*/8);
    Value two[] = {LLVM::ExtractElementOp::create(b, loc, both, i.constant(0)),
                   LLVM::ExtractElementOp::create(b, loc, both, i.constant(1))};
    line.append({two[0], two[1], two[0], two[1]});
    loaded.push_back(arith::BitcastOp::create(b, loc, b.getI32Type(), two[0]));
  }
  for (int64_t row = 0; row < share.tall(); ++row)
    llvm::append_range(values, line);
  return {values, loaded};
}

//===- Operations ---------------------------------------------------------===//

LogicalResult Accumulators::lower(OpBuilder &b, SplatOp op) {
  AccType type = op.getAcc().getType();
  Value value = mapping.lookupOrDefault(op.getValue());
  if (!type.getElementType().isF32()) {
    if (failed(checkHeld(op, type)))
      return failure();
    if (value.getType() != type.getElementType())
      return op.emitError("tiles: registers hold a number of the accumulator's type; got ") << value.getType();
    value = twiceInWord(b, op.getLoc(), value);
  }
  setPieces(op.getAcc(), Pieces(countPieces(type), value));
  return success();
}

/// Neighbours are rounded by one instruction, and share a register.
LogicalResult Accumulators::lowerRounding(OpBuilder &b, MapOp op) {
  AccType type = op.getResult().getType();
  arith::TruncFOp rounding = roundingOf(op);
  if (failed(checkHeld(op, type)))
    return failure();
  if (!rounding)
    return op.emitError("tiles: registers hold what a map rounds last, by 'arith.truncf' of f32; got ") << type;
  WarpInstructions i(b, op.getLoc());
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

LogicalResult Accumulators::lower(OpBuilder &b, MapOp op) {
  AccType type = op.getResult().getType();
  bool isOfRows = type.isOfRows(), isRounded = !type.getElementType().isF32();
  if (!isOfRows && !isRounded && failed(checkAcc(op, type)))
    return failure();
  if (waitsForStore(op.getResult()))
    return success();
  loadFor(b, op.getResult());
  if (isRounded)
    return lowerRounding(b, op);
  Share share = shareOf(type);
  Pieces results;
  for (size_t n = 0; n < countPieces(type); ++n) // of a row the first piece
    results.push_back(applyAt(b, op, isOfRows ? 2 * n : n, share));
  setPieces(op.getResult(), results);
  return success();
}

/// Within a thread, then across the four threads that share a row; a warp holds whole rows. Parts stay with threads.
void Accumulators::lower(OpBuilder &b, ReduceRowsOp op) {
  Location loc = op.getLoc();
  WarpInstructions i(b, loc);
  auto combine = [&](Value x, Value y) -> Value {
    if (!x)
      return y;
    if (op.getKind() == "sum")
      return arith::AddFOp::create(b, loc, x, y);
    return LLVM::MaximumOp::create(b, loc, x, y); // one instruction, and NaN stays NaN
  };
  loadFor(b, op.getValue());
  AccType type = op.getValue().getType();
  Share share = shareOf(type);
  bool isOfRows = type.isOfRows(), isShared = op.getResult().getType().getColumns() == 1;
  bool isChained = isShared && !op.getOnto(); // else neighbours are apart at first: two chains a row, half as long
  size_t count = 2 * share.tall();
  Pieces rows(count), odd(count);
  for (auto [n, value] : llvm::enumerate(pieces(op.getValue()))) {
    Value &row = (n % 2 == 0 || isChained || isOfRows ? rows : odd)[isOfRows ? n : share.rowOf(n)];
    row = combine(row, value);
  }
  for (auto [n, row] : llvm::enumerate(rows)) {
    if (odd[n])
      row = combine(row, odd[n]);
    if (isShared && type.getColumns() != 1)
      for (int64_t distance : {1, 2})
        row = combine(row, i.shuffleXor(row, distance));
    if (op.getOnto())
      row = combine(pieces(op.getOnto())[n], row);
  }
  setPieces(op.getResult(), rows);
}

LogicalResult Accumulators::lower(OpBuilder &, ColumnsOp op) {
  Share share = shareOf(op.getValue().getType()), part = shareOf(op.getResult().getType());
  int64_t first = op.getFirst();
  if (first % 8 != 0 || op.getResult().getType().getColumns() % 8 != 0)
    return op.emitError("tiles: columns are taken by eight, from a multiple of eight");
  Pieces all = pieces(op.getValue()), own;
  int64_t each = piecesOfProduct(op.getValue().getType());
  for (int64_t row = 0; row < share.tall(); ++row)
    llvm::append_range(own, ArrayRef(all).slice(each * (row * share.wide() + first / 8), each * part.wide()));
  setPieces(op.getResult(), own);
  return success();
}
