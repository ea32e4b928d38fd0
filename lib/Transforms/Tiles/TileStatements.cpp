// SPDX-License-Identifier: Apache-2.0
/// \file
/// The statements of a nest as values of tiles.
#include "TileStatements.h"

#include "TileFactors.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "lacis/Dialect/Lacis/IR/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

Value RoleScalars::get(OpBuilder &b, Value number) {
  if (Value known = mapping.lookupOrNull(number))
    return known;
  Operation *op = number.getDefiningOp();
  if (!op || !replaced->isProperAncestor(op))
    return number;
  for (Value operand : op->getOperands())
    mapping.map(operand, get(b, operand));
  return b.clone(*op, mapping)->getResult(cast<OpResult>(number).getResultNumber());
}

Value RoleScalars::baseOf(OpBuilder &b, const TileVariance::Place &place, Location loc) {
  return place.base ? get(b, place.base) : arith::ConstantIndexOp::create(b, loc, 0).getResult();
}

LogicalResult lacis::refuseStatement(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>("name");
  return op->emitError("tiles: '") << (name ? name.getValue() : op->getName().getStringRef())
                                   << "' is no statement of a tile: that sums up products of rows and of columns, reduces "
                                      "rows, or is arithmetic on what others made for the same row";
}

//===- Boxes --------------------------------------------------------------===//

SmallVector<Value> lacis::placeOfBox(OpBuilder &b, Value tensor, ArrayRef<Value> indices) {
  SmallVector<Value> folded(indices.take_back(2));
  if (indices.size() == 2)
    return folded;
  Location loc = tensor.getLoc();
  Value matrix = indices[0];
  for (size_t axis = 1; axis + 2 < indices.size(); ++axis) {
    Value size = tensor::DimOp::create(b, loc, tensor, axis);
    matrix = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, matrix, size), indices[axis]);
  }
  folded.insert(folded.begin(), matrix);
  return folded;
}

Value TileStatements::acquire(OpBuilder &b, StagedBox &box) {
  if (!box.inRound)
    return box.held;
  return AcquireOp::create(b, box.read.getLoc(), TypeRange(Type(box.tile)), box.place).getTiles()[0];
}

void TileStatements::release(OpBuilder &b, StagedBox &box) {
  box.place = ReleaseOp::create(b, box.read.getLoc(), box.place.getType(), box.place);
}

//===- Statements ---------------------------------------------------------===//

LogicalResult TileStatements::emit(OpBuilder &b, LoopOp statement) {
  row = statement.getCoordinate();
  return emitBlock(b, *statement.getBlock());
}

LogicalResult TileStatements::emitBlock(OpBuilder &b, Block &block) {
  for (Operation &op : block.without_terminator()) {
    LogicalResult done = success();
    if (auto loop = dyn_cast<LoopOp>(op))
      done = loop.getNumResults() == 0 ? emitBlock(b, *loop.getBlock()) : reduce(b, loop);
    else if (auto read = dyn_cast<ReadOp>(op))
      done = this->read(read);
    else if (auto write = dyn_cast<WriteOp>(op))
      done = this->write(b, write);
    else if (!isPure(&op))
      done = refuseStatement(&op);
    if (failed(done))
      return failure();
  }
  return success();
}

/// What a tensor of the round holds where it is read; reads of operands wait for the product that takes them.
LogicalResult TileStatements::read(ReadOp op) {
  if (!op.getTensor().getDefiningOp<WorkspaceOp>())
    return success();
  if (!state(op.getTensor()) || op.getIndices().front() != row)
    return refuseStatement(op);
  known[op.getResult()] = state(op.getTensor());
  return success();
}

TileMaps TileStatements::maps() {
  return TileMaps(variance, scalars, known, row, TileMaps::Exponential::PowerOfTwo);
}

FailureOr<Value> TileStatements::tile(OpBuilder &b, Value value, Value column, Location loc) {
  return maps().make(b, value, column, loc);
}

LogicalResult TileStatements::write(OpBuilder &b, WriteOp op) {
  auto target = op.getTensor().getDefiningOp<WorkspaceOp>();
  if (!target)
    return maps().store(b, op);
  ValueRange at = op.getIndices();
  if (at.front() != row || (at.size() == 2 && !variance.isOfTile(at[1])))
    return refuseStatement(op);
  FailureOr<Value> made = tile(b, op.getValue(), at.size() == 2 ? at[1] : Value(), op.getLoc());
  if (succeeded(made))
    state(target) = *made;
  return made;
}

//===- Reductions ---------------------------------------------------------===//

LogicalResult TileStatements::reduce(OpBuilder &b, LoopOp loop) {
  Location loc = loop.getLoc();
  Operation *combiner = combinerOf(loop);
  if (!combiner || loop.getNumResults() != 1)
    return refuseStatement(loop);
  if (failed(emitBlock(b, *loop.getBlock())))
    return failure();
  Value carried = loop.getIterArgs()[0];
  Value value = combiner->getOperand(combiner->getOperand(0) == carried ? 1 : 0);
  SmallVector<Value> along(variance.of(loop.getResult(0)).getArrayRef());
  llvm::erase(along, row);
  if (along.size() > 1)
    return refuseStatement(loop);
  auto product = value.getDefiningOp<arith::MulFOp>();
  bool isSum = isa<arith::AddFOp>(combiner);
  if (isSum && product && !along.empty())
    return multiply(b, loop, along[0], product.getLhs(), product.getRhs());
  if (!along.empty() || !(isSum || isa<arith::MaximumFOp>(combiner)))
    return refuseStatement(loop);
  FailureOr<Value> whole = tile(b, value, loop.getCoordinate(), loc);
  FailureOr<Value> onto = failed(whole) ? whole : tile(b, loop.getInits()[0], Value(), loc);
  if (failed(onto))
    return failure();
  known[loop.getResult(0)] =
      ReduceRowsOp::create(b, loc, onto->getType(), b.getStringAttr(isSum ? "sum" : "max"), *whole, *onto);
  return success();
}

/// A factor along the rows and the sum: an operand's box, or an accumulator in the element type of products.
FailureOr<Value> TileStatements::factor(OpBuilder &b, Value value, Value column, Type element) {
  auto read = behindCast(value).getDefiningOp<ReadOp>();
  if (read && boxes.contains(read))
    return acquire(b, boxes[read]);
  FailureOr<Value> wide = tile(b, value, column, value.getLoc());
  if (failed(wide))
    return failure();
  return TileMaps::rounded(b, *wide, element);
}

/// sum over k of a[m, k] b[n, k], onto what the loop begins with.
LogicalResult TileStatements::multiply(OpBuilder &b, LoopOp loop, Value column, Value one, Value other) {
  Location loc = loop.getLoc();
  if (!variance.of(one).contains(row))
    std::swap(one, other);
  auto right = behindCast(other).getDefiningOp<ReadOp>();
  if (!variance.of(one).contains(row) || variance.of(other).contains(row) || !right || !boxes.contains(right))
    return refuseStatement(loop);
  StagedBox &box = boxes[right];
  Type element = box.tile.getElementType();
  FailureOr<Value> a = factor(b, one, loop.getCoordinate(), element);
  if (failed(a))
    return failure();
  Value onto, init = loop.getInits()[0];
  bool isZero = matchPattern(init, m_AnyZeroFloat());
  if (!isZero) {
    FailureOr<Value> begin = tile(b, init, column, loc);
    if (failed(begin))
      return failure();
    onto = *begin;
  }
  Value tileOfBox = acquire(b, box);
  auto type = AccType::get(b.getContext(), {variance.sizeOf(row), variance.sizeOf(column)}, b.getF32Type());
  Value sum = multiplyTiles(b, loc, type, {*a}, {tileOfBox, box.isTransposed}, onto);
  known[loop.getResult(0)] = CompleteOp::create(b, loc, TypeRange(Type(type)), sum).getResult(0);
  for (Value side : {one, other})
    if (auto read = behindCast(side).getDefiningOp<ReadOp>(); read && boxes.contains(read) && boxes[read].inRound)
      release(b, boxes[read]);
  return success();
}
