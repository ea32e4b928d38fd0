// SPDX-License-Identifier: Apache-2.0
/// \file
/// Stores of sums as they are, in float32: each thread stores its own elements.
#include "../../Buffers/Addressing.h"
#include "../../Buffers/EmitSize.h"
#include "../Roles/Reads.h"
#include "RoleLowering.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::hopper;

namespace {

/// A matrix of float32 whose elements are stored one by one; of a batch it has a `number`, in i64.
class SingleStore {
public:
  SingleStore(OpBuilder &b, Operation *op, ArrayAttr shape, Value array, Value number)
      : loc(op->getLoc()), matrix(array), rows(size(b, op, shape[shape.size() - 2])),
        columns(size(b, op, shape[shape.size() - 1])) {
    if (number)
      matrix = matrixAt(b, loc, array, number, rows, columns, b.getF32Type());
  }

  /// How many lines there are from `from` on, as far as it matters.
  Value left(OpBuilder &b, Value all, Value from) const {
    constexpr int64_t most = 1 << 20; // more than an accumulator has
    Instructions i(b, loc);
    Value count = arith::SubIOp::create(b, loc, all, from);
    return castInteger(b, loc, arith::MinSIOp::create(b, loc, count, i.constant64(most)), b.getI32Type());
  }
  static Value more(OpBuilder &b, Location loc, Value count, int64_t place) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, count, Instructions(b, loc).constant(place));
  }
  Value sum(OpBuilder &b, Value x, Value y) const { return arith::AddIOp::create(b, loc, x, y); }
  Value mul(OpBuilder &b, Value x, Value y) const { return arith::MulIOp::create(b, loc, x, y); }
  void put(OpBuilder &b, Value value, Value place) const {
    Value address =
        LLVM::GEPOp::create(b, loc, matrix.getType(), b.getF32Type(), matrix, ArrayRef<LLVM::GEPArg>{place});
    LLVM::StoreOp::create(b, loc, value, address, /*alignment=*/4);
  }

private:
  static Value size(OpBuilder &b, Operation *op, Attribute size) {
    auto kernel = op->getParentOfType<func::FuncOp>();
    return emitSize(b, kernel.getLoc(), kernel, cast<SizeAttr>(size));
  }

  Location loc;
  Value matrix;

public:
  Value rows, columns;
};

} // namespace

static Value wide(OpBuilder &b, Value value) { return castInteger(b, value.getLoc(), value, b.getI64Type()); }

/// The tile that is read for these elements; null where there is none.
static ReadTileOp readFor(Value acc) {
  if (auto map = acc.getDefiningOp<MapOp>())
    for (Value value : map.getValues())
      if (ReadTileOp read = readFor(value))
        return read;
  return acc.getDefiningOp<ReadTileOp>();
}

/// Element `n`, of which each four have a branch of their own. There a tile is read, 16 columns at once, and its address
/// computed: few values live.
Value RoleLowering::elementApart(OpBuilder &b, Value acc, size_t n) {
  ReadTileOp read = readFor(acc);
  Value lane = group.lane;
  if (read && waitsForStore(read.getAcc()) && n % 4 == 0) {
    group.lane = Instructions(b, acc.getLoc()).here(lane);
    if (n % 8 != 0) // else it is read below
      pairs[{read, 0, n / 8}] = readPair(b, read, /*row=*/0, static_cast<int64_t>(n) / 8 * 2);
  }
  Value value = element(b, acc, n);
  group.lane = lane;
  return value;
}

/// To a transposed matrix: a warp stores 32 bytes of each of four rows at once.
void RoleLowering::storeColumns(OpBuilder &b, StoreTileOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  Pieces place = mapped(op.getIndices());
  Value number = place.size() == 3 ? wide(b, place[0]) : Value();
  SingleStore to(b, op, *op.getShape(), mapping.lookupOrDefault(op.getTarget()), number);
  Value eighth = arith::ShRUIOp::create(b, loc, group.lane, i.constant(2));
  Value pair = i.multiply(arith::AndIOp::create(b, loc, group.lane, i.constant(3)), 2);
  Value row = wide(b, i.add(place[place.size() - 2], pair));
  Value column = wide(b, i.add(place.back(), i.add(i.multiply(group.warp, 16), eighth)));
  Value rows = to.left(b, to.rows, row), columns = to.left(b, to.columns, column);
  Value start = to.sum(b, to.mul(b, row, to.columns), column), next = to.mul(b, to.columns, i.constant64(8));
  for (int64_t eight = 0; eight < op.getValue().getType().getColumns() / 8; ++eight) {
    // A branch keeps the assembler from mixing the arithmetic of all parts, and the compiler is not to know how their
    // places follow each other, or it prepares them all before the sum: few values live.
    start = i.apart(eight == 0 ? start : to.sum(b, start, next));
    OpBuilder at = scf::IfOp::create(b, loc, i.opaqueTrue(), /*withElseRegion=*/false).getThenBodyBuilder();
    for (int64_t n = 0; n < 4; ++n) {
      Value value = elementApart(at, op.getValue(), 4 * eight + n);
      Value inside = arith::AndIOp::create(at, loc, SingleStore::more(at, loc, rows, 8 * eight + n % 2),
                                           SingleStore::more(at, loc, columns, n / 2 * 8));
      OpBuilder then = scf::IfOp::create(at, loc, inside, /*withElseRegion=*/false).getThenBodyBuilder();
      Value place = n % 2 == 0 ? start : to.sum(then, start, to.columns);
      to.put(then, value, to.sum(then, place, Instructions(then, loc).constant64(n / 2 * 8)));
    }
  }
}

/// Rows of the accumulator to rows of a matrix from `column` on: from one row on, or groups of rows, each where its slot
/// is, if that is not negative. A warp stores 32 bytes of each of eight rows at once. Of a batch it is matrix `number`.
void RoleLowering::storeRows(OpBuilder &b, Operation *op, ValueRange firsts, Value column, Value number) {
  Location loc = op->getLoc();
  Instructions i(b, loc);
  Value acc = op->getOperand(0);
  auto shape = op->getAttrOfType<ArrayAttr>("shape");
  if (number)
    number = wide(b, mapping.lookupOrDefault(number));
  SingleStore to(b, op, shape, mapping.lookupOrDefault(op->getOperand(1)), number);
  Value pair = i.multiply(arith::AndIOp::create(b, loc, group.lane, i.constant(3)), 2);
  Value first = wide(b, column ? i.add(mapping.lookupOrDefault(column), pair) : pair);
  Value columns = to.left(b, to.columns, first);
  SmallVector<Value> mapped;
  for (Value row : firsts)
    mapped.push_back(mapping.lookupOrDefault(row));
  Value starts[2], some[2];
  for (int64_t below : {0, 1}) {
    Value row = wide(b, rowIn(b, mapped, 8 * below));
    some[below] = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, row, to.rows);
    starts[below] = to.sum(b, to.mul(b, row, to.columns), first);
  }
  for (int64_t eight = 0; eight < cast<AccType>(acc.getType()).getColumns() / 8; ++eight) {
    for (Value &start : starts) // see storeColumns
      start = i.apart(eight == 0 ? start : to.sum(b, start, i.constant64(8)));
    OpBuilder at = scf::IfOp::create(b, loc, i.opaqueTrue(), /*withElseRegion=*/false).getThenBodyBuilder();
    for (int64_t n = 0; n < 4; ++n) {
      Value value = elementApart(at, acc, 4 * eight + n);
      Value inside =
          arith::AndIOp::create(at, loc, some[n / 2], SingleStore::more(at, loc, columns, 8 * eight + n % 2));
      OpBuilder then = scf::IfOp::create(at, loc, inside, /*withElseRegion=*/false).getThenBodyBuilder();
      to.put(then, value, to.sum(then, starts[n / 2], Instructions(then, loc).constant64(n % 2)));
    }
  }
}

/// A number for each row: the four threads of a quad have the same two, the first of them stores.
void RoleLowering::lower(OpBuilder &b, StoreRowsOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  Value target = mapping.lookupOrDefault(op.getTarget()), end = wide(b, mapping.lookupOrDefault(op.getSize()));
  Value isFirst = i.equal(arith::AndIOp::create(b, loc, group.lane, i.constant(3)), 0);
  for (int64_t below : {0, 8}) {
    Value place = wide(b, rowIn(b, mapping.lookupOrDefault(op.getIndices()[0]), below));
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, place, end);
    Value some = arith::AndIOp::create(b, loc, inside, isFirst);
    OpBuilder then = scf::IfOp::create(b, loc, some, /*withElseRegion=*/false).getThenBodyBuilder();
    Value address = LLVM::GEPOp::create(then, loc, target.getType(), b.getF32Type(), target, ArrayRef<LLVM::GEPArg>{place});
    LLVM::StoreOp::create(then, loc, element(then, op.getValue(), below / 4), address, /*alignment=*/4);
  }
}
