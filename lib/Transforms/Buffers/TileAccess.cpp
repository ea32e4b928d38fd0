// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tile operations lose their tensors: a load or store is of rows and columns behind a pointer.
#include "LoopLowering.h"
#include "lacis/Dialect/Lacis/IR/TilePart.h"

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
/// A tensor as rows and columns, or as matrices of them.
struct Matrix {
  Value pointer;
  ArrayAttr shape;
  int64_t blockRows = 0, positionRows = 0; // of a packed tensor: of one block, and of all that a position has
};
} // namespace

/// The pattern that a sampled output has the slots of.
static Value patternOf(Value output) {
  auto argument = dyn_cast<BlockArgument>(output);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  auto pattern = function ? function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), "lacis.sample")
                          : IntegerAttr();
  return pattern ? function.getArgument(pattern.getInt()) : Value();
}

/// A dense tensor as `sizes` sizes tell it: the axes before the last two are those of a batch, or more rows.
static Matrix denseMatrix(Value tensor, unsigned sizes, const TensorSource &source, KernelArguments &arguments) {
  Value pointer = arguments.pointer(source);
  auto size = [&](unsigned axis) -> Attribute { return arguments.sizeOfDim(source, axis); };
  Builder b(tensor.getContext());
  auto rank = static_cast<unsigned>(cast<RankedTensorType>(tensor.getType()).getRank());
  if (rank == 1) // one row
    return {pointer, b.getArrayAttr({arguments.constantSize(1), size(0)})};
  SmallVector<Attribute> shape{size(0)};
  for (unsigned axis = 1; axis < rank; ++axis)
    if (axis + sizes > rank)
      shape.push_back(size(axis));
    else
      shape[0] = cast<SizeAttr>(shape[0]).times(cast<SizeAttr>(size(axis)));
  return {pointer, b.getArrayAttr(shape)};
}

/// `tensor` where it is loaded from, or stored to, at so many `indices`.
static Matrix matrixOf(Value tensor, size_t indices, KernelArguments &arguments, ArrayRef<WorkspaceOp> workspaces) {
  TensorSource source = sourceOf(tensor, workspaces);
  Builder b(tensor.getContext());
  auto format = dyn_cast_or_null<FormatAttr>(cast<RankedTensorType>(tensor.getType()).getEncoding());
  if (!format)
    return denseMatrix(tensor, static_cast<unsigned>(indices), source, arguments);
  ArrayRef<LevelAttr> levels = format.getLevels();
  bool isMatrix = levels.size() == 2 && llvm::all_of(levels, [](LevelAttr level) {
                    return level.getExtent().coversDomain() && level.getCoordinate().isImplicit() &&
                           level.getDigits().size() == 1 && level.getDigits()[0].mod == 0;
                  });
  if (isMatrix && source.kind != TensorSource::Output) {
    auto size = [&](LevelAttr level) { return arguments.sizeOfDim(source, level.getDigits()[0].axis); };
    return {arguments.array(source, "values"), b.getArrayAttr({size(levels[0]), size(levels[1])})};
  }
  if (levels.size() < 2 || !levels.back().isStaticDense() || !levels[levels.size() - 2].isStaticDense())
    return {};
  int64_t rows = levels[levels.size() - 2].getDigits()[0].mod;
  int64_t positionRows = rows * llvm::product_of(ArrayRef(blockOf(format)).drop_back(2));
  SizeAttr columns = arguments.constantSize(levels.back().getDigits()[0].mod);
  unsigned copies = format.getNumBatchLevels();
  if (source.kind != TensorSource::Output) {
    Value pointer = arguments.array(source, "values");
    SizeAttr all = arguments.sizeOfArray(source, "values", 0);
    for (unsigned axis = 1; axis <= copies; ++axis)
      all = all.times(arguments.sizeOfArray(source, "values", axis));
    return {pointer, b.getArrayAttr({all.times(positionRows), columns}), rows, positionRows};
  }
  Value pattern = patternOf(tensor);
  if (!pattern)
    return {};
  SizeAttr all = arguments.slots(sourceOf(pattern, workspaces), format).times(positionRows);
  for (LevelAttr level : format.getLevels().take_front(copies))
    all = all.times(arguments.sizeOfDim(sourceOf(pattern, workspaces), level.getDigits()[0].axis));
  return {arguments.pointer(source), b.getArrayAttr({all, columns}), rows, positionRows};
}

/// Position, row and column of a stored block become row and column; a matrix is one block, and a vector one row.
static SmallVector<Value> flattened(OpBuilder &b, Location loc, SmallVector<Value> indices, const Matrix &matrix) {
  if (indices.size() == 1)
    return {arith::ConstantOp::create(b, loc, b.getIntegerAttr(indices[0].getType(), 0)), indices[0]};
  if (!matrix.blockRows)
    return SmallVector<Value>(ArrayRef(indices).take_back(matrix.shape.size()));
  Value rows = arith::ConstantOp::create(b, loc, b.getIntegerAttr(indices[0].getType(), matrix.blockRows));
  Value first = arith::MulIOp::create(b, loc, indices[0], rows);
  return {arith::AddIOp::create(b, loc, first, indices[1]), indices[2]};
}

/// The rows of the copies before that which is the first of four indices, and takes it from these; null of one copy.
Value LoopLowering::takeCopy(OpBuilder &b, Location loc, Value tensor, SmallVectorImpl<Value> &indices, int64_t rows) {
  if (indices.size() != 4 || !formatOf(tensor))
    return {};
  Value copy = indices.front();
  indices.erase(indices.begin());
  return copyRows(b, loc, tensor, copy, rows);
}

/// The rows of the values before a copy, each slot of which has so many.
Value LoopLowering::copyRows(OpBuilder &b, Location loc, Value tensor, Value copy, int64_t rows) {
  Value slots = castInteger(b, loc, arguments.slots(tensor, workspaces), copy.getType());
  Value height = arith::ConstantOp::create(b, loc, b.getIntegerAttr(copy.getType(), rows));
  return arith::MulIOp::create(b, loc, copy, arith::MulIOp::create(b, loc, slots, height));
}

LogicalResult LoopLowering::lowerLoadTile(OpBuilder &b, LoadTileOp op) {
  Matrix matrix = matrixOf(op.getSource(), op.getIndices().size(), arguments, workspaces);
  if (!matrix.pointer)
    return op.emitError("load_tile: the format of the source does not end in a stored block of two dense levels");
  SmallVector<Value> indices = mapped(op.getIndices());
  Value before = takeCopy(b, op.getLoc(), op.getSource(), indices, matrix.positionRows);
  indices = flattened(b, op.getLoc(), indices, matrix);
  if (before)
    indices[0] = arith::AddIOp::create(b, op.getLoc(), indices[0], before);
  Value place = op.getPlace() ? mapping.lookup(op.getPlace()) : Value();
  Value tile = mapping.lookup(op.getTile());
  TensorSource source = sourceOf(op.getSource(), workspaces);
  ArrayAttr strides = arguments.isStrided(source) ? arguments.stridesOf(source) : ArrayAttr();
  setPart(LoadTileOp::create(b, op.getLoc(), matrix.pointer, indices, tile, place, matrix.shape, strides), partOf(op));
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

template <typename Load> void LoopLowering::lowerLoadVector(OpBuilder &b, Load op) {
  TensorSource source = sourceOf(op.getSource(), workspaces);
  auto type = cast<RankedTensorType>(op.getSource().getType());
  Value pointer = arguments.pointer(source), size = arguments.dim(source, 0);
  for (int64_t axis = 1; axis < type.getRank(); ++axis)
    size = arith::MulIOp::create(b, op.getLoc(), size, arguments.dim(source, axis));
  auto made = Load::create(b, op.getLoc(), op.getAcc().getType(), pointer, mapping.lookup(op.getFirst()), size,
                           TypeAttr::get(type.getElementType()));
  mapping.map(op.getAcc(), made.getAcc());
}

template void LoopLowering::lowerLoadVector(OpBuilder &b, LoadRowsOp op);
template void LoopLowering::lowerLoadVector(OpBuilder &b, LoadColumnsOp op);

/// The axes before the last say which row of neighbours it is.
void LoopLowering::lowerStoreRows(OpBuilder &b, StoreRowsOp op) {
  Location loc = op.getLoc();
  TensorSource source = sourceOf(op.getTarget(), workspaces);
  SmallVector<Value> indices = mapped(op.getIndices());
  auto sizeOf = [&](size_t axis) { return castInteger(b, loc, arguments.dim(source, axis), indices[0].getType()); };
  Value first = indices[0], end = sizeOf(0);
  for (size_t axis = 1; axis < indices.size(); ++axis) {
    Value before = arith::MulIOp::create(b, loc, first, sizeOf(axis));
    end = arith::AddIOp::create(b, loc, before, sizeOf(axis));
    first = arith::AddIOp::create(b, loc, before, indices[axis]);
  }
  StoreRowsOp::create(b, loc, mapping.lookup(op.getValue()), arguments.pointer(source), first, end);
}

void LoopLowering::lowerLoadAcc(OpBuilder &b, LoadAccOp op) {
  Value pointer = arguments.pointer(sourceOf(op.getSource(), workspaces));
  Value onto = op.getOnto() ? mapping.lookup(op.getOnto()) : Value();
  auto made = LoadAccOp::create(b, op.getLoc(), op.getAcc().getType(), pointer, mapping.lookup(op.getPlace()), onto);
  mapping.map(op.getAcc(), made.getAcc());
}

void LoopLowering::lowerStoreAcc(OpBuilder &b, StoreAccOp op) {
  Value pointer = arguments.pointer(sourceOf(op.getTarget(), workspaces));
  StoreAccOp::create(b, op.getLoc(), mapping.lookup(op.getAcc()), pointer, mapping.lookup(op.getPlace()));
}

/// `value`, whose groups of rows are to be stored at `rows` of a sampled output, with 0 at the padding of the blocks.
Value LoopLowering::withoutPadding(OpBuilder &b, Location loc, Value target, Value value, ValueRange rows,
                                   Value column) {
  auto type = cast<AccType>(value.getType());
  TensorSource source = sourceOf(patternOf(target), workspaces);
  int64_t columns = formatOf(target).getLevels().back().getDigits()[0].mod;
  Value bitmap = arguments.array(source, "valid"), size = arguments.arrayDim(source, "valid", 0);
  Value entries = LoadEntriesOp::create(b, loc, type, bitmap, rows, column, size, columns);
  auto map = MapOp::create(b, loc, type, ValueRange{value, entries}, /*places=*/ValueRange());
  Block &body = map.getBody().emplaceBlock();
  Type element = type.getElementType();
  body.addArguments({element, element}, {loc, loc});
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  Value zero = arith::ConstantOp::create(inner, loc, inner.getZeroAttr(element));
  Value padding = arith::CmpFOp::create(inner, loc, arith::CmpFPredicate::OEQ, body.getArgument(1), zero);
  Value kept = arith::SelectOp::create(inner, loc, padding, zero, body.getArgument(0));
  YieldOp::create(inner, loc, kept);
  return map.getResult();
}

LogicalResult LoopLowering::lowerStoreTile(OpBuilder &b, StoreTileOp op) {
  Matrix matrix = matrixOf(op.getTarget(), op.getIndices().size(), arguments, workspaces);
  if (!matrix.pointer)
    return op.emitError("store_tile: the target is dense, or sampled on a pattern that ends in a stored block");
  SmallVector<Value> indices = mapped(op.getIndices());
  Value before = takeCopy(b, op.getLoc(), op.getTarget(), indices, matrix.positionRows);
  indices = flattened(b, op.getLoc(), indices, matrix);
  Value value = mapping.lookup(op.getValue());
  if (matrix.blockRows)
    value = withoutPadding(b, op.getLoc(), op.getTarget(), value, indices[0], indices[1]);
  if (before) // all copies have the same padding
    indices[0] = arith::AddIOp::create(b, op.getLoc(), indices[0], before);
  Type element = cast<RankedTensorType>(op.getTarget().getType()).getElementType();
  Value through = op.getThrough() ? mapping.lookup(op.getThrough()) : Value();
  Value slot = op.getSlot() ? mapping.lookup(op.getSlot()) : Value();
  StoreTileOp::create(b, op.getLoc(), value, matrix.pointer, indices, through, slot, op.getTransposedAttr(), matrix.shape,
                      TypeAttr::get(element));
  return success();
}

LogicalResult LoopLowering::lowerStoreBlocks(OpBuilder &b, StoreBlocksOp op) {
  Location loc = op.getLoc();
  Matrix matrix = matrixOf(op.getTarget(), /*indices=*/3, arguments, workspaces);
  int64_t columns = op.getValue().getType().getColumns();
  if (!matrix.blockRows || matrix.blockRows * static_cast<int64_t>(op.getSlots().size()) !=
                               op.getValue().getType().getRows() ||
      formatOf(op.getTarget()).getLevels().back().getDigits()[0].mod != columns)
    return op.emitError("store_blocks: the groups of rows and the columns are those of a stored block of the target");
  SmallVector<Value> rows;
  for (Value slot : mapped(op.getSlots())) {
    Value height = arith::ConstantOp::create(b, loc, b.getIntegerAttr(slot.getType(), matrix.blockRows));
    rows.push_back(arith::MulIOp::create(b, loc, slot, height));
  }
  Value zero = arith::ConstantOp::create(b, loc, b.getIntegerAttr(rows[0].getType(), 0));
  Value value = withoutPadding(b, loc, op.getTarget(), mapping.lookup(op.getValue()), rows, zero);
  if (op.getBatch()) { // all copies have the same padding
    Value before = copyRows(b, loc, op.getTarget(), mapping.lookup(op.getBatch()), matrix.positionRows);
    before = castInteger(b, loc, before, rows[0].getType());
    for (Value &row : rows) {
      Value isNone = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, row, zero);
      row = arith::SelectOp::create(b, loc, isNone, row, arith::AddIOp::create(b, loc, row, before));
    }
  }
  Type element = cast<RankedTensorType>(op.getTarget().getType()).getElementType();
  StoreBlocksOp::create(b, loc, value, matrix.pointer, rows, /*batch=*/Value(), matrix.shape, TypeAttr::get(element));
  return success();
}
