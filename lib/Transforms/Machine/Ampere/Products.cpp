// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products of tiles in shared memory, and arithmetic on accumulators that lie over the warps of a consumer.
#include "../../Buffers/Addressing.h"
#include "RoleLowering.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

//===- Fragments ----------------------------------------------------------===//

namespace {

/// Where a lane reads its row of the four matrices of 8 x 16 bytes that make 16 rows and 32 bytes of a tile, or of
/// transposed tiles side by side: along the rows or columns of the accumulator, and along the contraction.
class Fragments {
public:
  /// `side`: the first row or column of this warp. `isLeft`: an operand's matrices come in the order that its
  /// registers have in the instruction.
  Fragments(Instructions &i, OpBuilder &b, Location loc, TileType tile, bool transposed, bool isLeft, Value base,
            Value side, Value lane)
      : i(i), b(b), loc(loc), tile(tile), line(lineBytes(tile)), transposed(transposed), isLeft(isLeft),
        isSingle(tile.getElementType().isF32()), base(base), side(side), lane(lane) {
    auto bit = [&](int64_t shift) { return band(shr(lane, shift), 1); };
    bool rowsFirst = isLeft != transposed;
    Value low = bit(3), high = bit(4);
    laneRow = i.add(band(lane, 7), i.multiply(rowsFirst ? low : high, 8));
    laneChunk = i.multiply(rowsFirst ? high : low, kChunk);
    Value offset = i.multiply(laneRow, line);
    exchange = band(shr(offset, 3), line - kChunk);
    lineOffset = offset;
  }

  /// The registers of rows or columns [16 n, 16 n + 16) of this warp, and of step `step` of the contraction.
  SmallVector<Value> load(int64_t n, int64_t step) {
    bool isByWord = isSingle && transposed;
    SmallVector<Value> words = isByWord ? loadSingles(n, step) : loadMatrices(n, step);
    if (!isSingle)
      return words;
    for (Value &word : words)
      word = i.roundToTf32(word);
    return words;
  }

  /// The registers of rows [16 n, 16 n + 16) of this warp and of 16 columns from `column` on, of tiles side by side.
  SmallVector<Value> loadBeside(int64_t n, Value column) {
    Value columns = i.constant(tile.getColumns());
    Value within = i.multiply(arith::RemUIOp::create(b, loc, column, columns), 2);
    Value first = i.add(base, i.multiply(arith::DivUIOp::create(b, loc, column, columns), bytesPerTile(tile)));
    Value row = i.add(first, i.add(lineOffset, i.multiply(side, line)));
    return i.loadMatrices(i.add(i.add(row, bxor(bxor(laneChunk, exchange), within)), 16 * line * n), transposed);
  }

private:
  SmallVector<Value> loadMatrices(int64_t n, int64_t step) {
    Value &known = starts[transposed ? n : step];
    if (!known)
      known = transposed ? transposedStart(n) : start(step);
    return i.loadMatrices(i.add(known, 16 * line * (transposed ? step : n)), transposed);
  }

  /// No instruction transposes 32 bits: a lane reads its own four, of column lane / 4 and row lane mod 4.
  SmallVector<Value> loadSingles(int64_t n, int64_t step) {
    int64_t perTile = tile.getColumns() / 16, skipped = matchPattern(side, m_Zero()) ? n / perTile : 0;
    SmallVector<Value> words;
    for (int64_t word : {0, 1, 2, 3}) {
      int64_t low = word & 1, high = word >> 1, across = isLeft ? low : high, down = isLeft ? high : low;
      int64_t part = n - skipped * perTile;
      Value &known = starts[4 * part + word];
      if (!known)
        known = singleStart(16 * part + 8 * across, 4 * down);
      words.push_back(i.loadWord(known, skipped * bytesPerTile(tile) + 8 * line * step));
    }
    return words;
  }

  Value singleStart(int64_t across, int64_t down) {
    Value offset = i.multiply(i.add(band(lane, 3), down), line);
    Value place = i.add(side, i.add(shr(lane, 2), across)), columns = i.constant(tile.getColumns());
    Value number = arith::DivUIOp::create(b, loc, place, columns);
    Value within = i.multiply(arith::RemUIOp::create(b, loc, place, columns), 4);
    Value chunk = arith::XOrIOp::create(b, loc, within, band(shr(offset, 3), line - kChunk));
    return i.add(i.add(base, i.multiply(number, bytesPerTile(tile))), i.add(offset, chunk));
  }

  /// A step is 32 bytes of each row.
  Value start(int64_t step) {
    Value row = i.add(base, i.add(lineOffset, i.multiply(side, line)));
    return i.add(row, bxor(bxor(laneChunk, exchange), 32 * step));
  }

  /// A step is 16 rows; neighbours along the side stand in one row, or in the next tile.
  Value transposedStart(int64_t n) {
    int64_t columns = tile.getColumns();
    Value place = i.add(side, 16 * n);
    Value number = arith::DivUIOp::create(b, loc, place, i.constant(columns));
    Value within = i.multiply(arith::RemUIOp::create(b, loc, place, i.constant(columns)), 2);
    Value chunk = arith::XOrIOp::create(b, loc, i.add(within, laneChunk), exchange);
    return i.add(i.add(base, i.multiply(number, bytesPerTile(tile))), i.add(lineOffset, chunk));
  }

  Value band(Value value, int64_t mask) { return arith::AndIOp::create(b, loc, value, i.constant(mask)); }
  Value shr(Value value, int64_t bits) { return arith::ShRUIOp::create(b, loc, value, i.constant(bits)); }
  Value bxor(Value x, Value y) { return arith::XOrIOp::create(b, loc, x, y); }
  Value bxor(Value x, int64_t y) { return y == 0 ? x : bxor(x, i.constant(y)); }

  Instructions &i;
  OpBuilder &b;
  Location loc;
  TileType tile;
  int64_t line;
  bool transposed, isLeft, isSingle;
  Value base, side, lane, laneRow, laneChunk, exchange, lineOffset;
  llvm::SmallDenseMap<int64_t, Value> starts;
};

} // namespace

//===- Products -----------------------------------------------------------===//

/// All products of tile `a` with the part of `bTile` that begins `slab` tiles into the contraction.
RoleLowering::Pieces RoleLowering::products(OpBuilder &b, MmaOp op, Pieces acc, Value a, Value bTile, int64_t slab) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  Share share = shareOf(op.getResult().getType());
  TileType aType = op.getATile(), bType = op.getB().getType();
  Value zero = i.constant(0);
  Fragments left(i, b, loc, aType, op.getATransposed(), /*isLeft=*/true, a,
                 byRows ? i.multiply(group.warp, share.rows) : zero, group.lane);
  Fragments right(i, b, loc, bType, op.getBTransposed(), /*isLeft=*/false, bTile,
                  byRows ? zero : i.multiply(group.warp, share.columns), group.lane);
  int64_t steps = aType.getDepth(op.getATransposed()) / (aType.getElementType().isF32() ? 8 : 16);
  for (int64_t step = 0; step < steps; ++step) {
    SmallVector<SmallVector<Value>> rows;
    for (int64_t row = 0; row < share.tall(); ++row)
      rows.push_back(left.load(row, step));
    for (int64_t pair = 0; pair < share.wide() / 2; ++pair) {
      SmallVector<Value> columns = right.load(pair, slab * steps + step);
      for (int64_t row = 0; row < share.tall(); ++row)
        for (int64_t half : {0, 1})
          i.product(MutableArrayRef(acc).slice(4 * (row * share.wide() + 2 * pair + half), 4), rows[row],
                    ValueRange(columns).slice(2 * half, 2), aType.getElementType());
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
      failed(checkOperand(op, op.getATile(), op.getATransposed())) ||
      failed(checkOperand(op, op.getB().getType(), op.getBTransposed())))
    return failure();
  Value a = tileAddress(i, op.getA(), op.getFirst()), bTile = tileAddress(i, op.getB(), op.getSecond());
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  Pieces acc = op.getAcc() ? pieces(op.getAcc()) : Pieces(countPieces(op.getResult().getType()), zero);
  auto setResult = [&](const Pieces &sums) {
    setPieces(op.getResult(), sums);
    llvm::append_range(loads[b.getInsertionBlock()], wordsOfProducts(b, loc, sums, shareOf(op.getResult().getType())));
    return success();
  };
  TileType aType = op.getATile(), bType = op.getB().getType();
  if (!op.getPresent()) { // tiles of a list follow each other along the contraction
    for (int64_t done = 0; done < op.getDepth(); done += aType.getDepth(op.getATransposed())) {
      int64_t number = done / aType.getDepth(op.getATransposed());
      bool isList = bType.isList() && !op.getSecond();
      acc = products(b, op, acc, i.add(a, number * bytesPerTile(aType)),
                     i.add(bTile, isList ? number * bytesPerTile(bType) : 0), isList ? 0 : number);
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
    scf::YieldOp::create(then, loc, products(then, op, acc, a, bTile, slab));
    scf::YieldOp::create(otherwise, loc, acc);
    acc = Pieces(guard.getResults());
    Value next = i.add(a, bytesPerTile(aType));
    a = arith::SelectOp::create(b, loc, some, next, a);
  }
  return setResult(acc);
}

//===- Arithmetic ---------------------------------------------------------===//

Value RoleLowering::element(OpBuilder &b, Value acc, size_t n, const Share &share) {
  if (waitsForStore(acc)) {
    if (auto map = acc.getDefiningOp<MapOp>())
      return applyMap(b, map, [&](Value value) { return element(b, value, n, share); });
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
  return pieces(acc)[cast<AccType>(acc.getType()).getColumns() == 1 ? share.rowOf(n) : n];
}

LogicalResult RoleLowering::lower(OpBuilder &b, MapOp op) {
  AccType type = op.getResult().getType();
  bool isColumn = type.getColumns() == 1;
  if (!isColumn && failed(checkAcc(op, type)))
    return failure();
  if (waitsForStore(op.getResult()))
    return success();
  if (llvm::any_of(op.getValues(), [](Value value) { return value.getDefiningOp<LoadEntriesOp>(); }))
    return op.emitError("tiles: only what is stored, and nothing else, may read entries");
  loadRowsOf(b, op.getResult());
  Share share = shareOf(type);
  if (isColumn)
    share = Share{share.rows, 8, byRows};
  Pieces results;
  for (size_t n = 0; n < countPieces(type); ++n) { // of a column, the first piece of each row in products of 16 x 8
    size_t piece = isColumn ? n / 2 * 4 + n % 2 * 2 : n;
    results.push_back(applyMap(b, op, [&](Value value) { return element(b, value, piece, share); }));
  }
  setPieces(op.getResult(), results);
  return success();
}

/// Within a thread, then across the four threads that share a row; a warp holds whole rows.
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
    Value &row = rows[type.getColumns() == 1 ? n : share.rowOf(n)];
    row = row ? combine(row, value) : value;
  }
  if (type.getColumns() != 1)
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

/// Registers come in the order of a left operand, whose contraction runs along the columns of the accumulator.
RoleLowering::Pieces RoleLowering::readPair(OpBuilder &b, ReadTileOp op, int64_t row, int64_t column) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  TileType tile = op.getTile().getType();
  Share share = shareOf(op.getAcc().getType());
  bool transposed = op.getTransposed();
  Value address = tileAddress(i, op.getTile(), op.getPlace()), side = i.constant(0), across = i.constant(8 * column);
  if (byRows)
    side = i.multiply(group.warp, share.rows);
  else if (transposed)
    address = i.add(address, i.multiply(group.warp, share.columns * lineBytes(tile)));
  else
    across = i.add(across, i.multiply(group.warp, share.columns));
  Fragments fragments(i, b, loc, tile, transposed, /*isLeft=*/true, address, side, group.lane);
  auto two = VectorType::get(2, tile.getElementType());
  Pieces values;
  SmallVector<Value> words = transposed ? fragments.load(row, column / 2) : fragments.loadBeside(row, across);
  if (!waitsForStore(op.getAcc())) // a store uses what it reads
    loads[b.getInsertionBlock()].push_back(words.front());
  for (Value word : words) {
    Value both = LLVM::BitcastOp::create(b, loc, two, word);
    for (int64_t half : {0, 1}) {
      Value value = LLVM::ExtractElementOp::create(b, loc, both, i.constant(half));
      values.push_back(arith::ExtFOp::create(b, loc, b.getF32Type(), value));
    }
  }
  return values;
}

LogicalResult RoleLowering::lower(OpBuilder &b, ReadTileOp op) {
  AccType acc = op.getAcc().getType();
  TileType tile = op.getTile().getType();
  if (failed(checkAcc(op, acc)))
    return failure();
  if (!lineBytes(tile) || tile.getElementType().getIntOrFloatBitWidth() != 16)
    return op.emitError("tiles: what is read of a tile has rows of 16, 32 or 64 elements of bf16 or f16; got ") << tile;
  if (waitsForStore(op.getAcc()))
    return success();
  Share share = shareOf(acc);
  Pieces values;
  for (int64_t row = 0; row < share.tall(); ++row)
    for (int64_t column = 0; column < share.wide(); column += 2)
      llvm::append_range(values, readPair(b, op, row, column));
  setPieces(op.getAcc(), values);
  return success();
}

void RoleLowering::loadRows(OpBuilder &b, LoadRowsOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  Share share = shareOf(op.getAcc().getType());
  Value array = mapping.lookupOrDefault(op.getSource()), size = wide(b, op.getSize());
  Value own = arith::ShRUIOp::create(b, loc, group.lane, i.constant(2));
  if (byRows)
    own = i.add(own, i.multiply(group.warp, share.rows));
  Value first = arith::AddIOp::create(b, loc, wide(b, op.getFirst()), castInteger(b, loc, own, b.getI64Type()));
  Pieces rows;
  for (int64_t row = 0; row < share.rows; row += 8) {
    Value index = arith::AddIOp::create(b, loc, first, i.constant64(row));
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, size);
    rows.push_back(numberOr0(b, loc, array, index, *op.getType(), inside));
  }
  setPieces(op.getAcc(), rows);
}

RoleLowering::Pieces RoleLowering::loadColumnPair(OpBuilder &b, LoadColumnsOp op, int64_t eight) {
  Instructions i(b, op.getLoc());
  Value array = mapping.lookupOrDefault(op.getSource()), size = wide(b, op.getSize());
  Value own = i.multiply(arith::AndIOp::create(b, op.getLoc(), group.lane, i.constant(3)), 2);
  if (!byRows)
    own = i.add(own, i.multiply(group.warp, shareOf(op.getAcc().getType()).columns));
  Value first = arith::AddIOp::create(b, op.getLoc(), wide(b, op.getFirst()), castInteger(b, op.getLoc(), own, b.getI64Type()));
  Pieces pair;
  for (int64_t beside : {0, 1}) {
    Value index = arith::AddIOp::create(b, op.getLoc(), first, i.constant64(8 * eight + beside));
    pair.push_back(columnElement(b, op, array, index, size));
  }
  return pair;
}

void RoleLowering::loadRowsOf(OpBuilder &b, Value acc) {
  if (auto map = acc.getDefiningOp<MapOp>())
    for (Value value : map.getValues())
      loadRowsOf(b, value);
  else if (auto load = acc.getDefiningOp<LoadRowsOp>())
    loadRows(b, load);
}
