// SPDX-License-Identifier: Apache-2.0
/// \file
/// Roles take turns: a consumer calls the producer for each stage that it needs, and one consumer follows the other.
/// The threads of a GPU's block do so together.
#include "TileLoops.h"

#include "../Roles/RoleBody.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace lacis {
#define GEN_PASS_DEF_LACISLOWERTILESPLAIN
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;
using namespace lacis::plain;

/// Of a block: each has a row of 64.
static constexpr int64_t kBlockThreads = 64;

/// The one ring that the roles meet at, or could.
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
  if (!found)
    roles->getParentOfType<func::FuncOp>().walk([&](RingOp ring) { found = ring; });
  return found ? found : FailureOr<RingOp>(roles.emitError("tiles: the roles meet at no ring"));
}

static int64_t countElements(TileType tile) { return tile.getCount() * tile.getRows() * tile.getColumns(); }

/// The tiles of a stage in the memory that a block shares, from `bytes` on; null where they find no room there.
static FailureOr<SmallVector<Value>> shareStage(OpBuilder &b, func::FuncOp kernel, RingOp ring, int64_t &bytes) {
  constexpr int64_t most = 65536, alignment = 128; // what every architecture from sm_75 on has
  constexpr unsigned space = 3;
  Location loc = ring.getLoc();
  Type shared = LLVM::LLVMPointerType::get(b.getContext(), space), any = LLVM::LLVMPointerType::get(b.getContext());
  Value first = sharedMemory(b, kernel->getParentOfType<ModuleOp>(), loc);
  Value base = LLVM::AddrSpaceCastOp::create(b, loc, any, LLVM::IntToPtrOp::create(b, loc, shared, first));
  SmallVector<Value> stage;
  for (TileType tile : ring.getType().getTiles()) {
    auto offset = static_cast<int32_t>(bytes);
    stage.push_back(LLVM::GEPOp::create(b, loc, any, b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{offset}));
    bytes += llvm::alignTo(countElements(tile) * tile.getElementType().getIntOrFloatBitWidth() / 8, alignment);
  }
  if (bytes > most)
    return ring.emitError("tiles: a stage of ")
           << bytes << " bytes is more than the " << most << " bytes of shared memory; use smaller tiles";
  return stage;
}

static LogicalResult lowerRoles(func::FuncOp kernel, RolesOp roles) {
  FailureOr<RingOp> ring = findRing(roles);
  if (failed(ring))
    return failure();
  Location loc = roles.getLoc();
  bool isBlock = kernel->hasAttr("lacis.gpu_kernel");
  int64_t threads = isBlock ? kBlockThreads : 1, bytes = 0;
  OpBuilder entry(kernel.getBody());
  SmallVector<Value> stage;
  Value thread;
  if (isBlock) {
    FailureOr<SmallVector<Value>> shared = shareStage(entry, kernel, *ring, bytes);
    if (failed(shared))
      return failure();
    stage = *shared;
    Value number = NVVM::ThreadIdXOp::create(entry, loc, entry.getI32Type());
    thread = arith::ExtUIOp::create(entry, loc, entry.getI64Type(), number);
  } else {
    thread = arith::ConstantOp::create(entry, loc, entry.getI64IntegerAttr(0));
  }
  TileLoops loops(kernel, thread, threads);
  if (!isBlock)
    for (TileType tile : ring->getType().getTiles())
      stage.push_back(loops.allocate(tile.getElementType(), countElements(tile)));
  loops.placeRing(*ring, stage);
  if (failed(loops.lowerProducer(roles.getProducer())))
    return failure();
  FailureOr<Resumable> producer = makeResumable(kernel, roles.getProducer());
  if (failed(producer))
    return failure();
  Value frame = loops.allocate(entry.getI8Type(), producer->frameBytes);
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
  if (isBlock) {
    finishRoles(kernel, roles, threads, bytes);
    return success();
  }
  roles.erase();
  ring->erase();
  return success();
}

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
