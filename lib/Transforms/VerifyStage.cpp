// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks what each stage promises, and records the stage on the module.
#include "Stages.h"
#include "lacis/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace lacis {
#define GEN_PASS_DEF_LACISVERIFYSTAGE
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

bool isEncoded(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa_and_nonnull<FormatAttr, SumAttr>(tensor.getEncoding());
}

bool isLacis(Operation *op) { return isa_and_nonnull<LacisDialect>(op->getDialect()); }

/// Until the levels are lowered a module has the kinds and bindings that users define, each verified by itself.
bool isOfKind(Operation *op) {
  return isa<KindOp, BindingOp>(op) || op->getParentOfType<KindOp>() || op->getParentOfType<BindingOp>();
}

/// Algebra: no positions; encodings stay what they are.
LogicalResult verifyAlgebra(Operation *op) {
  if (isOfKind(op))
    return success();
  if (isLacis(op) && !isa<ZerosOp>(op))
    return op->emitError("'") << op->getName() << "' belongs to a later stage than the algebra";
  if (isa<tensor::CastOp, tensor::EmptyOp>(op) && isEncoded(op->getResult(0).getType()))
    return op->emitError("'") << op->getName() << "' would change or drop a format";
  return success();
}

/// What roles do with tiles; these operations outlive the levels, and an architecture's pass lowers them.
bool isTileOperation(Operation *op) {
  return isa<RingOp, RolesOp, AcquireOp, AdvanceOp, RevisitOp, ReleaseOp, LoadTileOp, LoadRunOp, SplatOp, MmaOp,
             MmaGatheredOp, CompleteOp, MapOp, ReduceRowsOp, ColumnsOp, ReadTileOp, ReadColumnsOp, LoadRowsOp, LoadColumnsOp,
             LoadAccOp, StoreAccOp, LoadEntriesOp, StoreTileOp, StoreRowsOp, StoreBlocksOp>(op) ||
         (isa<YieldOp>(op) && isa<RolesOp, MapOp>(op->getParentOp()));
}

/// Passes take what they find for one block, whose tensors are arguments, or what operations of the dialect make of them.
LogicalResult verifyShape(Operation *op) {
  if (auto function = dyn_cast<func::FuncOp>(op); function && !function.isExternal() && !function.getBody().hasOneBlock())
    return op->emitError("a kernel is one block here, whose loops and branches have regions");
  bool makesTensors = isLacis(op) && !isa<LoopOp, LevelLoopOp>(op);
  if (!makesTensors && llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>))
    return op->emitError("'") << op->getName() << "' makes a tensor; tensors are arguments here, or made by the dialect";
  return success();
}

/// Tiles: named loops, in roles where there are tiles, and no expression left that is not a loop.
LogicalResult verifyTiles(Operation *op) {
  if (isOfKind(op))
    return success();
  if (isa<linalg::LinalgOp>(op))
    return op->emitError("'") << op->getName() << "' has not become a loop";
  if (isa<LLVM::LoadOp, LLVM::StoreOp>(op))
    return op->emitError("'") << op->getName() << "' belongs to a later stage than the loops";
  return verifyShape(op);
}

/// Loops: no roles yet.
LogicalResult verifyLoops(Operation *op) {
  if (isTileOperation(op))
    return op->emitError("'") << op->getName() << "' belongs to a later stage than the loops";
  return verifyTiles(op);
}

/// Buffers: no level and no tensor left.
LogicalResult verifyBuffers(Operation *op) {
  if (isLacis(op) && !isTileOperation(op))
    return op->emitError("'") << op->getName() << "' is left after its stage";
  if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>))
    return op->emitError("a tensor is left after the levels were lowered");
  return success();
}

/// Target: no type and no operation of the dialect left.
LogicalResult verifyTarget(Operation *op) {
  if (isTileOperation(op))
    return op->emitError("'") << op->getName() << "': this target has no lowering of tiles";
  return verifyBuffers(op);
}

constexpr struct {
  StringLiteral stage;
  LogicalResult (*verify)(Operation *);
} kStages[] = {
    {"lacis", verifyAlgebra},
    {"loops", verifyLoops},
    {"tiles", verifyTiles},
    {"buffers", verifyBuffers},
    {"target", verifyTarget}};

struct VerifyStage : lacis::impl::LacisVerifyStageBase<VerifyStage> {
  using LacisVerifyStageBase::LacisVerifyStageBase;

  void runOnOperation() override {
    const auto *found = llvm::find_if(kStages, [&](const auto &entry) { return entry.stage == stage; });
    if (found == std::end(kStages)) {
      auto diagnostic = getOperation()->emitError("no stage named '") << stage << "'; there are ";
      llvm::interleaveComma(kStages, diagnostic, [&](const auto &entry) { diagnostic << "'" << entry.stage << "'"; });
      return signalPassFailure();
    }
    auto said = getOperation()->getAttrOfType<StringAttr>("lacis.stage");
    if (hasReached(getOperation(), stage) && said.getValue() != stage) // who has gone on has been here
      return markAllAnalysesPreserved();
    WalkResult result = getOperation()->walk([&](Operation *op) {
      return failed(found->verify(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    if (mark)
      getOperation()->setAttr("lacis.stage", StringAttr::get(&getContext(), stage));
    markAllAnalysesPreserved();
  }
};

} // namespace
