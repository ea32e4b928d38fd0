// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where the lanes of a warp read tiles in shared memory.
#include "Fragments.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

Fragments::Fragments(Instructions &i, OpBuilder &b, Location loc, TileType tile, bool transposed, bool isLeft, Value base,
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

Value Fragments::band(Value value, int64_t mask) { return arith::AndIOp::create(b, loc, value, i.constant(mask)); }
Value Fragments::shr(Value value, int64_t bits) { return arith::ShRUIOp::create(b, loc, value, i.constant(bits)); }
Value Fragments::bxor(Value x, Value y) { return arith::XOrIOp::create(b, loc, x, y); }
Value Fragments::bxor(Value x, int64_t y) { return y == 0 ? x : bxor(x, i.constant(y)); }

SmallVector<Value> Fragments::load(int64_t n, int64_t step) {
  bool isByWord = isSingle && transposed;
  SmallVector<Value> words = isByWord ? loadSingles(n, step) : loadMatrices(n, step);
  if (!isSingle)
    return words;
  for (Value &word : words)
    word = i.roundToTf32(word);
  return words;
}

SmallVector<Value> Fragments::loadBeside(int64_t n, Value column) {
  Value columns = i.constant(tile.getColumns());
  Value within = i.multiply(arith::RemUIOp::create(b, loc, column, columns), 2);
  Value first = i.add(base, i.multiply(arith::DivUIOp::create(b, loc, column, columns), bytesPerTile(tile)));
  Value row = i.add(first, i.add(lineOffset, i.multiply(side, line)));
  return i.loadMatrices(i.add(i.add(row, bxor(bxor(laneChunk, exchange), within)), 16 * line * n), transposed);
}

SmallVector<Value> Fragments::loadMatrices(int64_t n, int64_t step) {
  Value &known = starts[transposed ? n : step];
  if (!known)
    known = transposed ? transposedStart(n) : start(step);
  return i.loadMatrices(i.add(known, 16 * line * (transposed ? step : n)), transposed);
}

/// No instruction transposes 32 bits: a lane reads its own four, of column lane / 4 and row lane mod 4.
SmallVector<Value> Fragments::loadSingles(int64_t n, int64_t step) {
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

Value Fragments::singleStart(int64_t across, int64_t down) {
  Value offset = i.multiply(i.add(band(lane, 3), down), line);
  Value place = i.add(side, i.add(shr(lane, 2), across)), columns = i.constant(tile.getColumns());
  Value number = arith::DivUIOp::create(b, loc, place, columns);
  Value within = i.multiply(arith::RemUIOp::create(b, loc, place, columns), 4);
  Value chunk = arith::XOrIOp::create(b, loc, within, band(shr(offset, 3), line - kChunk));
  return i.add(i.add(base, i.multiply(number, bytesPerTile(tile))), i.add(offset, chunk));
}

/// A step is 32 bytes of each row.
Value Fragments::start(int64_t step) {
  Value row = i.add(base, i.add(lineOffset, i.multiply(side, line)));
  return i.add(row, bxor(bxor(laneChunk, exchange), 32 * step));
}

/// A step is 16 rows; neighbours along the side stand in one row, or in the next tile.
Value Fragments::transposedStart(int64_t n) {
  int64_t columns = tile.getColumns();
  Value place = i.add(side, 16 * n);
  Value number = arith::DivUIOp::create(b, loc, place, i.constant(columns));
  Value within = i.multiply(arith::RemUIOp::create(b, loc, place, i.constant(columns)), 2);
  Value chunk = arith::XOrIOp::create(b, loc, i.add(within, laneChunk), exchange);
  return i.add(i.add(base, i.multiply(number, bytesPerTile(tile))), i.add(lineOffset, chunk));
}
