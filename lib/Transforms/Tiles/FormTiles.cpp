// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns a product whose loops are marked into roles: one producer loads tiles into a ring, consumers multiply them.
///
/// for i: for b: for i1, b1: y = sum over j  -->  for (i, b) in the worker's list: producer: for j: load; consumers:
/// for j: multiply; store. Both roles walk the same execution layout.
#include "DistributeTiles.h"
#include "SampledForm.h"
#include "StatementRoles.h"
#include "TileForm.h"
#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Transforms/Passes.h"

namespace lacis {
#define GEN_PASS_DEF_LACISFORMTILES
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

/// How many rows the output has, or a tensor like it.
Value TileForm::rowsOf(Value tensor) {
  return tensor::DimOp::create(b, loc, tensor, constant(nest.product.outputRows()));
}

/// The indices along the rows, the columns and the sum. Which rows and which part of the sum a tile has is what lists
/// say of a panel; where its columns begin is what the nest says of their loop.
LogicalResult TileForm::readAxes() {
  Product &product = nest.product;
  SmallVector<Value> output = foldDigits(product.write.getIndices()), dense = foldDigits(product.readRight.getIndices());
  columnIndex = output[output.size() - (product.isRowsFirst ? 1 : 2)];
  rowIndex = output[output.size() - (product.isRowsFirst ? 2 : 1)];
  depthIndex = dense[dense.size() - (!product.isRightAlong ? 2 : 1)];
  LoopOp column = nest.columnLoops[0];
  SmallVector<LoopOp> depth;
  product.sum->walk([&](LoopOp loop) { depth.push_back(loop); });
  variance.addAxis(rowIndex, nest.rowLoops, nest.rows);
  variance.addAxis(depthIndex, depth, layout.step);
  variance.add(column);
  if (variance.placeOf(columnIndex))
    return success();
  return column.emitError("tiles: rounds of loop '")
         << column.getName() << "' are no neighbours along '" << product.columns
         << "'; tensorize the innermost loop over it";
}

/// The dense operand in shared memory.
TileType TileForm::denseTile() {
  SmallVector<int64_t> sides;
  for (Value index : ArrayRef(foldDigits(nest.product.readRight.getIndices())).take_back(2))
    sides.push_back(variance.sizeOf(variance.placeOf(index)->coordinate));
  return tileOfBox(getElementTypeOrSelf(nest.product.right), sides[0], sides[1]);
}

/// Where a tile of the dense axis begins; of a batch, in which matrix.
RoleScalars TileForm::scalarsOf(OpBuilder &at, Value tile) {
  RoleScalars scalars(nest.top);
  scalars.map(nest.items.getCoordinate(), tile);
  for (Value axis : foldDigits(nest.product.write.getIndices()))
    if (axis != rowIndex)
      (void)scalars.baseOf(at, *variance.placeOf(axis), loc);
  return scalars;
}

LogicalResult TileForm::prepare() {
  MLIRContext *context = function.getContext();
  Product &product = nest.product;
  std::optional<ReadOp> found = product.residual();
  if (!found)
    return product.write.emitError("tiles: what follows the sum reads more than vectors along the rows and columns of a tile");
  residual = *found;
  if (residual && layout.rows != layout.step)
    return product.write.emitError("tiles: a residual takes the place of a dense tile, ")
           << layout.step << " columns wide; tiles have " << layout.rows << " rows";
  if (failed(readAxes()))
    return failure();
  auto [tall, wide] = layout.shape();
  TileType stored = TileType::get(context, {layout.tilesPerStep(), tall, wide}, getElementTypeOrSelf(product.stored));
  ringType = RingType::get(context, nest.stages, {denseTile(), stored});
  accType = AccType::get(context, {nest.rows, nest.columns}, b.getF32Type());
  tiles = RoleScalars(nest.top).get(b, nest.items.getUpper());
  if (product.block().isMatrix)
    matrixRows = rowsOf(product.output);
  if (product.start)
    rowTiles = arith::CeilDivUIOp::create(b, loc, rowsOf(product.output), constant(nest.rows));
  if (residual)
    residualRows = rowsOf(residual.getTensor());
  return success();
}

//===- Producer -----------------------------------------------------------===//

/// Starts the loads of the stored tiles of one step.
void TileForm::loadStep(OpBuilder &at, Value step, Value list) {
  if (layout.isFull) {
    Value first = arith::MulIOp::create(at, loc, step, constant(layout.tilesPerStep()));
    for (int64_t n = 0; n < layout.tilesPerStep(); ++n)
      loadLinked(at, arith::AddIOp::create(at, loc, first, constant(n)), constant(n), list);
    return;
  }
  auto bounds = BoundsOp::create(at, loc, at.getIndexType(), at.getIndexType(), regrouped, 2, step);
  Value count = arith::SubIOp::create(at, loc, bounds.getHi(), bounds.getLo());
  if (!layout.isLinked) {
    LoadRunOp::create(at, loc, regrouped, bounds.getLo(), count, list);
    return;
  }
  auto loop = LoopOp::create(at, loc, nest.consumers.getLoopName() + "_tile", count);
  OpBuilder in = OpBuilder::atBlockEnd(loop.getBlock());
  Value position = arith::AddIOp::create(in, loc, bounds.getLo(), loop.getCoordinate());
  loadLinked(in, position, loop.getCoordinate(), list);
  YieldOp::create(in, loc, ValueRange());
}

/// A tile that lies where the values are: part of a stored block, numbered row by row within the block.
void TileForm::loadLinked(OpBuilder &in, Value position, Value place, Value list) {
  Value part = LocateOp::create(in, loc, in.getIndexType(), regrouped, 3, position, ValueRange());
  StoredBlock block = nest.product.block();
  auto [tall, wide] = layout.shape();
  int64_t height = block.transposed ? block.columns : block.rows, width = block.transposed ? block.rows : block.columns;
  int64_t across = width / wide, parts = height / tall * across;
  Value slot = part, row = zero, column = zero;
  if (parts != 1) {
    slot = arith::DivUIOp::create(in, loc, part, constant(parts));
    Value within = arith::RemUIOp::create(in, loc, part, constant(parts));
    row = arith::MulIOp::create(in, loc, arith::DivUIOp::create(in, loc, within, constant(across)),
                                constant(tall));
    column = arith::MulIOp::create(in, loc, arith::RemUIOp::create(in, loc, within, constant(across)), constant(wide));
  }
  loadTile(in, loc, nest.product.tensor, {slot, row, column}, list, place);
}

/// The tiles of a dense matrix, whose panels stand in its order; the last may lack rows.
void TileForm::loadMatrix(OpBuilder &in, Value panel, Value depth, Value list) {
  for (int64_t n = 0; n < layout.tilesPerStep(); ++n) {
    Value row = add(in, multiply(in, panel, layout.panel), constant(n * layout.rows));
    Value some = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::slt, row, matrixRows);
    OpBuilder then = scf::IfOp::create(in, loc, some, /*withElseRegion=*/false).getThenBodyBuilder();
    SmallVector<Value> from{zero, layout.transposed ? depth : row, layout.transposed ? row : depth};
    loadTile(then, loc, nest.product.tensor, from, list, constant(n));
  }
}

RoleScalars TileForm::roundOf(OpBuilder &at, const TileItem &item, Value coordinate) {
  RoleScalars scalars = item.scalars;
  scalars.map(depthIndex, arith::MulIOp::create(at, loc, coordinate, constant(layout.step)));
  return scalars;
}

/// The parts of the residual, each in the place of a dense tile; a panel may lack rows.
Value TileForm::loadResidual(OpBuilder &at, const TileItem &item, Value ring) {
  auto loop = LoopOp::create(at, loc, "part", constant(layout.height), ring);
  OpBuilder in = OpBuilder::atBlockEnd(loop.getBlock());
  Value place = add(in, multiply(in, item.panel, layout.height), loop.getCoordinate());
  Value group = OriginOp::create(in, loc, in.getIndexType(), regrouped, place);
  Value row = multiply(in, group, layout.rows);
  Value tile = acquire(in, loop.getIterArgs()[0])[0];
  Value some = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::slt, row, residualRows);
  OpBuilder then = scf::IfOp::create(in, loc, some, /*withElseRegion=*/false).getThenBodyBuilder();
  RoleScalars scalars = item.scalars;
  scalars.map(rowIndex, row);
  loadBox(then, residual, basesOf(then, residual, variance, scalars), tile);
  YieldOp::create(in, loc, release(in, loop.getIterArgs()[0]));
  return loop.getResult(0);
}

/// The dense tile of each round, and the stored tiles of its step.
Value TileForm::fillRounds(OpBuilder &at, const TileItem &item, Value ring) {
  Block *outer = at.getBlock();
  auto [position, coordinate, carried] = openRounds(at, item, ring);
  RoleScalars scalars = roundOf(at, item, coordinate);
  ValueRange tiles = acquire(at, carried[0]);
  ReadOp dense = nest.product.readRight;
  loadBox(at, dense, basesOf(at, dense, variance, scalars), tiles[0]);
  if (nest.product.block().isMatrix)
    loadMatrix(at, item.panel, scalars.get(at, depthIndex), tiles[1]);
  else
    loadStep(at, position, tiles[1]);
  return leaveLoops(at, outer, release(at, carried[0]))[0];
}

Value TileForm::fill(OpBuilder &at, const TileItem &item, Value ring) {
  if (!isSummingUp)
    ring = fillRounds(at, item, ring);
  if (!residual)
    return ring;
  auto loaded = [&](OpBuilder &in) { return loadResidual(in, item, ring); };
  auto nothing = [&](OpBuilder &) { return ring; };
  return isSummingUp ? whereWhole(at, item, nothing, loaded) : whereWhole(at, item, loaded, nothing);
}

//===- The pass -----------------------------------------------------------===//

/// Marks that only tiles make something of, in a function without any.
static LogicalResult refuseMarks(func::FuncOp function) {
  constexpr StringLiteral noTiles = ", and no loop is tensorized; tensorize the loops of a tile, or leave the step out";
  for (unsigned number = 0; number < function.getNumArguments(); ++number)
    if (function.getArgAttr(number, "lacis.regroup"))
      return function.emitError("regroup: only tiles walk another layout of ")
             << function.getArgAttrOfType<StringAttr>(number, "lacis.name") << noTiles;
  LogicalResult result = success();
  function.walk([&](LoopOp loop) {
    if (loop.getBalance())
      result = loop.emitError("balance: only tiles are handed out in lists, as those of loop '")
               << loop.getName() << "' would be" << noTiles;
    else if (loop.getBind() == ParallelUnit::Warpgroup)
      result = loop.emitError("bind: only tiles are multiplied by a 'warpgroup', which loop '")
               << loop.getName() << "' is bound to" << noTiles;
    return succeeded(result) ? WalkResult::advance() : WalkResult::interrupt();
  });
  return result;
}

static LogicalResult formOwnLevels(func::FuncOp function) {
  FailureOr<LoopOpInterface> round = distributeTiles(function);
  return failed(round) ? failure() : formStatementRoles(function, *round);
}

static LogicalResult formRoles(func::FuncOp function) {
  if (LevelLoopOp round = roundOfStatements(function))
    return formStatementRoles(function, round);
  if (Nest loops(function); !isTensorized(loops))
    return refuseMarks(function);
  if (walksOwnLevels(function))
    return formOwnLevels(function);
  FailureOr<TileNest> nest = readTileNest(function);
  if (failed(nest))
    return failure();
  return nest->product.isSampled() ? SampledForm(function, *nest).run() : TileForm(function, *nest).run();
}

namespace {

struct FormTiles : lacis::impl::LacisFormTilesBase<FormTiles> {
  void runOnOperation() override {
    if (failed(formRoles(getOperation())))
      signalPassFailure();
  }
};

} // namespace
