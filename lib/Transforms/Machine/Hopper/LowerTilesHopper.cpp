// SPDX-License-Identifier: Apache-2.0
/// \file
/// Roles become warpgroups: the first loads, each of the others is a consumer.
#include "RoleLowering.h"

namespace lacis {
#define GEN_PASS_DEF_LACISLOWERTILESHOPPER
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;
using namespace lacis::hopper;

namespace {

/// Registers a thread: what the block starts with is shared out anew between producer and consumers.
struct Registers {
  int64_t producer, consumer;

  /// `isFull`: consumers need all that a producer can do without. So many blocks share a processor's.
  Registers(int64_t consumers, bool isFull, int64_t blocks) {
    constexpr int64_t most = 240;
    int64_t total = 65536 / blocks, least = isFull ? 24 : 32;
    int64_t groups = consumers + 1;
    int64_t start = std::min<int64_t>(total / (groups * kGroupThreads), 255) / 8 * 8;
    consumer = std::min(most, (start * groups - least) / consumers / 8 * 8);
    producer = std::min({start, most, start * groups - consumer * consumers});
  }
};

class KernelLowering {
public:
  KernelLowering(func::FuncOp function, RolesOp roles)
      : function(function), module(function->getParentOfType<ModuleOp>()), roles(roles), maps(module, function),
        awaited(roles) {}

  LogicalResult run() {
    FailureOr<SharedMemory> planned = SharedMemory::plan(roles);
    if (failed(planned))
      return failure();
    memory = *planned;
    if (failed(checkRings()))
      return failure();
    OpBuilder b(roles);
    Warpgroup group = enter(b);
    int64_t blocks = blocksPerProcessor();
    Registers registers(roles.getGroups() * roles.getConsumers(), memory.isFull, blocks);
    auto split = scf::IfOp::create(b, roles.getLoc(), Instructions(b, roles.getLoc()).equal(number, 0),
                                   /*withElseRegion=*/true);
    OpBuilder producer = split.getThenBodyBuilder(), consumer = split.getElseBodyBuilder();
    if (failed(lowerProducer(producer, group, registers)) || failed(lowerConsumer(consumer, group, registers)))
      return failure();
    finishRoles(function, roles, kGroupThreads * (roles.getGroups() * roles.getConsumers() + 1), memory.bytes, blocks);
    return success();
  }

private:
  LogicalResult checkRings();
  int64_t blocksPerProcessor();
  Warpgroup enter(OpBuilder &b);
  LogicalResult lowerProducer(OpBuilder &b, Warpgroup group, Registers registers);
  LogicalResult lowerConsumer(OpBuilder &b, Warpgroup group, Registers registers);
  void initBarriers(OpBuilder &b, Value shared);

  func::FuncOp function;
  ModuleOp module;
  RolesOp roles;
  TensorMaps maps;
  Awaited awaited;
  SharedMemory memory;
  Value thread, number; // of the thread in the block, of its warpgroup
};

} // namespace

/// A stage is given back when the next one is multiplied, unless products are complete before that.
LogicalResult KernelLowering::checkRings() {
  for (Operation *op : llvm::make_first_range(memory.rings))
    if (auto ring = cast<RingOp>(op); ring.getType().getStages() == 1 && !awaited.contains(ring))
      return ring.emitError("tiles: a ring of one stage is read by products that are complete before it is released; use two "
                            "stages");
  return success();
}

/// Registers that the accumulators of a round take: those of products, and what is rounded for products.
static int64_t registersOfSums(RolesOp roles) {
  llvm::DenseMap<Block *, int64_t> sums;
  int64_t most = 0;
  roles.getConsumer().walk([&](Operation *op) {
    auto type = isa<MmaOp, MapOp>(op) ? cast<AccType>(op->getResult(0).getType()) : AccType();
    if (type && (isa<MmaOp>(op) || !type.getElementType().isF32()))
      most = std::max(most, sums[op->getBlock()] += type.getColumns() * type.getElementType().getIntOrFloatBitWidth() / 64);
  });
  return most;
}

/// Blocks of one consumer share a processor, so that one computes while another begins, ends or waits: as many as shared
/// memory and registers have room for.
int64_t KernelLowering::blocksPerProcessor() {
  constexpr int64_t bytes = 228 << 10, own = 1 << 10; // of shared memory, of which each block takes some for itself
  constexpr int64_t others = 48;                      // registers for addresses, places and what a row has
  if (roles.getGroups() * roles.getConsumers() != 1)
    return 1;
  // A fourth leaves a consumer 96 registers, fewer than sums of 64 columns and scores take; one gains 16 beside two.
  int64_t blocks = Registers(1, memory.isFull, 3).consumer < registersOfSums(roles) + others ? 2 : 3;
  while (blocks > 1 && blocks * (memory.bytes + own) > bytes)
    --blocks;
  return blocks;
}

/// Who the thread is; one thread prepares the barriers, and all wait for it.
Warpgroup KernelLowering::enter(OpBuilder &b) {
  Location loc = roles.getLoc();
  Instructions i(b, loc);
  Warpgroup group;
  group.shared = sharedMemory(b, module, loc);
  thread = i.threadId();
  number = i.uniform(arith::ShRUIOp::create(b, loc, thread, i.constant(7)));
  Value warp = i.uniform(arith::ShRUIOp::create(b, loc, thread, i.constant(5)));
  group.warp = arith::AndIOp::create(b, loc, warp, i.constant(3));
  group.lane = arith::AndIOp::create(b, loc, thread, i.constant(31));
  group.consumer = i.add(number, -1);
  group.stages = group.barriers = group.shared;
  auto guard = scf::IfOp::create(b, loc, i.equal(thread, 0), /*withElseRegion=*/false);
  OpBuilder then = guard.getThenBodyBuilder();
  initBarriers(then, group.shared);
  i.synchronize();
  return group;
}

void KernelLowering::initBarriers(OpBuilder &b, Value shared) {
  Instructions first(b, roles.getLoc());
  auto init = [&](int64_t at, int64_t arrivals) { first.initBarrier(first.add(shared, at), arrivals); };
  for (int64_t group = 0; group < static_cast<int64_t>(roles.getGroups()); ++group)
    for (auto &[ring, place] : memory.rings)
      for (int64_t stage = 0; stage < cast<RingOp>(ring).getType().getStages(); ++stage) {
        int64_t behind = group * memory.groupBarriers + 8 * stage;
        init(place.full + behind, 1);
        init(place.empty + behind, kGroupThreads / 32 * roles.getConsumers()); // one a warp
      }
  init(memory.idle, kMostArrivals);
  first.fenceBarrierInit();
}

LogicalResult KernelLowering::lowerProducer(OpBuilder &b, Warpgroup group, Registers registers) {
  Location loc = roles.getLoc();
  Instructions i(b, loc);
  i.setRegisters(registers.producer, /*increase=*/false);
  if (roles.getGroups() == 1) {
    auto guard = scf::IfOp::create(b, loc, i.equal(thread, 0), /*withElseRegion=*/false);
    OpBuilder then = guard.getThenBodyBuilder();
    return RoleLowering(memory, maps, awaited, group, /*isProducer=*/true).lower(then, roles.getProducer().front());
  }
  // Each group has a warp of its own, so that none waits for another's ring.
  if (roles.getGroups() > kGroupThreads / 32)
    return roles.emitError("tiles: the producers of ") << roles.getGroups() << " groups; four warps load, one a group";
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, group.warp, i.constant(roles.getGroups()));
  Value own = arith::AndIOp::create(b, loc, some, i.equal(group.lane, 0));
  OpBuilder then = scf::IfOp::create(b, loc, own, /*withElseRegion=*/false).getThenBodyBuilder();
  memory.place(then, group, group.warp);
  RoleLowering lowering(memory, maps, awaited, group, /*isProducer=*/true);
  lowering.map(then, roles.getProducer().getArgument(0), group.warp);
  return lowering.lower(then, roles.getProducer().front());
}

LogicalResult KernelLowering::lowerConsumer(OpBuilder &b, Warpgroup group, Registers registers) {
  Location loc = roles.getLoc();
  Instructions i(b, loc);
  i.setRegisters(registers.consumer, /*increase=*/true);
  Value own = group.consumer, number;
  if (roles.getGroups() != 1) {
    Value consumers = i.constant(roles.getConsumers());
    number = arith::DivUIOp::create(b, loc, group.consumer, consumers);
    own = arith::RemUIOp::create(b, loc, group.consumer, consumers);
    memory.place(b, group, number);
  }
  RoleLowering lowering(memory, maps, awaited, group, /*isProducer=*/false);
  lowering.map(b, roles.getConsumer().getArgument(0), own);
  if (number)
    lowering.map(b, roles.getConsumer().getArgument(1), number);
  if (failed(lowering.lower(b, roles.getConsumer().front())))
    return failure();
  // Shared memory must not go before the last store has read it.
  Value first = arith::AndIOp::create(b, loc, i.equal(group.warp, 0), i.equal(group.lane, 0));
  if (memory.isFull) // the first thread of a warpgroup
    first = i.equal(arith::AndIOp::create(b, loc, i.threadHere(), i.constant(kGroupThreads - 1)), 0);
  auto guard = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
  OpBuilder then = guard.getThenBodyBuilder();
  Instructions(then, loc).waitStores(0, /*read=*/false);
  return success();
}

/// No descriptor transposes elements of 32 bits, and only copies by a map round them: other products in TF32 are left
/// to warps, and so are sums of their parts, whose accumulators are those of warps.
static bool isForWarps(RolesOp roles) {
  bool isTf32 = false, isTurned = false, isRun = false, isSum = false;
  roles.walk([&](LoadAccOp load) { isSum |= load.getAcc().getType().getRows() != 64; });
  roles.walk([&](MmaOp mma) {
    isSum = false;
    isTf32 |= mma.getTf32();
    isTurned |= mma.getATransposed() || mma.getBTransposed();
    isTurned |= mma.getResult().getType().getRows() != 64;
  });
  roles.walk([&](LoadRunOp) { isRun = true; });
  return isSum || (isTf32 && (isTurned || isRun));
}

namespace {

struct LowerTilesHopper : lacis::impl::LacisLowerTilesHopperBase<LowerTilesHopper> {
  void runOnOperation() override {
    auto lower = [](func::FuncOp function, RolesOp roles) {
      return isForWarps(roles) ? success() : KernelLowering(function, roles).run();
    };
    if (failed(lowerRolesOf(getOperation(), lower)))
      signalPassFailure();
  }
};

} // namespace
