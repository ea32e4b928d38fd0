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
