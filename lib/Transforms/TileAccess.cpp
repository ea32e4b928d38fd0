// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tile operations lose their tensors: a load or store is of rows and columns behind a pointer.
#include "LoopLowering.h"

using namespace mlir;
using namespace lacis;

/// Roles and maps stay, with their bodies lowered.
LogicalResult LoopLowering::lowerRegions(OpBuilder &b, Operation &op) {
  Operation *made = b.insert(op.cloneWithoutRegions(mapping));
  for (auto [before, after] : llvm::zip(op.getRegions(), made->getRegions())) {
    Block &body = after.emplaceBlock();
    for (BlockArgument argument : before.getArguments())
      mapping.map(argument, body.addArgument(convert(argument.getType()), argument.getLoc()));
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    if (failed(lower(inner, before.front())))
      return failure();
    inner.clone(*before.front().getTerminator(), mapping);
  }
  return success();
}

LogicalResult LoopLowering::lowerPresence(OpBuilder &b, PresenceOp op) {
  StorageLevel level = storageLevel(b, op.getLoc(), op.getTensor(), op.getLevel());
  FormatAttr format = formatOf(op.getTensor());
  LevelAttr attr = format.getLevels()[op.getLevel()];
  Value bits = attr.getCoordinate().emitPresence(level, mapping.lookup(op.getParent()));
  if (!bits)
    return op.emitError("presence: level kind '") << attr.getKindName() << "' does not know it; use 'bitmap'";
  mapping.map(op.getBits(), castInteger(b, op.getLoc(), bits, b.getI32Type()));
  return success();
}

void LoopLowering::lowerOrigin(OpBuilder &b, OriginOp op) {
  Location loc = op.getLoc();
  Value array = arguments.array(sourceOf(op.getTensor(), workspaces), "origin");
  Value address = elementAddress(b, loc, array, mapping.lookup(op.getPlace()), b.getI32Type());
  Value group = LLVM::LoadOp::create(b, loc, b.getI32Type(), address);
  mapping.map(op.getGroup(), castInteger(b, loc, group, arguments.getIndexType()));
}

namespace {
/// A tensor as rows and columns.
struct Matrix {
  Value pointer;
  ArrayAttr shape;
  int64_t blockRows = 0; // of a packed tensor
};
} // namespace

static Matrix matrixOf(Value tensor, KernelArguments &arguments, ArrayRef<WorkspaceOp> workspaces) {
  TensorSource source = sourceOf(tensor, workspaces);
  Builder b(tensor.getContext());
  auto format = dyn_cast_or_null<FormatAttr>(cast<RankedTensorType>(tensor.getType()).getEncoding());
  if (!format)
    return {arguments.pointer(source), b.getArrayAttr({arguments.sizeOfDim(source, 0), arguments.sizeOfDim(source, 1)}),
            0};
  ArrayRef<LevelAttr> levels = format.getLevels();
  if (levels.size() < 2 || !levels.back().isStaticDense() || !levels[levels.size() - 2].isStaticDense())
    return {};
  int64_t rows = levels[levels.size() - 2].getDigits()[0].mod, columns = levels.back().getDigits()[0].mod;
  Value pointer = arguments.array(source, "values");
  return {pointer, b.getArrayAttr({arguments.sizeOfArray(source, "values", 0, rows), arguments.constantSize(columns)}),
          rows};
}

LogicalResult LoopLowering::lowerLoadTile(OpBuilder &b, LoadTileOp op) {
  Location loc = op.getLoc();
  Matrix matrix = matrixOf(op.getSource(), arguments, workspaces);
  if (!matrix.pointer)
    return op.emitError("load_tile: the format of the source does not end in a stored block of two dense levels");
  SmallVector<Value> indices = mapped(op.getIndices());
  if (matrix.blockRows) { // position and row become a row
    Value rows = arith::ConstantOp::create(b, loc, b.getIntegerAttr(indices[0].getType(), matrix.blockRows));
    Value first = arith::MulIOp::create(b, loc, indices[0], rows);
    indices = {arith::AddIOp::create(b, loc, first, indices[1]), indices[2]};
  }
  Value place = op.getPlace() ? mapping.lookup(op.getPlace()) : Value();
  LoadTileOp::create(b, loc, matrix.pointer, indices, mapping.lookup(op.getTile()), place, matrix.shape);
  return success();
}

void LoopLowering::lowerLoadRun(OpBuilder &b, LoadRunOp op) {
  TensorSource source = sourceOf(op.getSource(), workspaces);
  TensorSource own = sourceOf(op.getSource().getDefiningOp()->getOperand(0), workspaces);
  arguments.array(own, "values"); // whose copy the run is: callers differentiate in them
  Value pointer = arguments.array(source, "values");
  LoadRunOp::create(b, op.getLoc(), pointer, mapping.lookup(op.getPosition()), mapping.lookup(op.getCount()),
                    mapping.lookup(op.getTile()));
}

void LoopLowering::lowerStoreTile(OpBuilder &b, StoreTileOp op) {
  Matrix matrix = matrixOf(op.getTarget(), arguments, workspaces);
  Type element = cast<RankedTensorType>(op.getTarget().getType()).getElementType();
  StoreTileOp::create(b, op.getLoc(), mapping.lookup(op.getValue()), matrix.pointer, mapped(op.getIndices()),
                      op.getTransposedAttr(), matrix.shape, TypeAttr::get(element));
}
