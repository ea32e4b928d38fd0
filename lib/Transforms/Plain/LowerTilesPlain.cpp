// SPDX-License-Identifier: Apache-2.0
/// \file
/// Roles take turns: a consumer calls the producer for each stage that it needs, and one consumer follows the other.
#include "TileLoops.h"

#include "../Roles/RoleBody.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"

namespace lacis {
#define GEN_PASS_DEF_LACISLOWERTILESPLAIN
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;
using namespace lacis::plain;

/// The one ring that the roles meet at.
static FailureOr<RingOp> findRing(RolesOp roles) {
  RingOp found;
  auto others = roles.walk([&](AcquireOp acquire) {
    RingOp ring = ringOf(acquire.getRing());
    if (found && found != ring)
      return WalkResult(acquire.emitError("tiles: in plain loops roles meet at one ring"));
    found = ring;
    return WalkResult::advance();
  });
  if (others.wasInterrupted())
    return failure();
  return found ? found : FailureOr<RingOp>(roles.emitError("tiles: the roles meet at no ring"));
}

static LogicalResult lowerRoles(func::FuncOp kernel, RolesOp roles) {
  FailureOr<RingOp> ring = findRing(roles);
  if (failed(ring))
    return failure();
  Location loc = roles.getLoc();
  OpBuilder entry(kernel.getBody());
  Value thread = arith::ConstantOp::create(entry, loc, entry.getI64IntegerAttr(0));
  TileLoops loops(kernel, thread, /*threads=*/1);
  SmallVector<Value> stage;
  for (TileType tile : ring->getType().getTiles())
    stage.push_back(loops.allocate(tile.getElementType(), tile.getCount() * tile.getRows() * tile.getColumns()));
  loops.placeRing(*ring, stage);
  if (failed(loops.lowerProducer(roles.getProducer())))
    return failure();
  FailureOr<Resumable> producer = makeResumable(kernel, roles.getProducer());
  if (failed(producer))
    return failure();
  Value frame = loops.allocate(entry.getI8Type(), producer->frameBytes);
  SmallVector<Value> operands = producer->operands;
  operands.push_back(frame);
  auto fill = [&](OpBuilder &b) { func::CallOp::create(b, loc, producer->function, operands); };
  if (failed(loops.lowerConsumer(roles.getConsumer(), fill, [](OpBuilder &) {})))
    return failure();
  OpBuilder b(roles);
  Block &body = roles.getConsumer().front();
  Type number = body.getArgument(0).getType();
  auto constant = [&](int64_t value) { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(number, value)); };
  auto turns = scf::ForOp::create(b, loc, constant(0), constant(roles.getConsumers()), constant(1));
  OpBuilder first = OpBuilder::atBlockBegin(turns.getBody());
  LLVM::StoreOp::create(first, loc, arith::ConstantOp::create(first, loc, first.getI32IntegerAttr(0)), frame);
  body.getArgument(0).replaceAllUsesWith(turns.getInductionVar());
  body.getTerminator()->erase();
  Block *target = turns.getBody();
  target->getOperations().splice(target->getTerminator()->getIterator(), body.getOperations());
  roles.erase();
  ring->erase();
  return success();
}

namespace {

struct LowerTilesPlain : lacis::impl::LacisLowerTilesPlainBase<LowerTilesPlain> {
  void runOnOperation() override {
    if (failed(lowerRolesOf(getOperation(), lowerRoles)))
      signalPassFailure();
  }
};

} // namespace
