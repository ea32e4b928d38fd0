// SPDX-License-Identifier: Apache-2.0
/// \file
/// Makes the roles of a kernel of tiles: what they walk, their loops over items and rounds, and the sums of parts.
///
/// Items that do not come out even for all workers are cut: workers sum up parts of them and keep these in a workspace;
/// the nest behind adds them up, in their order, and finishes the items.
#include "TileRoles.h"

#include "WorkLists.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lacis;

Value TileRoles::constant(int64_t value) {
  Value &known = constants[value];
  return known ? known : known = arith::ConstantIndexOp::create(b, loc, value).getResult();
}

Value TileRoles::add(OpBuilder &at, Value lhs, Value rhs) const { return arith::AddIOp::create(at, loc, lhs, rhs); }

Value TileRoles::multiply(OpBuilder &at, Value lhs, int64_t rhs) {
  return rhs == 1 ? lhs : arith::MulIOp::create(at, loc, lhs, constant(rhs)).getResult();
}

//===- Rounds -------------------------------------------------------------===//

ValueRange TileRoles::acquire(OpBuilder &at, Value ring) {
  return AcquireOp::create(at, loc, TypeRange(SmallVector<Type>(ringType.getTiles())), ring).getTiles();
}

Value TileRoles::release(OpBuilder &at, Value ring) { return ReleaseOp::create(at, loc, ringType, ring); }

ValueRange TileRoles::complete(OpBuilder &at, ValueRange summed) {
  return CompleteOp::create(at, loc, summed.getTypes(), summed).getResults();
}

ValueRange TileRoles::leaveLoops(OpBuilder &at, Block *outer, ValueRange carried) {
  while (at.getBlock() != outer) {
    Operation *loop = at.getBlock()->getParentOp();
    YieldOp::create(at, loc, carried);
    at.setInsertionPointAfter(loop);
    carried = loop->getResults();
  }
  return carried;
}

//===- Work lists ---------------------------------------------------------===//

SmallVector<Value> TileRoles::openList(OpBuilder &at, const LoopName &panel, const LoopName &item, Value number,
                                       Value &ring) {
  unsigned first = itemsOf(lists);
  SmallVector<Value> found;
  for (unsigned level = first; level < formatOf(lists).getLevels().size(); ++level) {
    LoopName name = level == first ? panel : item + std::to_string(level - first);
    auto loop = LevelLoopOp::create(at, loc, name, lists, level, number, ValueRange(ring));
    at = OpBuilder::atBlockEnd(loop.getBlock());
    found.push_back(loop.getCoordinates()[0]);
    number = loop.getPosition(), ring = loop.getIterArgs()[0];
  }
  return found;
}

//===- Sums of parts ------------------------------------------------------===//

Value TileRoles::whereWhole(OpBuilder &at, const TileItem &item, Branch whole, Branch otherwise) {
  if (!item.slot)
    return whole(at);
  Value is = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, item.slot, zero);
  auto guard = scf::IfOp::create(at, loc, TypeRange(Type(ringType)), is, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), other = OpBuilder::atBlockEnd(guard.elseBlock());
  scf::YieldOp::create(then, loc, whole(then));
  scf::YieldOp::create(other, loc, otherwise(other));
  return guard.getResult(0);
}

Value TileRoles::slotPlace(OpBuilder &at, Value slot, int64_t all, Value consumer, int64_t each, int64_t own) {
  Value number = add(at, multiply(at, consumer, each), constant(own));
  return add(at, multiply(at, slot, all), number);
}

void TileRoles::addUpOwn(OpBuilder &at, const TileItem &item, Value first, Value number, AccType type, PlaceOf placeOf,
                         SumBody body) {
  Value whose = arith::RemUIOp::create(at, loc, number, item.parts);
  Value isOwn = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, whose, item.part);
  OpBuilder own = scf::IfOp::create(at, loc, isOwn, /*withElseRegion=*/false).getThenBodyBuilder();
  auto loadOnto = [&](OpBuilder &from, Value part, Value onto) {
    return LoadAccOp::create(from, loc, type, kept, placeOf(from, add(from, first, part)), onto).getAcc();
  };
  Value others = arith::SubIOp::create(own, loc, item.parts, constant(1));
  auto loop = LoopOp::create(own, loc, "part", others, ValueRange(loadOnto(own, constant(0), Value())));
  OpBuilder next = OpBuilder::atBlockEnd(loop.getBlock());
  Value part = add(next, loop.getCoordinate(), constant(1));
  YieldOp::create(next, loc, loadOnto(next, part, loop.getIterArgs()[0]));
  body(own, loop.getResult(0));
}

//===- Roles --------------------------------------------------------------===//

/// Roles in a nest of their own.
void TileRoles::makeRoles() {
  auto loop = LoopOp::create(b, loc, "n", workers);
  loop.setBind(ParallelUnit::BlockX);
  OpBuilder in = OpBuilder::atBlockEnd(loop.getBlock());
  Value ring = RingOp::create(in, loc, ringType);
  auto roles = RolesOp::create(in, loc, b.getI64IntegerAttr(nest.numConsumers()));
  YieldOp::create(in, loc, ValueRange());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop); // of constants
  OpBuilder producer = OpBuilder::atBlockEnd(&roles.getProducer().emplaceBlock());
  if (!isSummingUp) {
    Value place = ring;
    Block *outer = producer.getBlock();
    TileItem item = openItems(producer, loop.getCoordinate(), place);
    leaveLoops(producer, outer, fill(producer, item, place));
  }
  YieldOp::create(producer, loc, ValueRange());
  Block &block = roles.getConsumer().emplaceBlock();
  Value number = block.addArgument(b.getIndexType(), loc);
  OpBuilder consumer = OpBuilder::atBlockEnd(&block);
  TileItem item = openItems(consumer, loop.getCoordinate(), ring);
  Value left = isSummingUp ? addUp(consumer, number, item, ring) : sum(consumer, number, item, ring);
  leaveLoops(consumer, &block, left);
  YieldOp::create(consumer, loc, ValueRange());
}

LogicalResult TileRoles::run() {
  zero = constant(0);
  if (failed(prepare()))
    return failure();
  auto attribute = LayoutAttr::get(function.getContext(), layout.format, layout.capacity, 0);
  regrouped = RegroupOp::create(b, loc, nest.product.stored, attribute);
  lists = makeLists(b, nest, regrouped);
  workers = tensor::DimOp::create(b, loc, lists, constant(workersOf(lists)));
  if (nest.isCut()) {
    kept = makeKept(b, nest, workers, {layout.step, nest.columns, nest.rows * nest.numConsumers()});
    makeRoles();
    isSummingUp = true;
  }
  makeRoles();
  eraseNest(nest);
  return result;
}
