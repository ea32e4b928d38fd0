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

RoleLowering::Pieces RoleLowering::wordsOf(OpBuilder &b, StoreTileOp op, int64_t line) {
  Instructions i(b, op.getLoc());
  Share share = shareOf(op.getValue().getType());
  bool transposed = op.getTransposed();
  Pieces words;
  pairs.clear();
  for (int64_t n = 0; n < (transposed ? 2 * share.tall() : share.wide()); ++n) {
    auto [eight, across] = transposed ? std::pair(n, line) : std::pair(line, n);
    int64_t first = 4 * (eight / 2 * share.wide() + across) + eight % 2 * 2;
    Value low = element(b, op.getValue(), first, share), high = element(b, op.getValue(), first + 1, share);
    Value word = i.pack(low, high, *op.getType());
    words.push_back(transposed ? i.transposeMatrix(word) : word);
  }
  return words;
}

LogicalResult RoleLowering::lowerStoreTile(OpBuilder &b, StoreTileOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  AccType type = op.getValue().getType();
  if (failed(checkAcc(op, type)))
    return failure();
  if (!op.getType()->isBF16() && !op.getType()->isF16())
    return op.emitError("tiles: stores are to bf16 or f16; got ") << *op.getType();
  loadRowsOf(b, op.getValue());
  Share share = shareOf(type);
  Matrix matrix = matrixOf(mapping.lookupOrDefault(op.getTarget()), *op.getShape());
  auto wideOf = [&](Value value) -> Value { return arith::ExtUIOp::create(b, loc, b.getI64Type(), value); };
  auto add = [&](Value x, Value y) -> Value { return arith::AddIOp::create(b, loc, x, y); };
  bool transposed = op.getTransposed();
  Value member = arith::AndIOp::create(b, loc, group.lane, i.constant(3));
  Value own = wideOf(arith::ShRUIOp::create(b, loc, group.lane, i.constant(2)));
  Value warp = wideOf(i.multiply(group.warp, byRows ? share.rows : share.columns));
  Value row = add(wide(b, op.getIndices()[0]), own), column = wide(b, op.getIndices()[1]);
  (byRows != transposed ? row : column) = add(byRows != transposed ? row : column, warp);
  // Eight lines at a time; where it is transposed, they are columns of the accumulator, and its rows are neighbours.
  for (int64_t line = 0; line < (transposed ? share.wide() : 2 * share.tall()); ++line) {
    // A branch keeps the assembler from mixing the arithmetic of all lines: few values live.
    auto apart = scf::IfOp::create(b, loc, i.opaqueTrue(), /*withElseRegion=*/false);
    OpBuilder at = apart.getThenBodyBuilder();
    Instructions inner(at, loc);
    Pieces words = wordsOf(at, op, line);
    Value place = arith::AddIOp::create(at, loc, row, inner.constant64(8 * line));
    NeighbourStore(at, loc, inner, matrix, member).store(words, place, column);
  }
  return success();
}
