// SPDX-License-Identifier: Apache-2.0
/// \file
/// Makes the roles of a kernel of tiles.
#include "TileRoles.h"

#include "lacis/Dialect/Lacis/IR/Product.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

/// Sums of parts that are kept, for each worker: as many as the work lists number at the most.
static constexpr int64_t kSlots = 2;

Value TileRoles::constant(int64_t value) {
  Value &known = constants[value];
  return known ? known : known = arith::ConstantIndexOp::create(b, loc, value).getResult();
}

Value TileRoles::add(OpBuilder &at, Value lhs, Value rhs) const { return arith::AddIOp::create(at, loc, lhs, rhs); }

Value TileRoles::multiply(OpBuilder &at, Value lhs, int64_t rhs) {
  return rhs == 1 ? lhs : arith::MulIOp::create(at, loc, lhs, constant(rhs)).getResult();
}

void TileRoles::load(OpBuilder &at, Value from, ValueRange indices, Value tile, Value place) const {
  bool isList = cast<TileType>(tile.getType()).isList();
  LoadTileOp::create(at, loc, from, indices, tile, isList ? place : Value(), ArrayAttr());
}

Value TileRoles::forEachOfList(OpBuilder &at, const LoopName &panel, const LoopName &item, Value list, Value number, Value ring,
                               Levels body) {
  ArrayRef<LevelAttr> levels = formatOf(list).getLevels();
  auto first =
      static_cast<unsigned>(llvm::count_if(levels, [](LevelAttr level) { return level.getExtent().coversDomain(); }));
  SmallVector<Value> found;
  std::function<Value(OpBuilder &, unsigned, Value, Value)> descend = [&](OpBuilder &in, unsigned level, Value parent,
                                                                          Value place) -> Value {
    LoopName name = level == first ? panel : item + std::to_string(level - first);
    auto loop = LevelLoopOp::create(in, loc, name, list, level, parent, ValueRange(place));
    OpBuilder inner = OpBuilder::atBlockEnd(loop.getBlock());
    found.push_back(loop.getCoordinates()[0]);
    Value next = level + 1 == levels.size() ? body(inner, found, loop.getIterArgs()[0])
                                            : descend(inner, level + 1, loop.getPosition(), loop.getIterArgs()[0]);
    YieldOp::create(inner, loc, next);
    return loop.getResult(0);
  };
  return descend(at, first, number, ring);
}

RankedTensorType TileRoles::listType(bool groups, StringRef levels) {
  std::string axes = groups ? "g, n, i" : "n, i";
  std::string text = std::string(") -> (") + (groups ? "g : dense, " : "") + "n : dense, i : compressed<unique=false>";
  for (char axis : levels) {
    axes += std::string(", ") + axis;
    text += std::string(", ") + axis + " : singleton";
  }
  Attribute format = parseAttribute("#lacis.format<(" + axes + text + ")>", function.getContext());
  SmallVector<int64_t> shape(levels.size() + (groups ? 3 : 2), ShapedType::kDynamic);
  return RankedTensorType::get(shape, b.getI1Type(), format);
}

CostAttr TileRoles::cost() {
  auto known = function->getAttrOfType<CostAttr>("lacis.cost");
  return known ? known : CostAttr::of(function.getContext(), "");
}

Value TileRoles::keepSums(Value workers, int64_t rows, int64_t columns, int64_t tileRows, int64_t tileColumns) {
  Attribute tiles = accumulatorTiles(function.getContext(), "n", "m", tileColumns, tileRows);
  Value across = arith::MulIOp::create(b, loc, workers, constant(kSlots * columns));
  SmallVector<int64_t> shape(2, ShapedType::kDynamic);
  return WorkspaceOp::create(b, loc, RankedTensorType::get(shape, b.getF32Type(), tiles),
                             ValueRange{across, constant(rows)});
}

Value TileRoles::slotPlace(OpBuilder &at, Value slot, int64_t all, Value consumer, int64_t each, int64_t own) {
  Value number = add(at, multiply(at, consumer, each), constant(own));
  return add(at, multiply(at, slot, all), number);
}

void TileRoles::addUpOwn(OpBuilder &at, const KeptSum &sum, Value number, AccType type, PlaceOf placeOf, SumBody body) {
  Value whose = arith::RemUIOp::create(at, loc, number, sum.parts);
  Value isOwn = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, whose, sum.part);
  OpBuilder own = scf::IfOp::create(at, loc, isOwn, /*withElseRegion=*/false).getThenBodyBuilder();
  auto loadOnto = [&](OpBuilder &from, Value part, Value onto) {
    return LoadAccOp::create(from, loc, type, kept, placeOf(from, add(from, sum.first, part)), onto).getAcc();
  };
  Value others = arith::SubIOp::create(own, loc, sum.parts, constant(1));
  auto loop = LoopOp::create(own, loc, "part", others, ValueRange(loadOnto(own, constant(0), Value())));
  OpBuilder next = OpBuilder::atBlockEnd(loop.getBlock());
  Value part = add(next, loop.getCoordinate(), constant(1));
  YieldOp::create(next, loc, loadOnto(next, part, loop.getIterArgs()[0]));
  body(own, loop.getResult(0));
}

void TileRoles::makeRoles(Value workers, int64_t consumers) {
  auto loop = LoopOp::create(b, loc, "n", workers);
  loop.setBind(ParallelUnit::BlockX);
  OpBuilder in = OpBuilder::atBlockEnd(loop.getBlock());
  Value ring = RingOp::create(in, loc, ringType);
  auto roles = RolesOp::create(in, loc, b.getI64IntegerAttr(consumers));
  YieldOp::create(in, loc, ValueRange());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop); // of constants
  OpBuilder producer = OpBuilder::atBlockEnd(&roles.getProducer().emplaceBlock());
  produce(producer, loop.getCoordinate(), ring);
  YieldOp::create(producer, loc, ValueRange());
  Block &block = roles.getConsumer().emplaceBlock();
  Value number = block.addArgument(b.getIndexType(), loc);
  OpBuilder consumer = OpBuilder::atBlockEnd(&block);
  consume(consumer, number, loop.getCoordinate(), ring);
  YieldOp::create(consumer, loc, ValueRange());
}

void TileRoles::form(Value workers, int64_t consumers) {
  makeRoles(workers, consumers);
  nest.erase();
  for (unsigned argument = 0; argument < function.getNumArguments(); ++argument)
    for (StringRef mark : {"lacis.regroup", "lacis.staged"})
      function.removeArgAttr(argument, mark);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (op.use_empty() && isPure(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      op.erase();
}
