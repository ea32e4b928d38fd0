// SPDX-License-Identifier: Apache-2.0
/// \file
/// Makes the roles of a kernel of tiles.
#include "TileRoles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

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

void TileRoles::load(OpBuilder &at, Value from, ValueRange indices, Value tile, Value place) const {
  bool isList = cast<TileType>(tile.getType()).isList();
  LoadTileOp::create(at, loc, from, indices, tile, isList ? place : Value(), ArrayAttr());
}

Value TileRoles::forEachOfList(OpBuilder &at, StringRef panel, StringRef item, Value list, Value number, Value ring,
                               Levels body) {
  ArrayRef<LevelAttr> levels = formatOf(list).getLevels();
  auto first =
      static_cast<unsigned>(llvm::count_if(levels, [](LevelAttr level) { return level.getExtent().coversDomain(); }));
  SmallVector<Value> found;
  std::function<Value(OpBuilder &, unsigned, Value, Value)> descend = [&](OpBuilder &in, unsigned level, Value parent,
                                                                          Value place) -> Value {
    std::string name = level == first ? panel.str() : item.str() + std::to_string(level - first);
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

void TileRoles::makeRoles(Value workers, int64_t consumers) {
  auto loop = LoopOp::create(b, loc, "n", workers);
  loop.setBind(StringRef("block.x"));
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
