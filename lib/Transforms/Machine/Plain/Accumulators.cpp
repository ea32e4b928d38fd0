// SPDX-License-Identifier: Apache-2.0
/// \file
/// Accumulators in plain loops: arithmetic on elements, loads and stores.
#include "../../Buffers/Addressing.h"
#include "../Roles/Reads.h"
#include "TileLoops.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::plain;

//===- Memory -------------------------------------------------------------===//

Acc TileLoops::make(Type type) {
  auto acc = dyn_cast<AccType>(type);
  if (!acc)
    return {allocate(entry.getI64Type(), 1), 1, entry.getI64Type()};
  int64_t rows = llvm::divideCeil(acc.getRows(), threads);
  return {allocate(acc.getElementType(), rows * acc.getColumns()), acc.getColumns(), acc.getElementType()};
}

Value TileLoops::get(OpBuilder &b, const Acc &from, Value row, Value column) {
  Value place = add(b, multiply(b, row, constant(from.stride)), column);
  return LLVM::LoadOp::create(b, loc, from.element, address(b, from.pointer, from.element, place));
}

Value TileLoops::single(OpBuilder &b, Value value) {
  return value.getType().isF32() ? value : arith::ExtFOp::create(b, loc, b.getF32Type(), value).getResult();
}

void TileLoops::put(OpBuilder &b, const Acc &to, Value row, Value column, Value value) {
  Value place = add(b, multiply(b, row, constant(to.stride)), column);
  LLVM::StoreOp::create(b, loc, value, address(b, to.pointer, to.element, place));
}

void TileLoops::eachRow(OpBuilder &b, AccType type, llvm::function_ref<void(OpBuilder &, Value, Value)> body) {
  loop(b, thread, constant(type.getRows()), constant(threads), [&](OpBuilder &in, Value number) {
    body(in, threads == 1 ? number : arith::DivUIOp::create(in, loc, number, constant(threads)).getResult(), number);
  });
}

void TileLoops::eachElement(OpBuilder &b, AccType type,
                            llvm::function_ref<void(OpBuilder &, Value, Value, Value)> body) {
  eachRow(b, type, [&](OpBuilder &in, Value row, Value number) {
    loop(in, constant(0), constant(type.getColumns()), constant(1),
         [&](OpBuilder &at, Value column) { body(at, row, number, column); });
  });
}

void TileLoops::copy(OpBuilder &b, Type type, const Acc &from, const Acc &to) {
  if (from.pointer == to.pointer)
    return;
  auto acc = dyn_cast<AccType>(type);
  if (!acc)
    return put(b, to, constant(0), constant(0), get(b, from, constant(0), constant(0)));
  eachElement(b, acc, [&](OpBuilder &in, Value row, Value, Value column) {
    put(in, to, row, column, get(in, from, row, column));
  });
}

void TileLoops::lower(SplatOp op) {
  OpBuilder b(op);
  Acc to = made(op.getAcc(), op.getAcc().getType());
  eachElement(b, op.getAcc().getType(),
              [&](OpBuilder &in, Value row, Value, Value column) { put(in, to, row, column, op.getValue()); });
}

//===- Arithmetic ---------------------------------------------------------===//

void TileLoops::lower(MapOp op) {
  OpBuilder b(op);
  AccType type = op.getResult().getType();
  Acc to = made(op.getResult(), type);
  Block &body = op.getBody().front();
  eachElement(b, type, [&](OpBuilder &in, Value row, Value number, Value column) {
    IRMapping mapping;
    for (size_t n = 0; n < op.getPlaces().size(); ++n) {
      Value place = add(in, wide(in, op.getPlaces()[n]), n == 0 ? number : column);
      mapping.map(body.getArgument(op.getValues().size() + n), castInteger(in, loc, place, op.getPlaces()[n].getType()));
    }
    for (auto [value, argument] : llvm::zip(op.getValues(), body.getArguments())) {
      bool isColumn = cast<AccType>(value.getType()).getColumns() == 1;
      mapping.map(argument, get(in, accs.lookup(value), row, isColumn ? constant(0) : column));
    }
    for (Operation &inner : body.without_terminator())
      if (auto load = dyn_cast<LLVM::LoadOp>(in.clone(inner, mapping)))
        load.removeAlignmentAttr(); // that of even columns
    put(in, to, row, column, mapping.lookupOrDefault(body.getTerminator()->getOperand(0)));
  });
}

void TileLoops::lower(ReduceRowsOp op) {
  OpBuilder b(op);
  AccType from = op.getValue().getType(), type = op.getResult().getType();
  Acc to = made(op.getResult(), type), values = accs.lookup(op.getValue());
  bool isSum = op.getKind() == "sum";
  auto combine = [&](OpBuilder &at, Value x, Value y) -> Value {
    return isSum ? arith::AddFOp::create(at, loc, x, y).getResult() : arith::MaximumFOp::create(at, loc, x, y).getResult();
  };
  auto neutral = [&](OpBuilder &at) -> Value {
    float value = isSum ? 0.0f : -std::numeric_limits<float>::infinity();
    return arith::ConstantOp::create(at, loc, at.getF32FloatAttr(value));
  };
  eachRow(b, type, [&](OpBuilder &in, Value row, Value) {
    Value first = get(in, values, row, constant(0));
    auto all = scf::ForOp::create(in, loc, constant(1), constant(from.getColumns()), constant(1), first);
    if (all.getBody()->mightHaveTerminator())
      all.getBody()->getTerminator()->erase();
    OpBuilder at = OpBuilder::atBlockEnd(all.getBody());
    Value so = all.getRegionIterArgs()[0], value = get(at, values, row, all.getInductionVar());
    scf::YieldOp::create(at, loc, combine(at, so, value));
    Value total = all.getResult(0);
    for (int64_t column = 0; column < type.getColumns(); ++column) { // the first part is the whole, the others nothing
      Value before = op.getOnto() ? get(in, accs.lookup(op.getOnto()), row, constant(column)) : Value();
      if (column > 0)
        total = before ? before : neutral(in);
      else if (before)
        total = combine(in, before, total);
      put(in, to, row, constant(column), total);
    }
  });
}

/// They lie where they lie.
void TileLoops::lower(ColumnsOp op) {
  OpBuilder b(op);
  Acc from = accs.lookup(op.getValue());
  accs[op.getResult()] = {address(b, from.pointer, from.element, constant(op.getFirst())), from.stride, from.element};
}

void TileLoops::lower(ReadTileOp op) {
  OpBuilder b(op);
  AccType type = op.getAcc().getType();
  Acc to = made(op.getAcc(), type);
  Value base = tileAt(b, op.getTile(), op.getPlace());
  TileType tile = op.getTile().getType();
  bool isWhole = !op.getTransposed() && type.getColumns() > tile.getColumns();
  eachElement(b, type, [&](OpBuilder &in, Value row, Value number, Value column) {
    bool turned = op.getTransposed();
    Value from = base, within = column;
    if (isWhole) { // tiles stand side by side
      Value width = constant(tile.getColumns()), elements = constant(tile.getRows() * tile.getColumns());
      Value place = multiply(in, arith::DivUIOp::create(in, loc, column, width), elements);
      from = address(in, base, tile.getElementType(), place);
      within = arith::RemUIOp::create(in, loc, column, width);
    }
    Value value = elementOf(in, tile, /*transposed=*/false, from, turned ? within : number, turned ? number : within);
    if (!type.getElementType().isF32())
      value = arith::TruncFOp::create(in, loc, type.getElementType(), value);
    put(in, to, row, column, value);
  });
}

void TileLoops::lower(ReadColumnsOp op) {
  OpBuilder b(op);
  AccType type = op.getAcc().getType();
  Acc to = made(op.getAcc(), type);
  Value base = tileAt(b, op.getTile(), Value());
  eachElement(b, type, [&](OpBuilder &in, Value row, Value, Value column) {
    Value from = address(in, base, type.getElementType(), column);
    put(in, to, row, column, LLVM::LoadOp::create(in, loc, type.getElementType(), from));
  });
}

void TileLoops::lower(LoadRowsOp op) {
  OpBuilder b(op);
  Acc to = made(op.getAcc(), op.getAcc().getType());
  Value first = wide(b, op.getFirst()), size = wide(b, op.getSize());
  eachRow(b, op.getAcc().getType(), [&](OpBuilder &in, Value row, Value number) {
    Value index = add(in, first, number);
    put(in, to, row, constant(0), numberOr0(in, loc, op.getSource(), index, *op.getType(), less(in, index, size)));
  });
}

void TileLoops::lower(LoadColumnsOp op) {
  OpBuilder b(op);
  AccType type = op.getAcc().getType();
  Acc to = made(op.getAcc(), type);
  Value first = wide(b, op.getFirst()), size = wide(b, op.getSize());
  eachElement(b, type, [&](OpBuilder &in, Value row, Value, Value column) {
    put(in, to, row, column, columnElement(in, op, op.getSource(), add(in, first, column), size));
  });
}

void TileLoops::lower(LoadAccOp op) {
  OpBuilder b(op);
  AccType type = op.getAcc().getType();
  Acc to = made(op.getAcc(), type);
  Value columns = constant(type.getColumns());
  Value first = multiply(b, wide(b, op.getPlace()), constant(type.getRows() * type.getColumns()));
  eachElement(b, type, [&](OpBuilder &in, Value row, Value number, Value column) {
    Value place = add(in, add(in, first, multiply(in, number, columns)), column);
    Value from = address(in, op.getSource(), in.getF32Type(), place);
    Value value = LLVM::LoadOp::create(in, loc, in.getF32Type(), from);
    if (op.getOnto())
      value = arith::AddFOp::create(in, loc, get(in, accs.lookup(op.getOnto()), row, column), value);
    put(in, to, row, column, value);
  });
}

void TileLoops::lower(StoreAccOp op) {
  OpBuilder b(op);
  AccType type = op.getAcc().getType();
  Acc from = accs.lookup(op.getAcc());
  Value columns = constant(type.getColumns());
  Value first = multiply(b, wide(b, op.getPlace()), constant(type.getRows() * type.getColumns()));
  eachElement(b, type, [&](OpBuilder &in, Value row, Value number, Value column) {
    Value place = add(in, add(in, first, multiply(in, number, columns)), column);
    LLVM::StoreOp::create(in, loc, get(in, from, row, column), address(in, op.getTarget(), in.getF32Type(), place));
  });
}

/// The row in memory of row `row`, which is one of groups of `rows`; negative where its group is none.
Value TileLoops::rowOfGroup(OpBuilder &b, ValueRange firsts, int64_t rows, Value row) {
  if (firsts.size() == 1)
    return add(b, wide(b, firsts[0]), row);
  auto places = llvm::map_to_vector(firsts, [&](Value first) { return wide(b, first); });
  Value first = chosenOf(b, loc, places, arith::DivUIOp::create(b, loc, row, constant(rows)));
  Value none = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, first, constant(0));
  Value place = add(b, first, arith::RemUIOp::create(b, loc, row, constant(rows)));
  return arith::SelectOp::create(b, loc, none, constant(-1), place);
}

/// 1 where there is no bitmap, and in groups that are none.
void TileLoops::lower(LoadEntriesOp op) {
  OpBuilder b(op);
  AccType type = op.getAcc().getType();
  Acc to = made(op.getAcc(), type);
  int64_t rows = type.getRows() / static_cast<int64_t>(op.getRows().size());
  Value column = wide(b, op.getColumn()), stride = constant(static_cast<int64_t>(op.getStride()));
  Value has = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, wide(b, op.getSize()), constant(0));
  Type byte = b.getI8Type();
  eachRow(b, type, [&](OpBuilder &in, Value row, Value number) {
    Value from = rowOfGroup(in, op.getRows(), rows, number);
    Value lies = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::sge, from, constant(0));
    Value some = arith::AndIOp::create(in, loc, has, lies), start = add(in, multiply(in, from, stride), column);
    loop(in, constant(0), constant(type.getColumns()), constant(1), [&](OpBuilder &at, Value n) {
      Value one = arith::ConstantOp::create(at, loc, at.getF32FloatAttr(1.0f));
      Value bit = elementOr0(at, loc, op.getBitmap(), add(at, start, n), byte, some);
      Value entry = arith::SelectOp::create(at, loc, some, arith::UIToFPOp::create(at, loc, at.getF32Type(), bit), one);
      put(at, to, row, n, entry);
    });
  });
}

//===- Stores -------------------------------------------------------------===//

void TileLoops::storeAt(OpBuilder &b, Location loc, Value target, ArrayAttr shape, Type element, Value row,
                        Value column, Value value) {
  ArrayRef<Attribute> sizes = shape.getValue().take_back(2);
  Value rows = size(sizes[0]), columns = size(sizes[1]);
  Value inside = arith::AndIOp::create(b, loc, less(b, row, rows), less(b, column, columns));
  OpBuilder then = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false).getThenBodyBuilder();
  if (!element.isF32())
    value = arith::TruncFOp::create(then, loc, element, value);
  Value place = add(then, multiply(then, row, columns), column);
  LLVM::StoreOp::create(then, loc, value, address(then, target, element, place));
}

void TileLoops::lower(StoreTileOp op) {
  OpBuilder b(op);
  Acc from = accs.lookup(op.getValue());
  OperandRange indices = op.getIndices();
  Value row = wide(b, indices.drop_back().back()), column = wide(b, indices.back());
  Value target = ownMatrix(b, {op.getTarget(), *op.getShape(), {}}, indices, *op.getType());
  eachElement(b, op.getValue().getType(), [&](OpBuilder &in, Value m, Value number, Value n) {
    bool turned = op.getTransposed();
    storeAt(in, loc, target, *op.getShape(), *op.getType(), add(in, row, turned ? n : number),
            add(in, column, turned ? number : n), get(in, from, m, n));
  });
}

void TileLoops::lower(StoreRowsOp op) {
  OpBuilder b(op);
  Acc from = accs.lookup(op.getValue());
  Value first = wide(b, op.getIndices()[0]), end = wide(b, op.getSize());
  eachRow(b, op.getValue().getType(), [&](OpBuilder &in, Value row, Value number) {
    Value place = add(in, first, number);
    OpBuilder then = scf::IfOp::create(in, loc, less(in, place, end), /*withElseRegion=*/false).getThenBodyBuilder();
    LLVM::StoreOp::create(then, loc, get(then, from, row, constant(0)), address(then, op.getTarget(), in.getF32Type(), place));
  });
}

/// Groups of rows, each where its slot is.
void TileLoops::lower(StoreBlocksOp op) {
  OpBuilder b(op);
  AccType type = op.getValue().getType();
  Acc from = accs.lookup(op.getValue());
  int64_t rows = type.getRows() / static_cast<int64_t>(op.getSlots().size());
  eachElement(b, type, [&](OpBuilder &in, Value m, Value number, Value n) {
    Value row = rowOfGroup(in, op.getSlots(), rows, number);
    storeAt(in, loc, op.getTarget(), *op.getShape(), *op.getType(), row, n, get(in, from, m, n));
  });
}
