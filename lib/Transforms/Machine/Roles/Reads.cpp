// SPDX-License-Identifier: Apache-2.0
/// \file
/// What roles read of arguments and arrays in memory alike on every architecture.
#include "Reads.h"
#include "../../Buffers/Addressing.h"
#include "../../Buffers/EmitSize.h"
#include "RoleBody.h"
#include "WarpInstructions.h"

using namespace mlir;
using namespace lacis;

Value lacis::elementOr0(OpBuilder &b, Location loc, Value array, Value index, Type type, Value inside) {
  auto guard = scf::IfOp::create(b, loc, type, inside, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
  Value address = LLVM::GEPOp::create(then, loc, array.getType(), type, array, ArrayRef<LLVM::GEPArg>{index});
  scf::YieldOp::create(then, loc, LLVM::LoadOp::create(then, loc, type, address).getResult());
  scf::YieldOp::create(otherwise, loc,
                       arith::ConstantOp::create(otherwise, loc, otherwise.getZeroAttr(type)).getResult());
  return guard.getResult(0);
}

Value lacis::numberOr0(OpBuilder &b, Location loc, Value array, Value index, Type type, Value inside) {
  Value value = elementOr0(b, loc, array, index, type, inside);
  return type.isF32() ? value : arith::ExtFOp::create(b, loc, b.getF32Type(), value).getResult();
}

Value lacis::columnElement(OpBuilder &b, LoadColumnsOp op, Value array, Value index, Value size) {
  Value inside = arith::CmpIOp::create(b, op.getLoc(), arith::CmpIPredicate::slt, index, size);
  return numberOr0(b, op.getLoc(), array, index, *op.getType(), inside);
}

static LogicalResult checkNumbers(Operation *op, Type element, StringRef side) {
  if (element.isF32() || element.isBF16() || element.isF16())
    return success();
  return op->emitError("tiles: ") << side << " are loaded from a vector of f32, bf16 or f16; got " << element;
}

LogicalResult lacis::checkLoadRows(LoadRowsOp op) { return checkNumbers(op, *op.getType(), "rows"); }

LogicalResult lacis::checkLoadColumns(LoadColumnsOp op) {
  if (failed(checkNumbers(op, *op.getType(), "columns")))
    return failure();
  bool isOfMaps = llvm::all_of(op->getUsers(), [](Operation *user) { return isa<MapOp>(user); });
  return isOfMaps ? success() : op.emitError("tiles: a vector along the columns is read by maps, and by nothing else");
}

Value lacis::matrixAt(OpBuilder &b, Location loc, Value array, Value number, Value rows, Value columns, Type element) {
  Value elements = arith::MulIOp::create(b, loc, rows, columns);
  Value first = arith::MulIOp::create(b, loc, number, elements);
  return LLVM::GEPOp::create(b, loc, array.getType(), element, array, ArrayRef<LLVM::GEPArg>{first});
}

Value lacis::matrixOfBatch(OpBuilder &b, Location loc, func::FuncOp kernel, const MatrixBatch &batch, ValueRange indices,
                           Type element) {
  auto [array, shape, strides] = batch;
  if (strides) {
    Value first = emitOffset(b, loc, kernel, strides, indices);
    return LLVM::GEPOp::create(b, loc, array.getType(), element, array, ArrayRef<LLVM::GEPArg>{first});
  }
  ArrayRef<Attribute> sizes = shape.getValue().take_back(2);
  Value rows = emitSize(b, loc, kernel, cast<SizeAttr>(sizes[0])), columns = emitSize(b, loc, kernel, cast<SizeAttr>(sizes[1]));
  return matrixAt(b, loc, array, emitMatrixNumber(b, loc, kernel, shape, indices), rows, columns, element);
}

Value lacis::chosenOf(OpBuilder &b, Location loc, ValueRange firsts, Value number) {
  Value first = firsts[0];
  for (auto [n, other] : llvm::enumerate(firsts.drop_front())) {
    Value own = arith::ConstantOp::create(b, loc, b.getIntegerAttr(number.getType(), static_cast<int64_t>(n) + 1));
    Value is = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, own);
    first = arith::SelectOp::create(b, loc, is, other, first);
  }
  return first;
}

TileType lacis::pieceOf(LoadTileOp op) {
  TileType tile = op.getTile().getType();
  SmallVector<int64_t> shape(tile.getShape());
  (tile.getRows() == 1 ? shape.back() : shape[shape.size() - 2]) /= partOf(op).count;
  return TileType::get(tile.getContext(), shape, tile.getElementType());
}

std::array<Value, 2> lacis::entryPair(OpBuilder &b, Location loc, Value base, int32_t offset) {
  WarpInstructions i(b, loc);
  Value address =
      LLVM::GEPOp::create(b, loc, base.getType(), b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{offset});
  Value both = LLVM::LoadOp::create(b, loc, b.getI16Type(), address, /*alignment=*/2);
  Value word = arith::ExtUIOp::create(b, loc, b.getI32Type(), both);
  Value low = arith::AndIOp::create(b, loc, word, i.constant(1));
  Value high = arith::ShRUIOp::create(b, loc, word, i.constant(8));
  return {arith::UIToFPOp::create(b, loc, b.getF32Type(), low), arith::UIToFPOp::create(b, loc, b.getF32Type(), high)};
}
