// SPDX-License-Identifier: Apache-2.0
/// \file
/// The statements of a nest as values of tiles.
#include "TileStatements.h"

#include "TileMaps.h"
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

LogicalResult lacis::refuseStatement(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>("name");
  return op->emitError("tiles: '") << (name ? name.getValue() : op->getName().getStringRef())
                                   << "' is no statement of a tile: that sums up products of rows and of columns, reduces "
                                      "rows, or is arithmetic on what others made for the same row";
}

//===- Boxes --------------------------------------------------------------===//

SmallVector<StagedBox *> lacis::placesOf(StagedBoxes &boxes, bool inRound) {
  SmallVector<StagedBox *> found;
  for (auto &[read, box] : boxes)
    if (box.inRound || !inRound)
      found.push_back(&box);
  return found;
}

void lacis::setPlaces(ArrayRef<StagedBox *> boxes, ValueRange places) {
  for (auto [box, place] : llvm::zip(boxes, places))
    box->place = place;
}

SmallVector<Value> lacis::valuesOf(ArrayRef<StagedBox *> boxes) {
  return llvm::map_to_vector(boxes, [](StagedBox *box) { return box->place; });
}

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

FailureOr<Value> TileStatements::tile(OpBuilder &b, Value value, Value column, Location loc, int64_t across) {
  return TileMaps(variance, scalars, known, row).make(b, value, column, loc, across);
}

LogicalResult TileStatements::write(OpBuilder &b, WriteOp op) {
  auto target = op.getTensor().getDefiningOp<WorkspaceOp>();
  if (!target)
    return store(b, op);
  if (TileProduct *product = postponed(target); product && op.getValue() == product->sum.getResult(0))
    return success();
  ValueRange at = op.getIndices();
  if (at.front() != row || (at.size() == 2 && !variance.isOfTile(at[1])))
    return refuseStatement(op);
  Value column = at.size() == 2 ? at[1] : Value(), sum = known.lookup(op.getValue());
  int64_t across = sum && !column ? cast<AccType>(sum.getType()).getColumns() : 1; // a sum may stand in parts
  FailureOr<Value> made = tile(b, op.getValue(), column, op.getLoc(), across);
  if (succeeded(made))
    state(target) = *made;
  return made;
}

/// Rows and columns go to the output, or a number for each row.
LogicalResult TileStatements::store(OpBuilder &b, WriteOp op) {
  Value value = op.getValue();
  if (auto rounded = value.getDefiningOp<arith::TruncFOp>())
    value = rounded.getIn(); // the store rounds
  SmallVector<Value> at;
  Value column;
  for (auto [number, index] : llvm::enumerate(op.getIndices())) {
    std::optional<TileVariance::Place> place = variance.placeOf(index);
    bool isRow = place && place->coordinate == row;
    if (!place || (place->coordinate && !isRow && (column || number + 1 != op.getIndices().size())))
      return refuseStatement(op);
    if (place->coordinate && !isRow)
      column = place->coordinate;
    at.push_back(place->base ? scalars.get(b, place->base) : arith::ConstantIndexOp::create(b, op.getLoc(), 0).getResult());
  }
  FailureOr<Value> acc = tile(b, value, column, op.getLoc());
  if (failed(acc))
    return failure();
  if (column) {
    auto made = StoreTileOp::create(b, op.getLoc(), *acc, op.getTensor(), placeOfBox(b, op.getTensor(), at), Value(), Value(),
                                    UnitAttr(), ArrayAttr(), TypeAttr());
    if (Value free = freeBox(made))
      made.getThroughMutable().assign(free);
  } else {
    StoreRowsOp::create(b, op.getLoc(), *acc, op.getTensor(), at, Value());
  }
  return success();
}

/// A held box as large as what is stored, once; or null.
Value TileStatements::freeBox(StoreTileOp store) {
  AccType type = store.getValue().getType();
  for (auto &[read, box] : boxes) {
    int64_t tiles = box.tile.isList() ? box.tile.getShape()[0] : 1;
    bool fits = box.held && type.getShape()[0] == box.tile.getRows() && type.getColumns() == tiles * box.tile.getColumns();
    auto isStored = [](Operation *user) { return isa<StoreTileOp>(user); };
    if (isLast && fits && cast<RankedTensorType>(store.getTarget().getType()).getElementType() == box.tile.getElementType() &&
        llvm::none_of(box.held.getUsers(), isStored))
      return box.held;
  }
  return {};
}

//===- Reductions ---------------------------------------------------------===//

AccType TileStatements::partsOf(AccType rows) {
  constexpr int64_t threads = 4; // that share a row of an accumulator
  return AccType::get(rows.getContext(), {rows.getShape()[0], threads}, rows.getElementType());
}

/// Does the state of the tensor that the sum goes to stand in parts?
static int64_t partsOfState(LoopOp sum, llvm::function_ref<Value(Value)> state) {
  for (Operation *user : sum.getResult(0).getUsers())
    if (auto write = dyn_cast<WriteOp>(user); write && state(write.getTensor()))
      return cast<AccType>(state(write.getTensor()).getType()).getColumns();
  return 1;
}

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
  bool isSum = isa<arith::AddFOp>(combiner);
  if (isSum && value.getDefiningOp<arith::MulFOp>() && !along.empty())
    return multiply(b, loop, along[0]);
  if (!along.empty() || !(isSum || isa<arith::MaximumFOp>(combiner)))
    return refuseStatement(loop);
  int64_t parts = isSum ? partsOfState(loop, [&](Value tensor) { return states.lookup(tensor); }) : 1;
  FailureOr<Value> whole = tile(b, value, loop.getCoordinate(), loc);
  FailureOr<Value> onto = failed(whole) ? whole : tile(b, loop.getInits()[0], Value(), loc, parts);
  if (failed(onto))
    return failure();
  known[loop.getResult(0)] =
      ReduceRowsOp::create(b, loc, onto->getType(), b.getStringAttr(isSum ? "sum" : "max"), *whole, *onto);
  return success();
}

//===- Products -----------------------------------------------------------===//

/// The factors that a sum adds up the products of, or nulls.
static std::pair<Value, Value> factorsOf(LoopOp loop) {
  auto sum = loop.getNumResults() == 1 ? dyn_cast_or_null<arith::AddFOp>(combinerOf(loop)) : arith::AddFOp();
  for (Value operand : sum ? ValueRange(sum->getOperands()) : ValueRange())
    if (auto product = operand.getDefiningOp<arith::MulFOp>())
      return {product.getLhs(), product.getRhs()};
  return {};
}

StagedBox *TileStatements::boxOf(Value factor) {
  auto read = factor ? behindCast(factor).getDefiningOp<ReadOp>() : ReadOp();
  return read && boxes.contains(read) ? &boxes[read] : nullptr;
}

bool TileStatements::multipliesMade(LoopOp loop) {
  auto [one, other] = factorsOf(loop);
  StagedBox *box = boxOf(one) ? boxOf(one) : boxOf(other);
  return box && box->inRound && !(boxOf(one) && boxOf(other));
}

bool TileStatements::multipliesBoxes(LoopOp loop) {
  auto [one, other] = factorsOf(loop);
  return boxOf(one) && boxOf(other) && (boxOf(one)->inRound || boxOf(other)->inRound);
}

/// sum over k of a[m, k] b[n, k], onto what the loop begins with. Its left side is a box, or an accumulator in the element
/// type of products.
FailureOr<TileProduct> TileStatements::prepare(OpBuilder &b, LoopOp loop, Value column) {
  Location loc = loop.getLoc();
  auto [one, other] = factorsOf(loop);
  if (!one || !variance.of(one).contains(row))
    std::swap(one, other);
  TileProduct product{loop};
  product.right = boxOf(other);
  if (!one || !variance.of(one).contains(row) || variance.of(other).contains(row) || !product.right)
    return refuseStatement(loop);
  product.leftBox = boxOf(one);
  if (!product.leftBox) {
    FailureOr<Value> wide = tile(b, one, loop.getCoordinate(), one.getLoc());
    if (failed(wide))
      return failure();
    product.left = TileMaps::rounded(b, *wide, product.right->tile.getElementType());
  }
  Value init = loop.getInits()[0];
  if (!matchPattern(init, m_AnyZeroFloat())) {
    FailureOr<Value> from = tile(b, init, column, loc);
    if (failed(from))
      return failure();
    product.onto = *from;
  }
  product.type = AccType::get(b.getContext(), {variance.sizeOf(row), variance.sizeOf(column)}, b.getF32Type());
  return product;
}

void TileStatements::begin(OpBuilder &b, TileProduct &product) {
  Location loc = product.sum.getLoc();
  StagedBox &box = *product.right;
  Value left = product.leftBox ? acquire(b, *product.leftBox) : product.left, tileOfBox = acquire(b, box);
  Value place = box.isTransposed && box.tile.isList() ? arith::ConstantIndexOp::create(b, loc, 0).getResult() : Value();
  product.begun = MmaOp::create(b, loc, product.type, left, Value(), /*aTransposed=*/UnitAttr(), Value(), tileOfBox, place,
                                box.isTransposed ? b.getUnitAttr() : UnitAttr(), product.onto, /*tf32=*/UnitAttr());
}

Value TileStatements::end(OpBuilder &b, TileProduct &product) {
  Value sum = CompleteOp::create(b, product.sum.getLoc(), TypeRange(Type(product.type)), product.begun).getResult(0);
  product.begun = {};
  for (StagedBox *box : {product.leftBox, product.right})
    if (box && box->inRound)
      release(b, *box);
  return sum;
}

LogicalResult TileStatements::multiply(OpBuilder &b, LoopOp loop, Value column) {
  FailureOr<TileProduct> product = prepare(b, loop, column);
  if (failed(product))
    return failure();
  for (auto &[tensor, postponed] : later)
    if (postponed.sum == loop) {
      postponed = *product;
      return success();
    }
  begin(b, *product);
  beginPostponed(b);
  known[loop.getResult(0)] = end(b, *product);
  return success();
}

bool TileStatements::isPostponed(LoopOp statement) {
  return llvm::any_of(later, [&](auto &each) { return statement->isAncestor(each.second.sum); });
}

/// Those of the round before, of which operands are known.
void TileStatements::beginPostponed(OpBuilder &b) {
  for (auto &[tensor, product] : later)
    if (product.left && !product.begun)
      begin(b, product);
}

void TileStatements::finishPostponed(OpBuilder &b) {
  beginPostponed(b);
  for (auto &[tensor, product] : later)
    if (product.left) {
      states[tensor] = end(b, product);
      product.left = product.onto = {};
    }
}
