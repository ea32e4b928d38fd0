// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loads into tiles: each thread of the producer copies chunks of 16 bytes, those outside of the matrix as zeros.
#include "../../Buffers/Addressing.h"
#include "../../Buffers/EmitSize.h"
#include "RoleLowering.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

Value RoleLowering::wide(OpBuilder &b, Value value) {
  return castInteger(b, value.getLoc(), mapping.lookupOrDefault(value), b.getI64Type());
}

Matrix RoleLowering::matrixOf(OpBuilder &b, Value pointer, ArrayAttr shape, ArrayAttr strides, ValueRange indices,
                              Type element) {
  Matrix &matrix = matrices[pointer];
  if (!matrix.pointer) {
    OpBuilder top(kernel.getBody());
    auto size = [&](Attribute axis) { return emitSize(top, kernel.getLoc(), kernel, cast<SizeAttr>(axis)); };
    ArrayRef<Attribute> sizes = shape.getValue().take_back(2);
    matrix = {pointer, size(sizes[0]), size(sizes[1]), {}};
    matrix.pitch = strides ? size(strides.getValue().back()) : matrix.columns;
  }
  if (shape.size() == 2)
    return matrix;
  auto own = llvm::map_to_vector(indices, [&](Value index) { return mapping.lookupOrDefault(index); });
  Value array = matrixOfBatch(b, indices[0].getLoc(), kernel, {pointer, shape, strides}, own, element);
  return {array, matrix.rows, matrix.columns, matrix.pitch};
}

namespace {
/// What a thread copies of a box: chunk (r, c) goes to the place that is exchanged by the number of its row, modulo eight.
/// The threads take neighbouring rows.
struct OwnChunks {
  int64_t count, bytes, rows;  // of all chunks; from one to the next in shared memory, and in the matrix
  SmallVector<Value> places;   // the first ones in shared memory, until the exchange is the same again
  Value pointer, start, pitch; // of the matrix; to the first chunk, and from one to the next: bytes, i64
  Value row, limit;            // of the first chunk; rows from here on have none: i64

  /// Copies all of a box that lies inside of the matrix, or compares each chunk.
  void copy(OpBuilder &b, Location loc, bool compares) const {
    Instructions i(b, loc);
    auto period = static_cast<int64_t>(places.size());
    Value next = start, own = row, size;
    for (int64_t n = 0; n < count; ++n) {
      if (n != 0 && compares)
        own = arith::AddIOp::create(b, loc, own, i.constant64(rows));
      if (n != 0)
        next = arith::AddIOp::create(b, loc, next, pitch);
      if (compares) {
        Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, own, limit);
        size = arith::SelectOp::create(b, loc, inside, i.constant(kChunk), i.constant(0));
      }
      Value source =
          LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{next});
      i.copyChunk(i.add(places[n % period], n / period * period * bytes), source, size);
    }
  }
};
} // namespace

/// The box of the matrix from a row and a column on. Where one warp copies, one that lies inside is not compared.
void RoleLowering::copyTile(OpBuilder &b, Location loc, TileType tile, Value to, const Matrix &matrix, Value row,
                            Value column) {
  Instructions i(b, loc);
  constexpr int64_t period = 8; // rows, after which chunks are exchanged alike
  int64_t line = lineBytes(tile), chunks = line / kChunk, rows = memory.copyThreads / chunks;
  int64_t elements = tile.getColumns() / chunks, bytes = line / tile.getColumns();
  auto mul = [&](Value x, Value y) -> Value { return arith::MulIOp::create(b, loc, x, y); };
  auto sum = [&](Value x, Value y) -> Value { return arith::AddIOp::create(b, loc, x, y); };
  auto extended = [&](Value x) -> Value { return arith::ExtUIOp::create(b, loc, b.getI64Type(), x); };
  auto holds = [&](arith::CmpIPredicate how, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, loc, how, x, y);
  };
  Value ownRow = arith::DivUIOp::create(b, loc, group.lane, i.constant(chunks));
  Value chunk = arith::RemUIOp::create(b, loc, group.lane, i.constant(chunks));
  OwnChunks own;
  own.count = (tile.getRows() + rows - 1) / rows, own.rows = rows, own.bytes = memory.copyThreads * kChunk;
  for (int64_t skipped = 0; skipped < std::max(period, rows); skipped += rows) {
    Value offset = i.add(i.multiply(group.lane, kChunk), skipped * line);
    Value exchanged = arith::AndIOp::create(b, loc, arith::ShRUIOp::create(b, loc, offset, i.constant(3)),
                                            i.constant(line - kChunk));
    own.places.push_back(i.add(to, arith::XOrIOp::create(b, loc, offset, exchanged)));
  }
  own.row = sum(row, extended(ownRow));
  Value from = sum(column, extended(i.multiply(chunk, elements)));
  Value hasColumn = holds(arith::CmpIPredicate::ult, from, matrix.columns);
  own.limit = arith::SelectOp::create(b, loc, hasColumn, matrix.rows, i.constant64(0));
  own.pointer = matrix.pointer;
  own.start = mul(sum(mul(own.row, matrix.pitch), from), i.constant64(bytes));
  own.pitch = mul(matrix.pitch, i.constant64(rows * bytes));
  Value isInside; // four warps are faster with comparisons than with a branch for each box
  if (memory.copyThreads == kLanes)
    isInside = arith::AndIOp::create(
        b, loc, holds(arith::CmpIPredicate::ule, sum(row, i.constant64(tile.getRows())), matrix.rows),
        holds(arith::CmpIPredicate::ule, sum(column, i.constant64(tile.getColumns())), matrix.columns));
  OpBuilder in = b;
  if (tile.getRows() < rows) { // some threads have no row
    Value some = holds(arith::CmpIPredicate::ult, ownRow, i.constant(tile.getRows()));
    in = scf::IfOp::create(b, loc, some, /*withElseRegion=*/false).getThenBodyBuilder();
  }
  if (isInside) {
    auto split = scf::IfOp::create(in, loc, isInside, /*withElseRegion=*/true);
    OpBuilder inside = split.getThenBodyBuilder();
    own.copy(inside, loc, /*compares=*/false);
    in = split.getElseBodyBuilder();
  }
  own.copy(in, loc, /*compares=*/true);
}

/// A row of numbers: each thread copies 16 bytes, of which those behind the end of the row are zeros.
LogicalResult RoleLowering::copyVector(OpBuilder &b, LoadTileOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  TileType piece = pieceOf(op);
  int64_t bytes = piece.getElementType().getIntOrFloatBitWidth() / 8, each = kChunk / bytes;
  if (piece.getColumns() % each != 0 || piece.getColumns() / each > memory.copyThreads)
    return op.emitError("tiles: a vector is copied by chunks of 16 bytes, one by each of ")
           << memory.copyThreads << " threads; got " << piece;
  Matrix matrix = matrixOf(b, mapping.lookupOrDefault(op.getSource()), *op.getShape(), op.getStridesAttr(), op.getIndices(),
                           piece.getElementType());
  Value own = castInteger(b, loc, i.multiply(group.lane, each), b.getI64Type());
  Value first = arith::AddIOp::create(b, loc, wide(b, op.getIndices().back()), own);
  Value left = arith::MinSIOp::create(b, loc, arith::SubIOp::create(b, loc, matrix.columns, first), i.constant64(each));
  left = arith::MaxSIOp::create(b, loc, left, i.constant64(0));
  Value row = arith::MulIOp::create(b, loc, wide(b, op.getIndices().drop_back().back()), matrix.pitch);
  Value place = arith::AddIOp::create(b, loc, row, first);
  Value chunks = i.constant(piece.getColumns() / each);
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, group.lane, chunks);
  OpBuilder then = scf::IfOp::create(b, loc, some, /*withElseRegion=*/false).getThenBodyBuilder();
  Instructions copy(then, loc);
  Value source = LLVM::GEPOp::create(then, loc, matrix.pointer.getType(), piece.getElementType(), matrix.pointer,
                                     ArrayRef<LLVM::GEPArg>{place});
  Value to = copy.add(pieces(op.getTile())[0], partOf(op).number * piece.getColumns() * bytes);
  copy.copyChunk(copy.add(to, copy.multiply(group.lane, kChunk)), source,
                 copy.multiply(castInteger(then, loc, left, then.getI32Type()), bytes));
  return success();
}

/// Rows of tiles have 32, 64 or 128 bytes, of elements of 16 or 32 bits; the last of several rounds of copies is a
/// whole one.
static LogicalResult checkTile(Operation *op, TileType tile, int64_t threads) {
  int64_t line = lineBytes(tile), rows = line ? threads * kChunk / line : 0;
  unsigned bits = tile.getElementType().getIntOrFloatBitWidth();
  if (line && (bits == 16 || bits == 32) && (tile.getRows() % rows == 0 || tile.getRows() < rows))
    return success();
  return op->emitError(
             "tiles: rows of bf16, f16 or f32 tiles have 32, 64 or 128 bytes, and there are 8, 16 or 32 of such "
             "rows, or a multiple; got ")
         << tile;
}

LogicalResult RoleLowering::lower(OpBuilder &b, LoadTileOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  TileType tile = op.getTile().getType(), piece = pieceOf(op);
  if (isVector(tile))
    return copyVector(b, op);
  if (failed(checkTile(op, piece, memory.copyThreads)))
    return failure();
  Matrix matrix = matrixOf(b, mapping.lookupOrDefault(op.getSource()), *op.getShape(), op.getStridesAttr(), op.getIndices(),
                           tile.getElementType());
  Value to = i.add(tileAddress(i, op.getTile(), op.getPlace()), partOf(op).number * bytesPerTile(piece));
  Value row = wide(b, op.getIndices().drop_back().back()), column = wide(b, op.getIndices().back());
  for (int64_t n = 0, count = op.getPlace() ? 1 : tile.getCount(); n < count; ++n) {
    Value next = n == 0 ? column : arith::AddIOp::create(b, loc, column, i.constant64(n * tile.getColumns())).getResult();
    copyTile(b, loc, piece, i.add(to, n * bytesPerTile(tile)), matrix, row, next);
  }
  return success();
}

/// Tiles that lie one after another, row by row.
LogicalResult RoleLowering::lower(OpBuilder &b, LoadRunOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  TileType tile = op.getTile().getType();
  if (failed(checkTile(op, tile, memory.copyThreads)))
    return failure();
  Value rows = i.constant64(tile.getRows());
  Value first = arith::MulIOp::create(b, loc, wide(b, op.getPosition()), rows);
  Value count = castInteger(b, loc, mapping.lookupOrDefault(op.getCount()), b.getI32Type());
  auto loop = scf::ForOp::create(b, loc, i.constant(0), count, i.constant(1));
  OpBuilder in = OpBuilder::atBlockBegin(loop.getBody());
  Instructions inner(in, loc);
  Value number = loop.getInductionVar();
  Value row = arith::MulIOp::create(in, loc, castInteger(in, loc, number, in.getI64Type()), rows);
  row = arith::AddIOp::create(in, loc, row, first);
  Value end = arith::AddIOp::create(in, loc, row, rows);
  Value columns = inner.constant64(tile.getColumns());
  Matrix matrix{mapping.lookupOrDefault(op.getSource()), end, columns, columns};
  copyTile(in, loc, tile, inner.add(pieces(op.getTile())[0], inner.multiply(number, bytesPerTile(tile))), matrix, row,
           inner.constant64(0));
  return success();
}
