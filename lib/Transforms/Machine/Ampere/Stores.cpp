// SPDX-License-Identifier: Apache-2.0
/// \file
/// Stores of accumulators: the lanes of a quad bring neighbours together, 16 bytes each, and store them.
#include "../../Buffers/Addressing.h"
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
      put(words.take_front(quad), b.getI16Type(), row, add(column, multiply(member, 8)), hasRow);
      column = add(column, i.constant64(8 * quad));
    }
    for (Value word : words) {
      put(word, b.getI16Type(), row, add(column, multiply(member, 2)), hasRow);
      column = add(column, i.constant64(8));
    }
  }

  /// The words, side by side, in the element of the matrix, of type `unit`.
  void put(ValueRange words, Type unit, Value row, Value column, Value hasRow) {
    Value inside = arith::AndIOp::create(b, loc, hasRow, less(column, matrix.columns));
    OpBuilder then = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false).getThenBodyBuilder();
    auto type = VectorType::get(static_cast<int64_t>(words.size()), words[0].getType());
    Value run = vector::FromElementsOp::create(then, loc, type, words);
    Value start = arith::MulIOp::create(then, loc, row, matrix.columns);
    Value element = arith::AddIOp::create(then, loc, start, column);
    Value address = LLVM::GEPOp::create(then, loc, matrix.pointer.getType(), unit, matrix.pointer,
                                        ArrayRef<LLVM::GEPArg>{element});
    LLVM::StoreOp::create(then, loc, run, address, 4 * static_cast<unsigned>(words.size()));
  }

  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value less(Value x, Value y) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, y); }

private:
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

/// The rows of a lane that has row `within` of the eight of each line of `acc`: `firsts` are those of its groups of rows.
LineRows RoleLowering::rowsOf(OpBuilder &b, AccType acc, ValueRange firsts, bool transposed, Value within) {
  Location loc = group.lane.getLoc();
  Instructions i(b, loc);
  Share share = shareOf(acc);
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, loc, x, arith::ExtUIOp::create(b, loc, b.getI64Type(), y));
  };
  LineRows rows{SmallVector<Value>(firsts), acc.getRows() / static_cast<int64_t>(firsts.size()), within};
  if (byRows != transposed)
    rows.warp = i.multiply(group.warp, byRows ? share.rows : share.columns);
  if (firsts.size() == 1)
    rows.first = add(rows.warp ? add(firsts[0], rows.warp) : firsts[0], within);
  return rows;
}

/// The row of a line; -1 where there is none. In one group it is that of the first line and a constant: what each line adds
/// to the lane's row would keep two registers throughout the loop over products, where six lines spilled 8 bytes.
Value LineRows::of(OpBuilder &b, int64_t line) const {
  Location loc = within.getLoc();
  Instructions i(b, loc);
  auto add = [&](Value x, Value y) -> Value { return arith::AddIOp::create(b, loc, x, y); };
  if (first)
    return add(first, i.constant64(8 * line));
  auto wideOf = [&](Value value) -> Value { return arith::ExtUIOp::create(b, loc, b.getI64Type(), value); };
  Value own = warp ? i.add(warp, 8 * line) : i.constant(8 * line);
  Value start = chosenOf(b, loc, starts, arith::DivUIOp::create(b, loc, own, i.constant(size)));
  Value row = add(add(start, wideOf(arith::RemUIOp::create(b, loc, own, i.constant(size)))), wideOf(within));
  Value none = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, start, i.constant64(0));
  return arith::SelectOp::create(b, loc, none, i.constant64(-1), row);
}

/// What load_entries says of one line: pairs of neighbouring bytes, each 0 or 1; 1 where there is no bitmap.
void RoleLowering::loadEntriesOf(OpBuilder &b, Value acc, int64_t line) {
  if (auto map = acc.getDefiningOp<MapOp>())
    for (Value value : map.getValues())
      loadEntriesOf(b, value, line);
  auto op = acc.getDefiningOp<LoadEntriesOp>();
  if (!op)
    return;
  Location loc = op.getLoc();
  Instructions i(b, loc);
  Share share = shareOf(op.getAcc().getType());
  auto firsts = llvm::map_to_vector(op.getRows(), [&](Value row) { return wide(b, row); });
  Value within = arith::ShRUIOp::create(b, loc, group.lane, i.constant(2));
  Value row = rowsOf(b, op.getAcc().getType(), firsts, /*transposed=*/false, within).of(b, line);
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, wide(b, op.getSize()), i.constant64(0));
  some = arith::AndIOp::create(b, loc, some,
                               arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, row, i.constant64(0)));
  Value column = i.multiply(arith::AndIOp::create(b, loc, group.lane, i.constant(3)), 2);
  if (!byRows)
    column = i.add(column, i.multiply(group.warp, share.columns));
  column = arith::AddIOp::create(b, loc, wide(b, op.getColumn()), castInteger(b, loc, column, b.getI64Type()));
  Value first = arith::MulIOp::create(b, loc, row, i.constant64(static_cast<int64_t>(op.getStride())));
  first = arith::AddIOp::create(b, loc, first, column);
  SmallVector<Type> types(2 * share.wide(), b.getF32Type());
  auto guard = scf::IfOp::create(b, loc, types, some, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
  Value array = mapping.lookupOrDefault(op.getBitmap());
  Value base = LLVM::GEPOp::create(then, loc, array.getType(), then.getI8Type(), array, ArrayRef<LLVM::GEPArg>{first});
  Pieces values;
  for (int32_t across = 0; across < share.wide(); ++across)
    llvm::append_range(values, entryPair(then, loc, base, 8 * across));
  scf::YieldOp::create(then, loc, values);
  Value one = arith::ConstantOp::create(otherwise, loc, otherwise.getF32FloatAttr(1.0f));
  scf::YieldOp::create(otherwise, loc, Pieces(values.size(), one));
  entries[acc] = Pieces(guard.getResults());
}

/// Words of two pieces each, of one line: eight columns of the accumulator where it is transposed, else eight rows.
RoleLowering::Pieces RoleLowering::wordsOf(OpBuilder &b, Value acc, Type element, int64_t line, bool transposed) {
  Instructions i(b, acc.getLoc());
  Share share = shareOf(cast<AccType>(acc.getType()));
  Pieces words;
  pairs.clear();
  loadEntriesOf(b, acc, line);
  for (int64_t n = 0; n < (transposed ? 2 * share.tall() : share.wide()); ++n) {
    auto [eight, across] = transposed ? std::pair(n, line) : std::pair(line, n);
    int64_t first = 4 * (eight / 2 * share.wide() + across) + eight % 2 * 2;
    Value low = this->element(b, acc, first, share), high = this->element(b, acc, first + 1, share);
    Value word = i.pack(low, high, element);
    words.push_back(transposed ? i.transposeMatrix(word) : word);
  }
  return words;
}

void RoleLowering::storeLines(OpBuilder &b, Value acc, Type element, const Matrix &matrix, ValueRange firsts,
                              Value column, bool transposed) {
  Location loc = acc.getLoc();
  Instructions i(b, loc);
  AccType type = cast<AccType>(acc.getType());
  Share share = shareOf(type);
  loadFor(b, acc);
  Value member = arith::AndIOp::create(b, loc, group.lane, i.constant(3));
  Value eighth = arith::ShRUIOp::create(b, loc, group.lane, i.constant(2));
  bool areDown = element.isF32() && transposed; // two neighbours of an accumulator are two rows of the matrix
  LineRows rows = rowsOf(b, type, firsts, transposed, areDown ? i.multiply(member, 2) : eighth);
  if (byRows == transposed) {
    Value warp = i.multiply(group.warp, byRows ? share.rows : share.columns);
    column = arith::AddIOp::create(b, loc, column, castInteger(b, loc, warp, b.getI64Type()));
  }
  for (int64_t line = 0; line < (transposed ? share.wide() : 2 * share.tall()); ++line) {
    // A branch keeps the assembler from mixing the arithmetic of all lines: few values live.
    auto apart = scf::IfOp::create(b, loc, i.opaqueTrue(), /*withElseRegion=*/false);
    OpBuilder at = apart.getThenBodyBuilder();
    if (element.isF32()) {
      storeSingles(at, acc, matrix, rows.of(at, line), column, line, transposed);
      continue;
    }
    Instructions inner(at, loc);
    Pieces words = wordsOf(at, acc, element, line, transposed);
    NeighbourStore(at, loc, inner, matrix, member).store(words, rows.of(at, line), column);
  }
}

/// Two neighbours at once, where rows have an even number of elements: else pairs begin anywhere, and end in the next row.
static void putPair(OpBuilder &b, Instructions &i, const Matrix &matrix, Value isEven, std::pair<Value, Value> values,
                    Value row, Value column) {
  Location loc = row.getLoc();
  auto put = [&](OpBuilder &in, ValueRange own, Value at) {
    NeighbourStore to(in, loc, i, matrix, /*member=*/Value());
    to.put(own, in.getF32Type(), row, at, to.less(row, matrix.rows));
  };
  Value next = arith::AddIOp::create(b, loc, column, i.constant64(1));
  auto choice = scf::IfOp::create(b, loc, isEven, /*withElseRegion=*/true);
  OpBuilder then = choice.getThenBodyBuilder(), otherwise = choice.getElseBodyBuilder();
  put(then, {values.first, values.second}, column);
  put(otherwise, values.first, column);
  put(otherwise, values.second, next);
}

/// Numbers as they are: a warp stores 32 bytes of each of four or eight rows at once.
void RoleLowering::storeSingles(OpBuilder &b, Value acc, const Matrix &matrix, Value row, Value column,
                                int64_t line, bool transposed) {
  Location loc = acc.getLoc();
  Instructions i(b, loc);
  Share share = shareOf(cast<AccType>(acc.getType()));
  auto wideOf = [&](Value value) -> Value { return arith::ExtUIOp::create(b, loc, b.getI64Type(), value); };
  Value eighth = arith::ShRUIOp::create(b, loc, group.lane, i.constant(2));
  Value pair = i.multiply(arith::AndIOp::create(b, loc, group.lane, i.constant(3)), 2);
  Value first = arith::AddIOp::create(b, loc, column, wideOf(transposed ? eighth : pair));
  NeighbourStore to(b, loc, i, matrix, /*member=*/Value());
  auto put = [&](ValueRange values, Value row, Value at) {
    to.put(values, b.getF32Type(), row, at, to.less(row, matrix.rows));
  };
  Value odd = arith::AndIOp::create(b, loc, matrix.columns, i.constant64(1));
  Value isEven = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, odd, i.constant64(0));
  pairs.clear();
  loadEntriesOf(b, acc, line);
  for (int64_t n = 0; n < (transposed ? 2 * share.tall() : share.wide()); ++n) {
    auto [eight, across] = transposed ? std::pair(n, line) : std::pair(line, n);
    int64_t piece = 4 * (eight / 2 * share.wide() + across) + eight % 2 * 2;
    Value low = element(b, acc, piece, share), high = element(b, acc, piece + 1, share);
    Value at = arith::AddIOp::create(b, loc, first, i.constant64(8 * n));
    if (!transposed) {
      putPair(b, i, matrix, isEven, {low, high}, row, at);
      continue;
    }
    put(low, row, at);
    put(high, arith::AddIOp::create(b, loc, row, i.constant64(1)), at);
  }
}

static LogicalResult checkStore(Operation *op, Type element) {
  if (element.isBF16() || element.isF16() || element.isF32())
    return success();
  return op->emitError("tiles: stores are to bf16, f16 or f32; got ") << element;
}

LogicalResult RoleLowering::lower(OpBuilder &b, StoreTileOp op) {
  if (failed(checkAcc(op, op.getValue().getType())) || failed(checkStore(op, *op.getType())))
    return failure();
  OperandRange indices = op.getIndices();
  Matrix matrix = matrixOf(b, mapping.lookupOrDefault(op.getTarget()), *op.getShape(), /*strides=*/{}, indices, *op.getType());
  storeLines(b, op.getValue(), *op.getType(), matrix, wide(b, indices.drop_back().back()), wide(b, indices.back()),
             op.getTransposed());
  return success();
}

/// Groups of rows, each where its slot is.
LogicalResult RoleLowering::lower(OpBuilder &b, StoreBlocksOp op) {
  AccType type = op.getValue().getType();
  if (failed(checkAcc(op, type)) || failed(checkStore(op, *op.getType())))
    return failure();
  int64_t rows = type.getRows() / static_cast<int64_t>(op.getSlots().size());
  if (rows % 8 != 0)
    return op.emitError("tiles: groups of ") << rows << " rows are stored; groups of 8 or a multiple can be";
  Matrix matrix = matrixOf(b, mapping.lookupOrDefault(op.getTarget()), *op.getShape(), /*strides=*/{}, /*indices=*/{}, *op.getType());
  auto firsts = llvm::map_to_vector(op.getSlots(), [&](Value row) { return wide(b, row); });
  storeLines(b, op.getValue(), *op.getType(), matrix, firsts, Instructions(b, op.getLoc()).constant64(0),
             /*transposed=*/false);
  return success();
}

/// One thread of the four that share a row stores its number.
void RoleLowering::lower(OpBuilder &b, StoreRowsOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  Value target = mapping.lookupOrDefault(op.getTarget());
  Value end = wide(b, op.getSize()), first = wide(b, op.getIndices()[0]);
  Value isFirst = i.equal(arith::AndIOp::create(b, loc, group.lane, i.constant(3)), 0);
  Value row = firstPiece(b, loc, shareOf(op.getValue().getType())).first;
  for (auto [n, value] : llvm::enumerate(pieces(op.getValue()))) {
    auto number = static_cast<int64_t>(n);
    Value own = castInteger(b, loc, i.add(row, number / 2 * 16 + number % 2 * 8), b.getI64Type());
    Value place = arith::AddIOp::create(b, loc, first, own);
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, place, end);
    Value some = arith::AndIOp::create(b, loc, inside, isFirst);
    OpBuilder then = scf::IfOp::create(b, loc, some, /*withElseRegion=*/false).getThenBodyBuilder();
    Value address =
        LLVM::GEPOp::create(then, loc, target.getType(), b.getF32Type(), target, ArrayRef<LLVM::GEPArg>{place});
    LLVM::StoreOp::create(then, loc, value, address, /*alignment=*/4);
  }
}
