// SPDX-License-Identifier: Apache-2.0
/// \file
/// Stores of accumulators: the lanes of a quad bring neighbours together, 16 bytes each, and store them.
#include "RoleLowering.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

namespace {

/// Stores eight neighbours at a time, those of four places by one lane each, or two neighbours by each lane of a quad.
class NeighbourStore {
public:
  NeighbourStore(OpBuilder &b, Location loc, Instructions &i, const Matrix &matrix, Value member)
      : b(b), loc(loc), i(i), matrix(matrix), member(member) {}

  /// `words[n]` are two of the eight neighbours in `row` from `column` + 8 n on; where they lie inside.
  void store(MutableArrayRef<Value> words, Value row, Value column) {
    constexpr size_t quad = 4;
    Value hasRow = less(row, matrix.rows);
    for (; words.size() >= quad; words = words.drop_front(quad)) {
      i.transposeQuad(words.take_front(quad), member);
      put(words.take_front(quad), row, add(column, multiply(member, 8)), hasRow);
      column = add(column, i.constant64(8 * quad));
    }
    for (Value word : words) {
      put(word, row, add(column, multiply(member, 2)), hasRow);
      column = add(column, i.constant64(8));
    }
  }

private:
  void put(ValueRange words, Value row, Value column, Value hasRow) {
    Value inside = arith::AndIOp::create(b, loc, hasRow, less(column, matrix.columns));
    OpBuilder then = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false).getThenBodyBuilder();
    auto type = VectorType::get(static_cast<int64_t>(words.size()), then.getI32Type());
    Value run = vector::FromElementsOp::create(then, loc, type, words);
    Value start = arith::MulIOp::create(then, loc, row, matrix.columns);
    Value element = arith::AddIOp::create(then, loc, start, column);
    Value address = LLVM::GEPOp::create(then, loc, matrix.pointer.getType(), then.getI16Type(), matrix.pointer,
                                        ArrayRef<LLVM::GEPArg>{element});
    LLVM::StoreOp::create(then, loc, run, address, 4 * static_cast<unsigned>(words.size()));
  }

  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value less(Value x, Value y) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, y); }
  Value multiply(Value x, int64_t y) {
    Value wide = arith::ExtUIOp::create(b, loc, b.getI64Type(), x);
    return arith::MulIOp::create(b, loc, wide, i.constant64(y));
  }

  OpBuilder &b;
  Location loc;
  Instructions &i;
  const Matrix &matrix;
  Value member; // of the quad
};

} // namespace

LogicalResult RoleLowering::lowerStoreTile(OpBuilder &b, StoreTileOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  AccType type = op.getValue().getType();
  Type element = *op.getType();
  if (failed(checkAcc(op, type)))
    return failure();
  if (!element.isBF16() && !element.isF16())
    return op.emitError("tiles: stores are to bf16 or f16; got ") << element;
  Share share = shareOf(type);
  Pieces acc = pieces(op.getValue());
  Matrix matrix = matrixOf(mapping.lookupOrDefault(op.getTarget()), *op.getShape());
  bool transposed = op.getTransposed();
  auto wideOf = [&](Value value) -> Value { return arith::ExtUIOp::create(b, loc, b.getI64Type(), value); };
  auto add = [&](Value x, Value y) -> Value { return arith::AddIOp::create(b, loc, x, y); };
  Value member = arith::AndIOp::create(b, loc, group.lane, i.constant(3));
  Value line = wideOf(arith::ShRUIOp::create(b, loc, group.lane, i.constant(2)));
  Value warp = wideOf(i.multiply(group.warp, byRows ? share.rows : share.columns));
  Value row = add(wide(b, op.getIndices()[0]), line), column = wide(b, op.getIndices()[1]);
  (byRows != transposed ? row : column) = add(byRows != transposed ? row : column, warp);
  NeighbourStore lines(b, loc, i, matrix, member);
  auto word = [&](int64_t down, int64_t across, int64_t half) {
    int64_t first = 4 * (down * share.wide() + across) + 2 * half;
    return i.pack(acc[first], acc[first + 1], element);
  };
  if (transposed) { // eight columns of the accumulator are eight lines, its rows are neighbours
    for (int64_t across = 0; across < share.wide(); ++across) {
      SmallVector<Value> words;
      for (int64_t eight = 0; eight < 2 * share.tall(); ++eight)
        words.push_back(i.transposeMatrix(word(eight / 2, across, eight % 2)));
      lines.store(words, add(row, i.constant64(8 * across)), column);
    }
    return success();
  }
  for (int64_t eight = 0; eight < 2 * share.tall(); ++eight) {
    SmallVector<Value> words;
    for (int64_t across = 0; across < share.wide(); ++across)
      words.push_back(word(eight / 2, across, eight % 2));
    lines.store(words, add(row, i.constant64(8 * eight)), column);
  }
  return success();
}
