// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns a product whose loops are marked into roles: one producer loads tiles into a ring, consumers multiply them.
///
/// for i: for b: for i1, b1: y = sum over j  -->  for (i, b) in the worker's list: producer: for j: load; consumers:
/// for j: multiply; store. Both roles walk the same execution layout.
#include "SampledTiles.h"
#include "TileForm.h"
#include "lacis/Transforms/Passes.h"

#include "mlir/AsmParser/AsmParser.h"

namespace lacis {
#define GEN_PASS_DEF_LACISFORMTILES
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

/// The structures that the roles walk, and how many tiles the dense axis has.
void TileForm::prepare() {
  MLIRContext *context = function.getContext();
  Product &product = nest.product;
  auto type = cast<RankedTensorType>(product.stored.getType());
  Type element = type.getElementType();
  ringType = RingType::get(context, nest.stages,
                           {TileType::get(context, {nest.columns, layout.step}, element),
                            TileType::get(context, {layout.tilesPerStep(), layout.shape().first, layout.shape().second},
                                          element)});
  accType = AccType::get(context, {nest.rows, nest.columns}, b.getF32Type());
  zero = constant(0);
  Value extent = tensor::DimOp::create(b, loc, product.dense, zero);
  tiles = arith::CeilDivUIOp::create(b, loc, extent, constant(nest.columns));
  if (product.block().isMatrix)
    matrixRows = tensor::DimOp::create(b, loc, product.output, constant(1));
  if (product.start)
    rowTiles = arith::CeilDivUIOp::create(b, loc, tensor::DimOp::create(b, loc, product.output, constant(1)),
                                          constant(nest.rows));
  if (after.residual)
    residualRows = tensor::DimOp::create(b, loc, after.residual.getTensor(), constant(1));
  auto capacity = layout.capacity ? b.getI64IntegerAttr(*layout.capacity) : IntegerAttr();
  auto regroupedType = RankedTensorType::get(type.getShape(), element, layout.format);
  regrouped = RegroupOp::create(b, loc, regroupedType, product.tensor, capacity);
  auto format = parseAttribute("#lacis.format<(g, n, i, b) -> (g : dense, n : dense, i : compressed<unique=false>, "
                               "b : singleton)>",
                               context);
  SmallVector<int64_t> shape(4, ShapedType::kDynamic);
  lists = BalanceOp::create(b, loc, RankedTensorType::get(shape, b.getI1Type(), format), regrouped, Value(),
                            b.getI64IntegerAttr(nest.columns), b.getI64IntegerAttr(nest.raster),
                            b.getI64IntegerAttr(nest.groups), /*within=*/IntegerAttr());
  workers = tensor::DimOp::create(b, loc, lists, constant(1));
}

/// The worker's list: groups of neighbouring tiles of the dense axis, in each group its pairs of panel and tile.
void TileForm::forEachItem(OpBuilder at, Value worker, Value ring, Body body) {
  std::string panels = nest.panels.getName().str(), columns = nest.tiles.getName().str();
  Value raster = constant(nest.raster), one = constant(1);
  Value count = arith::CeilDivUIOp::create(at, loc, tiles, raster);
  auto groups = LoopOp::create(at, loc, columns + "0", count, ring);
  OpBuilder in = OpBuilder::atBlockEnd(groups.getBlock());
  Value first = arith::MulIOp::create(in, loc, groups.getCoordinate(), raster);
  Value left = arith::SubIOp::create(in, loc, tiles, first);
  Value width = arith::MinUIOp::create(in, loc, left, raster);
  Value turn = arith::RemUIOp::create(in, loc, groups.getCoordinate(), constant(nest.groups));
  Value list = arith::AddIOp::create(in, loc, arith::MulIOp::create(in, loc, turn, raster),
                                     arith::SubIOp::create(in, loc, width, one));
  Value own = arith::AddIOp::create(in, loc, arith::MulIOp::create(in, loc, list, workers), worker);
  auto rows = LevelLoopOp::create(in, loc, panels, lists, 2, own, ValueRange(groups.getIterArgs()[0]));
  OpBuilder inRows = OpBuilder::atBlockEnd(rows.getBlock());
  auto items = LevelLoopOp::create(inRows, loc, columns + "1", lists, 3, rows.getPosition(),
                                   ValueRange(rows.getIterArgs()[0]));
  OpBuilder inItems = OpBuilder::atBlockEnd(items.getBlock());
  Value tile = arith::AddIOp::create(inItems, loc, first, items.getCoordinates()[0]);
  Value column = arith::MulIOp::create(inItems, loc, tile, constant(nest.columns));
  Value next = body(inItems, rows.getCoordinates()[0], column, items.getIterArgs()[0]);
  YieldOp::create(inItems, loc, next);
  YieldOp::create(inRows, loc, items.getResults());
  YieldOp::create(in, loc, rows.getResults());
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
  auto loop = LoopOp::create(at, loc, (nest.consumers.getName() + "_tile").str(), count);
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
  int64_t height = block.transposed ? block.depth : block.rows, width = block.transposed ? block.rows : block.depth;
  int64_t across = width / wide, parts = height / tall * across;
  Value slot = part, row = zero, column = zero;
  if (parts != 1) {
    slot = arith::DivUIOp::create(in, loc, part, constant(parts));
    Value within = arith::RemUIOp::create(in, loc, part, constant(parts));
    row = arith::MulIOp::create(in, loc, arith::DivUIOp::create(in, loc, within, constant(across)),
                                constant(tall));
    column = arith::MulIOp::create(in, loc, arith::RemUIOp::create(in, loc, within, constant(across)), constant(wide));
  }
  load(in, nest.product.tensor, {slot, row, column}, list, place);
}

/// The tiles of a dense matrix, whose panels stand in its order; the last may lack rows.
void TileForm::loadMatrix(OpBuilder &in, Value panel, Value depth, Value list) {
  for (int64_t n = 0; n < layout.tilesPerStep(); ++n) {
    Value row = add(in, multiply(in, panel, layout.panel), constant(n * layout.rows));
    Value some = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::slt, row, matrixRows);
    OpBuilder then = scf::IfOp::create(in, loc, some, /*withElseRegion=*/false).getThenBodyBuilder();
    load(then, nest.product.tensor, {zero, layout.transposed ? depth : row, layout.transposed ? row : depth}, list,
         constant(n));
  }
}

/// One round: a free place of the ring is filled.
void TileForm::fill(OpBuilder &at, Value panel, Value column, LevelLoopOp steps) {
  OpBuilder in = OpBuilder::atBlockEnd(steps.getBlock());
  Value depth = arith::MulIOp::create(in, loc, steps.getCoordinates()[0], constant(layout.step));
  auto tiles = AcquireOp::create(in, loc, TypeRange(SmallVector<Type>(ringType.getTiles())), steps.getIterArgs()[0]);
  load(in, nest.product.dense, {column, depth}, tiles.getTiles()[0], Value());
  if (nest.product.block().isMatrix)
    loadMatrix(in, panel, depth, tiles.getTiles()[1]);
  else
    loadStep(in, steps.getPosition(), tiles.getTiles()[1]);
  Value next = ReleaseOp::create(in, loc, ringType, steps.getIterArgs()[0]);
  YieldOp::create(in, loc, next);
}

/// The parts of the residual, each in the place of a dense tile; a panel may lack rows.
Value TileForm::loadResidual(OpBuilder &at, Value panel, Value column, Value ring) {
  auto loop = LoopOp::create(at, loc, "part", constant(layout.height), ring);
  OpBuilder in = OpBuilder::atBlockEnd(loop.getBlock());
  Value place = add(in, multiply(in, panel, layout.height), loop.getCoordinate());
  Value group = OriginOp::create(in, loc, in.getIndexType(), regrouped, place);
  Value row = multiply(in, group, layout.rows);
  auto tiles = AcquireOp::create(in, loc, TypeRange(SmallVector<Type>(ringType.getTiles())), loop.getIterArgs()[0]);
  Value some = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::slt, row, residualRows);
  OpBuilder then = scf::IfOp::create(in, loc, some, /*withElseRegion=*/false).getThenBodyBuilder();
  load(then, after.residual.getTensor(), {column, row}, tiles.getTiles()[0], Value());
  YieldOp::create(in, loc, ReleaseOp::create(in, loc, ringType, loop.getIterArgs()[0]).getNext());
  return loop.getResult(0);
}

//===- Roles --------------------------------------------------------------===//

LogicalResult TileForm::run() {
  std::optional<Finish> found = nest.product.finish();
  if (!found)
    return nest.product.write.emitError("tiles: what follows the sum reads more than vectors along the rows of a tile");
  after = *found;
  if (after.residual && layout.rows != layout.step)
    return nest.product.write.emitError("tiles: a residual takes the place of a dense tile, ")
           << layout.step << " columns wide; tiles have " << layout.rows << " rows";
  prepare();
  form(workers, nest.numConsumers());
  return success();
}

void TileForm::produce(OpBuilder &producer, Value worker, Value ring) {
  forEachItem(producer, worker, ring, [&](OpBuilder &at, Value panel, Value column, Value place) {
    auto steps = LevelLoopOp::create(at, loc, nest.product.walkName(), regrouped, 1, panel, place);
    fill(at, panel, column, steps);
    return after.residual ? loadResidual(at, panel, column, steps.getResult(0)) : steps.getResult(0);
  });
}

void TileForm::consume(OpBuilder &role, Value consumer, Value worker, Value ring) {
  forEachItem(role, worker, ring, [&](OpBuilder &at, Value panel, Value column, Value place) {
    return sum(at, consumer, panel, column, place);
  });
}

namespace {

struct FormTiles : lacis::impl::LacisFormTilesBase<FormTiles> {
  void runOnOperation() override {
    if (!isTensorized(getOperation()))
      return;
    if (isSampledNest(getOperation())) {
      if (failed(formSampledTiles(getOperation())))
        signalPassFailure();
      return;
    }
    FailureOr<TileNest> nest = readTileNest(getOperation());
    if (failed(nest) || failed(TileForm(getOperation(), *nest).run()))
      signalPassFailure();
  }
};

} // namespace
