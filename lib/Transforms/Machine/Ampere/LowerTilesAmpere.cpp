// SPDX-License-Identifier: Apache-2.0
/// \file
/// Roles become warps: four for each consumer, and four that copy.
#include "RoleLowering.h"

namespace lacis {
#define GEN_PASS_DEF_LACISLOWERTILESAMPERE
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

/// What the other lowerings have, and this one has not.
static LogicalResult checkRoles(RolesOp roles) {
  auto isOther = [](Type type) {
    auto acc = dyn_cast<AccType>(type);
    return acc && (acc.getColumns() == AccType::kRowParts || !acc.getElementType().isF32());
  };
  auto found = roles->walk([&](Operation *op) {
    auto group = dyn_cast<RolesOp>(op);
    auto map = dyn_cast<MapOp>(op);
    auto store = dyn_cast<StoreTileOp>(op);
    if (llvm::none_of(op->getResultTypes(), isOther) && !(group && group.getGroups() > 1) &&
        !(map && !map.getPlaces().empty()) && !(store && store.getThrough()))
      return WalkResult::advance();
    return WalkResult(op->emitError("tiles: groups of roles, four parts of a row, accumulators of halves, maps at "
                                    "coordinates and stores through tiles are lowered for sm_90a and to plain loops alone"));
  });
  return failure(found.wasInterrupted());
}

namespace {

class KernelLowering {
public:
  KernelLowering(func::FuncOp function, RolesOp roles) : function(function), roles(roles) {}

  LogicalResult run(int64_t limit) {
    if (failed(checkRoles(roles)))
      return failure();
    FailureOr<SharedMemory> planned = SharedMemory::plan(roles, limit);
    if (failed(planned))
      return failure();
    memory = *planned;
    OpBuilder b(roles);
    Location loc = roles.getLoc();
    Warpgroup group = enter(b);
    int64_t consumers = kGroupThreads * roles.getConsumers();
    Value isProducer = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, group.consumer,
                                             Instructions(b, loc).constant(roles.getConsumers()));
    auto split = scf::IfOp::create(b, loc, isProducer, /*withElseRegion=*/true);
    OpBuilder producer = split.getThenBodyBuilder(), consumer = split.getElseBodyBuilder();
    if (failed(lowerProducer(producer, group)) || failed(lowerConsumer(consumer, group)))
      return failure();
    finishRoles(function, roles, consumers + kCopyThreads, memory.bytes);
    return success();
  }

private:
  Warpgroup enter(OpBuilder &b);
  LogicalResult lowerProducer(OpBuilder &b, Warpgroup group);
  LogicalResult lowerConsumer(OpBuilder &b, Warpgroup group);
  bool needsWholeRows();

  func::FuncOp function;
  RolesOp roles;
  SharedMemory memory;
  Value thread;
};

} // namespace

/// Who the thread is; one thread prepares the barriers, and all wait for it.
Warpgroup KernelLowering::enter(OpBuilder &b) {
  Location loc = roles.getLoc();
  Instructions i(b, loc);
  Warpgroup group;
  group.shared = sharedMemory(b, function->getParentOfType<ModuleOp>(), loc);
  thread = i.threadId();
  group.consumer = i.uniform(arith::ShRUIOp::create(b, loc, thread, i.constant(7)));
  Value warp = i.uniform(arith::ShRUIOp::create(b, loc, thread, i.constant(5)));
  group.warp = arith::AndIOp::create(b, loc, warp, i.constant(kWarps - 1));
  group.lane = arith::AndIOp::create(b, loc, thread, i.constant(kLanes - 1));
  auto guard = scf::IfOp::create(b, loc, i.equal(thread, 0), /*withElseRegion=*/false);
  OpBuilder then = guard.getThenBodyBuilder();
  Instructions first(then, loc);
  for (auto &[ring, place] : memory.rings)
    for (int64_t stage = 0; stage < cast<RingOp>(ring).getType().getStages(); ++stage) {
      first.initBarrier(first.add(group.shared, place.full + 8 * stage), kCopyThreads);
      first.initBarrier(first.add(group.shared, place.empty + 8 * stage), kGroupThreads * roles.getConsumers());
    }
  i.synchronize();
  return group;
}

LogicalResult KernelLowering::lowerProducer(OpBuilder &b, Warpgroup group) {
  Instructions i(b, roles.getLoc());
  group.lane = i.add(thread, -kGroupThreads * static_cast<int64_t>(roles.getConsumers()));
  RoleLowering lowering(memory, group, /*isProducer=*/true, /*byRows=*/false, function);
  if (failed(lowering.lower(b, roles.getProducer().front())))
    return failure();
  i.waitCopies(); // a thread stays until its copies are there
  return success();
}

/// Sums of rows, and parts of columns, are one warp's business.
bool KernelLowering::needsWholeRows() {
  return roles
      .walk([](Operation *op) {
        return isa<ReduceRowsOp, ColumnsOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult KernelLowering::lowerConsumer(OpBuilder &b, Warpgroup group) {
  RoleLowering lowering(memory, group, /*isProducer=*/false, needsWholeRows(), function);
  lowering.map(roles.getConsumer().getArgument(0), group.consumer);
  return lowering.lower(b, roles.getConsumer().front());
}

namespace {

struct LowerTilesAmpere : lacis::impl::LacisLowerTilesAmpereBase<LowerTilesAmpere> {
  using LacisLowerTilesAmpereBase::LacisLowerTilesAmpereBase;

  void runOnOperation() override {
    auto lower = [&](func::FuncOp function, RolesOp roles) { return KernelLowering(function, roles).run(shared); };
    if (failed(lowerRolesOf(getOperation(), lower)))
      signalPassFailure();
  }
};

} // namespace
