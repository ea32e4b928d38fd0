// SPDX-License-Identifier: Apache-2.0
/// \file
/// Roles become warps: four for each consumer, and four that copy, or one for each group, or none.
#include "CopiesAhead.h"

namespace lacis {
#define GEN_PASS_DEF_LACISLOWERTILESAMPERE
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

/// The threads of a producer copy rows of 128 bytes, eight at once or a multiple.
static LogicalResult checkGroups(RolesOp roles) {
  constexpr uint64_t most = 2;
  if (roles.getGroups() <= most)
    return success();
  return roles.emitError("tiles: the producers of ")
         << roles.getGroups() << " groups; four warps copy, for up to " << most;
}

/// Do products take what others made, from registers?
static bool isChain(RolesOp roles) {
  auto found = roles.walk([](MmaOp op) { return op.getATile() ? WalkResult::advance() : WalkResult::interrupt(); });
  return found.wasInterrupted();
}

/// Registers of a thread that the products of one round take, of the round with most.
static int64_t registersOfProducts(RolesOp roles) {
  llvm::DenseMap<Block *, int64_t> found;
  int64_t most = 0;
  roles.walk([&](MmaOp op) {
    AccType type = op.getResult().getType();
    int64_t &all = found[op->getBlock()];
    all += type.getRows() * type.getColumns() / kGroupThreads;
    most = std::max(most, all);
  });
  return most;
}

/// So many blocks shall share a processor, for which the assembler saves registers: a warp of one waits while one of
/// another works. Where the products of a round take 80 and 96, a thread needs up to 150 and 190, and saving so many
/// costs less than waiting (docs/tensor-cores.md).
static int64_t blocksOf(RolesOp roles, int64_t threads, int64_t bytes, int64_t limit) {
  constexpr int64_t all = 65536, most = 255, reserved = 1 << 10; // registers, those of a thread, bytes beside a block's own
  int64_t products = registersOfProducts(roles), own = products <= 80 ? 128 : products <= 96 ? 168 : most;
  int64_t warps = all / (own * kLanes) / kWarps * kWarps; // registers go to four at a time
  return std::max<int64_t>(std::min(warps / (threads / kLanes), (limit + reserved) / (bytes + reserved)), 1);
}

namespace {

/// Who copies what consumers take, and how many blocks share a processor then.
struct Copying {
  int64_t threads;             // that copy, of a group
  int64_t block;               // all threads of a block
  int64_t blocks = 1;          // on a processor
  SmallVector<scf::ForOp> begun = {}; // by the consumers themselves; empty where the producer has warps
};

} // namespace

/// Four warps copy for products. For a chain one does in each group, so that registers are left for a second block on a
/// processor, or the consumers do where that one would keep it off.
static Copying copyingOf(RolesOp roles, int64_t bytes, int64_t limit) {
  auto groups = static_cast<int64_t>(roles.getGroups());
  int64_t consuming = kGroupThreads * groups * roles.getConsumers();
  if (!isChain(roles))
    return {kCopyThreads / groups, consuming + kCopyThreads};
  int64_t apart = consuming + groups * kLanes, blocks = blocksOf(roles, apart, bytes, limit);
  if (int64_t more = blocksOf(roles, consuming, bytes, limit); blocks == 1 && more > 1)
    if (SmallVector<scf::ForOp> begun = loopsToBegin(roles); !begun.empty())
      return {consuming, consuming, more, begun};
  return {kLanes, apart, blocks};
}

namespace {

class KernelLowering {
public:
  KernelLowering(func::FuncOp function, RolesOp roles) : function(function), roles(roles) {}

  LogicalResult run(int64_t limit) {
    if (failed(checkGroups(roles)))
      return failure();
    FailureOr<SharedMemory> planned = SharedMemory::plan(roles, limit);
    if (failed(planned))
      return failure();
    memory = *planned;
    Copying copying = copyingOf(roles, memory.bytes, limit);
    memory.copyThreads = copying.threads;
    begun = copying.begun;
    OpBuilder b(roles);
    Warpgroup group = enter(b);
    if (failed(begun.empty() ? lowerApart(b, group) : lowerConsumer(b, group)))
      return failure();
    finishRoles(function, roles, copying.block, memory.bytes, copying.blocks);
    return success();
  }

private:
  Warpgroup enter(OpBuilder &b);
  /// The producer's warps behind those of the consumers.
  LogicalResult lowerApart(OpBuilder &b, Warpgroup group);
  LogicalResult lowerProducer(OpBuilder &b, Warpgroup group);
  LogicalResult lowerConsumer(OpBuilder &b, Warpgroup group);
  bool needsWholeRows();

  func::FuncOp function;
  RolesOp roles;
  SmallVector<scf::ForOp> begun; // by consumers, which copy; empty where the producer has warps
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
  group.stages = group.barriers = group.shared;
  auto guard = scf::IfOp::create(b, loc, i.equal(thread, 0), /*withElseRegion=*/false);
  OpBuilder then = guard.getThenBodyBuilder();
  Instructions first(then, loc);
  for (int64_t number = 0; number < static_cast<int64_t>(roles.getGroups()); ++number)
    for (auto &[ring, place] : memory.rings)
      for (int64_t stage = 0; stage < cast<RingOp>(ring).getType().getStages(); ++stage) {
        int64_t behind = number * memory.groupBarriers + kBarrierBytes * stage;
        first.initBarrier(first.add(group.shared, place.full + behind), memory.copyThreads);
        first.initBarrier(first.add(group.shared, place.empty + behind), kGroupThreads * roles.getConsumers());
      }
  i.synchronize();
  return group;
}

LogicalResult KernelLowering::lowerApart(OpBuilder &b, Warpgroup group) {
  Location loc = roles.getLoc();
  Value consumers = Instructions(b, loc).constant(roles.getGroups() * roles.getConsumers());
  Value isProducer = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, group.consumer, consumers);
  auto split = scf::IfOp::create(b, loc, isProducer, /*withElseRegion=*/true);
  OpBuilder producer = split.getThenBodyBuilder(), consumer = split.getElseBodyBuilder();
  return failure(failed(lowerProducer(producer, group)) || failed(lowerConsumer(consumer, group)));
}

LogicalResult KernelLowering::lowerProducer(OpBuilder &b, Warpgroup group) {
  Instructions i(b, roles.getLoc());
  group.lane = i.add(thread, -kGroupThreads * static_cast<int64_t>(roles.getGroups() * roles.getConsumers()));
  Value number;
  if (roles.getGroups() != 1) {
    Value threads = i.constant(memory.copyThreads);
    number = i.uniform(arith::DivUIOp::create(b, roles.getLoc(), group.lane, threads));
    group.lane = arith::RemUIOp::create(b, roles.getLoc(), group.lane, threads);
    memory.place(b, group, number);
  }
  RoleLowering lowering(memory, group, /*isProducer=*/true, /*byRows=*/false, function);
  if (number)
    lowering.map(b, roles.getProducer().getArgument(0), number);
  if (failed(lowering.lower(b, roles.getProducer().front())))
    return failure();
  i.waitCopies(); // a thread stays until its copies are there
  return success();
}

/// Sums of rows, parts of columns, and the left side of a product in registers are one warp's business.
bool KernelLowering::needsWholeRows() {
  auto isOfHalves = [](Type type) {
    auto acc = dyn_cast<AccType>(type);
    return acc && !acc.getElementType().isF32();
  };
  auto found = roles.walk([&](Operation *op) {
    bool isOne = isa<ReduceRowsOp, ColumnsOp>(op) || llvm::any_of(op->getResultTypes(), isOfHalves);
    return isOne ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

LogicalResult KernelLowering::lowerConsumer(OpBuilder &b, Warpgroup group) {
  Value own = group.consumer, number;
  if (roles.getGroups() != 1) {
    Value consumers = Instructions(b, roles.getLoc()).constant(roles.getConsumers());
    number = arith::DivUIOp::create(b, roles.getLoc(), group.consumer, consumers);
    own = arith::RemUIOp::create(b, roles.getLoc(), group.consumer, consumers);
    memory.place(b, group, number);
  }
  RoleLowering lowering(memory, group, /*isProducer=*/false, needsWholeRows(), function);
  std::optional<CopiesAhead> ahead;
  if (!begun.empty()) {
    Warpgroup all = group;
    all.lane = thread;
    ahead.emplace(memory, all, begun, function);
    if (failed(ahead->begin(b)))
      return failure();
    lowering.copyBy(*ahead);
  }
  lowering.map(b, roles.getConsumer().getArgument(0), own);
  if (number)
    lowering.map(b, roles.getConsumer().getArgument(1), number);
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
