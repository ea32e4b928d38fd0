// SPDX-License-Identifier: Apache-2.0
/// \file
/// Roles take turns: a consumer calls the producer for each stage that it needs, and one consumer follows the other.
/// The threads of a GPU's block do so together.
#include "TileLoops.h"

#include "../Roles/RoleBody.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/SetVector.h"

namespace lacis {
#define GEN_PASS_DEF_LACISLOWERTILESPLAIN
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;
using namespace lacis::plain;

/// Of a block: each has a row of 64.
static constexpr int64_t kBlockThreads = 64;

/// The rings that the roles meet at, or the one where they could.
static SmallVector<RingOp> findRings(RolesOp roles) {
  llvm::SetVector<Operation *> found;
  roles.walk([&](AcquireOp acquire) { found.insert(ringOf(acquire.getRing())); });
  if (found.empty())
    roles->getParentOfType<func::FuncOp>().walk([&](RingOp ring) { found.insert(ring); });
  return llvm::map_to_vector(found, [](Operation *ring) { return cast<RingOp>(ring); });
}

static int64_t countElements(TileType tile) { return tile.getCount() * tile.getRows() * tile.getColumns(); }

/// The tiles of `count` stages in the memory that a block shares, from `bytes` on; null where they find no room there.
static FailureOr<SmallVector<Value>> shareStages(OpBuilder &b, func::FuncOp kernel, RingOp ring, int64_t count,
                                                 int64_t &bytes) {
  constexpr int64_t most = 65536, alignment = 128; // what every architecture from sm_75 on has
  constexpr unsigned space = 3;
  Location loc = ring.getLoc();
  Type shared = LLVM::LLVMPointerType::get(b.getContext(), space), any = LLVM::LLVMPointerType::get(b.getContext());
  Value first = sharedMemory(b, kernel->getParentOfType<ModuleOp>(), loc);
  Value base = LLVM::AddrSpaceCastOp::create(b, loc, any, LLVM::IntToPtrOp::create(b, loc, shared, first));
  SmallVector<Value> stages;
  for (TileType tile : ring.getType().getTiles()) {
    auto offset = static_cast<int32_t>(bytes);
    stages.push_back(LLVM::GEPOp::create(b, loc, any, b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{offset}));
    int64_t own = count * countElements(tile) * tile.getElementType().getIntOrFloatBitWidth() / 8;
    bytes += llvm::alignTo(own, alignment);
  }
  if (bytes > most)
    return ring.emitError("tiles: a stage of ")
           << bytes << " bytes is more than the " << most << " bytes of shared memory; use smaller tiles";
  return stages;
}

namespace {

/// Makes loops of the roles of one kernel.
class RoleTurns {
public:
  RoleTurns(func::FuncOp kernel, RolesOp roles)
      : kernel(kernel), roles(roles), loc(roles.getLoc()), isBlock(kernel->hasAttr("lacis.gpu_kernel")),
        threads(isBlock ? kBlockThreads : 1), entry(kernel.getBody()) {}

  LogicalResult run();

private:
  LogicalResult placeStages();
  scf::ForOp turn(OpBuilder &b, Type type, int64_t count);
  void takeGroups();
  void takeTurns();
  void begin(OpBuilder &b);
  bool isCounted();

  func::FuncOp kernel;
  RolesOp roles;
  Location loc;
  const bool isBlock;
  const int64_t threads;
  OpBuilder entry;
  Value thread, frame;
  SmallVector<RingOp> rings;
  SmallVector<SmallVector<Value>> shared; // the stages of each ring
  SmallVector<Value> counters;
  int64_t bytes = 0;
};

} // namespace

/// Who the thread is, and where a block shares its stages.
LogicalResult RoleTurns::placeStages() {
  if (!isBlock) {
    thread = arith::ConstantOp::create(entry, loc, entry.getI64IntegerAttr(0));
    return success();
  }
  for (RingOp ring : rings) {
    int64_t count = isCounted() ? ring.getType().getStages() : 1;
    FailureOr<SmallVector<Value>> stages = shareStages(entry, kernel, ring, count, bytes);
    if (failed(stages))
      return failure();
    shared.push_back(*stages);
  }
  Value number = NVVM::ThreadIdXOp::create(entry, loc, entry.getI32Type());
  thread = arith::ExtUIOp::create(entry, loc, entry.getI64Type(), number);
  return success();
}

scf::ForOp RoleTurns::turn(OpBuilder &b, Type type, int64_t count) {
  auto constant = [&](int64_t value) { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value)); };
  return scf::ForOp::create(b, loc, constant(0), constant(count), constant(1));
}

/// One ring needs one stage, unless places of it are kept beyond the next one.
bool RoleTurns::isCounted() {
  auto found = roles.walk([](AdvanceOp) { return WalkResult::interrupt(); });
  return rings.size() > 1 || found.wasInterrupted();
}

/// Groups know nothing of each other, so one follows the other.
void RoleTurns::takeGroups() {
  if (roles.getGroups() == 1)
    return;
  OpBuilder b(roles);
  Block &producer = roles.getProducer().front(), &consumer = roles.getConsumer().front();
  scf::ForOp groups = turn(b, producer.getArgument(0).getType(), roles.getGroups());
  roles->moveBefore(groups.getBody()->getTerminator());
  producer.getArgument(0).replaceAllUsesWith(groups.getInductionVar());
  consumer.getArgument(1).replaceAllUsesWith(groups.getInductionVar());
  producer.eraseArgument(0);
  consumer.eraseArgument(1);
}

/// The producer begins anew with each consumer.
void RoleTurns::begin(OpBuilder &b) {
  LLVM::StoreOp::create(b, loc, arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0)), frame);
  if (counters.empty())
    return;
  Value none = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
  for (Value counter : counters)
    LLVM::StoreOp::create(b, loc, none, counter);
}

void RoleTurns::takeTurns() {
  OpBuilder b(roles);
  Block &body = roles.getConsumer().front();
  scf::ForOp turns = turn(b, body.getArgument(0).getType(), roles.getConsumers());
  OpBuilder first = OpBuilder::atBlockBegin(turns.getBody());
  begin(first);
  body.getArgument(0).replaceAllUsesWith(turns.getInductionVar());
  body.getTerminator()->erase();
  Block *target = turns.getBody();
  target->getOperations().splice(target->getTerminator()->getIterator(), body.getOperations());
}

LogicalResult RoleTurns::run() {
  rings = findRings(roles);
  if (failed(placeStages()))
    return failure();
  TileLoops loops(kernel, thread, threads);
  for (auto [n, ring] : llvm::enumerate(rings)) {
    Stages place;
    place.count = isCounted() ? ring.getType().getStages() : 1;
    if (isBlock)
      place.tiles = shared[n];
    else
      for (TileType tile : ring.getType().getTiles())
        place.tiles.push_back(loops.allocate(tile.getElementType(), place.count * countElements(tile)));
    if (isCounted())
      counters.push_back(place.filled = loops.allocate(entry.getI64Type(), 1));
    loops.placeRing(ring, place);
  }
  takeGroups();
  if (failed(loops.lowerProducer(roles.getProducer())))
    return failure();
  FailureOr<Resumable> producer = makeResumable(kernel, roles.getProducer());
  if (failed(producer))
    return failure();
  frame = loops.allocate(entry.getI8Type(), producer->frameBytes);
  SmallVector<Value> operands = producer->operands;
  operands.push_back(frame);
  auto meet = [&](OpBuilder &b) {
    if (isBlock)
      NVVM::BarrierOp::create(b, loc);
  };
  auto fill = [&](OpBuilder &b) { // when all have read the stage; it is full when all have filled their part
    meet(b);
    func::CallOp::create(b, loc, producer->function, operands);
    meet(b);
  };
  if (failed(loops.lowerConsumer(roles.getConsumer(), fill)))
    return failure();
  takeTurns();
  if (isBlock) {
    finishRoles(kernel, roles, threads, bytes);
    return success();
  }
  roles.erase();
  for (RingOp ring : rings)
    ring->erase();
  return success();
}

static LogicalResult lowerRoles(func::FuncOp kernel, RolesOp roles) { return RoleTurns(kernel, roles).run(); }

namespace {

struct LowerTilesPlain : lacis::impl::LacisLowerTilesPlainBase<LowerTilesPlain> {
  void getDependentDialects(DialectRegistry &registry) const override {
    LacisLowerTilesPlainBase::getDependentDialects(registry);
    registry.insert<NVVM::NVVMDialect>();
  }

  void runOnOperation() override {
    if (failed(lowerRolesOf(getOperation(), lowerRoles)))
      signalPassFailure();
  }
};

} // namespace
