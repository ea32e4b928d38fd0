// SPDX-License-Identifier: Apache-2.0
/// \file
/// The one list of passes: what each stage is made of.
#include "lacis/Transforms/Pipeline.h"
#include "Stages.h"
#include "lacis/Dialect/Lacis/IR/BlockMemory.h"
#include "lacis/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace lacis;

/// How the nests of each family of targets become launches. A backend adds a line.
static const struct {
  StringRef family;
  void (*add)(OpPassManager &pm);
} kLaunchMaps[] = {
    {"cpu", [](OpPassManager &pm) { pm.addPass(createLacisMapToRanges()); }}, // cleaned up function by function, later
    {"cuda",
     [](OpPassManager &pm) {
       pm.addPass(createLacisMapToGrid());
       pm.addPass(createCanonicalizerPass());
       pm.addPass(createCSEPass());
       pm.addPass(createLacisStreamLoads());
     }},
};

/// How tiles become instructions, by the first of these that the target's name begins with, in blocks with so much shared
/// memory; and whether there are warps, which multiply tiles, else their loops are what runs. An architecture with
/// instructions of its own adds a line. What the first of two passes leaves is the second one's.
static const struct TileLowering {
  StringLiteral target;
  void (*add)(OpPassManager &pm, int64_t blockBytes);
  bool hasWarps = true;
} kTileLowerings[] = {
    {"cuda:sm_90a",
     [](OpPassManager &pm, int64_t blockBytes) {
       pm.addPass(createLacisLowerTilesHopper());
       pm.addPass(createLacisLowerTilesAmpere({blockBytes}));
     }},
    {"cuda:sm_7", [](OpPassManager &pm, int64_t) { pm.addPass(createLacisLowerTilesPlain()); }},
    {"cuda:sm_", [](OpPassManager &pm, int64_t blockBytes) { pm.addPass(createLacisLowerTilesAmpere({blockBytes})); }},
    {"cpu", [](OpPassManager &pm, int64_t) { pm.addPass(createLacisLowerTilesPlain()); }, /*hasWarps=*/false},
};

/// That of a target; null where none is known.
static const TileLowering *tileLoweringOf(StringRef target) {
  const auto *found = llvm::find_if(kTileLowerings, [&](const auto &own) { return target.starts_with(own.target); });
  return found == std::end(kTileLowerings) ? nullptr : found;
}

/// Where a kernel can wait for the one before it: from sm_90 on.
static constexpr StringLiteral kOverlapping[] = {"cuda:sm_9", "cuda:sm_1"};

/// At the end of a stage, and at the beginning of the next: a text that says how far it is may be anybody's.
static void verifyStage(OpPassManager &pm, StringRef stage, bool mark = true) {
  pm.addPass(createLacisVerifyStage({stage.str(), mark}));
}

void lacis::buildToLoops(OpPassManager &pm, StringRef target) {
  verifyStage(pm, "lacis", /*mark=*/false);
  pm.addPass(createLacisResolveKinds());
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createLacisLowerPatterns());
  functions.addPass(createLacisLowerSums());
  functions.addPass(createLacisChooseWalks({/*rows=*/target == "cpu"}));
  functions.addPass(createLacisLinalgToLoops());
  functions.addPass(createLacisApplySteps({target.str()}));
  verifyStage(pm, "loops");
}

void lacis::buildToTiles(OpPassManager &pm, StringRef target) {
  verifyStage(pm, "loops", /*mark=*/false);
  pm.addPass(createLacisResolveKinds());
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createLacisFormTiles());
  if (const TileLowering *lowering = tileLoweringOf(target); !lowering || lowering->hasWarps)
    functions.addPass(createLacisDistributeWarpTiles());
  verifyStage(pm, "tiles");
}

void lacis::buildToBuffers(OpPassManager &pm, StringRef target) {
  verifyStage(pm, "tiles", /*mark=*/false);
  pm.addPass(createLacisResolveKinds()); // a text that begins here says no more of kinds than their names
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createLacisVectorizeLoops());
  functions.addPass(createLacisUnrollAndJam());
  functions.addPass(createLacisHoldOperands());
  functions.addPass(createLacisStageOperands({target.str()}));
  pm.addPass(createLacisLowerLevels({/*outline=*/target == "cpu"}));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.nest<func::FuncOp>().addPass(createLacisTightenLoops());
  pm.nest<func::FuncOp>().addPass(createLacisInterleaveSums());
  pm.nest<func::FuncOp>().addPass(createLacisLoadAhead());
  pm.addPass(createLacisCheckAccesses());
  verifyStage(pm, "buffers");
}

void lacis::buildToTarget(OpPassManager &pm, StringRef target) {
  verifyStage(pm, "buffers", /*mark=*/false);
  for (const auto &map : kLaunchMaps)
    if (map.family == target.split(':').first)
      map.add(pm);
  // Last: general passes would move instructions between asynchronous products.
  if (const TileLowering *lowering = tileLoweringOf(target))
    lowering->add(pm, blockBytesOf(target));
  if (llvm::any_of(kOverlapping, [&](StringRef prefix) { return target.starts_with(prefix); }))
    pm.addPass(createLacisOverlapLaunches());
  verifyStage(pm, "target");
}

/// The stages that passes make, in order.
static const struct Stage {
  StringLiteral name, pipeline;
  void (*build)(OpPassManager &pm, StringRef target);
  StringLiteral summary;
} kStages[] = {
    {"loops", "lacis-to-loops", buildToLoops, "Algebra to named loops."},
    {"tiles", "lacis-to-tiles", buildToTiles, "Any earlier stage to roles and tiles."},
    {"buffers", "lacis-to-buffers", buildToBuffers, "Any earlier stage to loops over buffers."},
    {"target", "lacis-to-target", buildToTarget, "Any earlier stage to one function a launch."},
};

namespace {

struct TargetOptions : PassPipelineOptions<TargetOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("cpu or cuda"), llvm::cl::init("cpu")};
  Option<std::string> arch{*this, "arch", llvm::cl::desc("architecture, for instance sm_90a"), llvm::cl::init("")};
  std::string name() const { return arch.empty() ? target.getValue() : target + ":" + arch; }
};

/// Runs the passes of one stage on a module that has not reached it.
class ReachStage : public PassWrapper<ReachStage, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReachStage)

  ReachStage(const Stage &stage, std::string target)
      : stage(stage), target(std::move(target)), passes(ModuleOp::getOperationName()) {
    stage.build(passes, this->target);
  }
  ReachStage(const ReachStage &other) : ReachStage(other.stage, other.target) {}

  StringRef getName() const override { return "LacisReachStage"; }
  void getDependentDialects(DialectRegistry &registry) const override { passes.getDependentDialects(registry); }
  void runOnOperation() override {
    if (!hasReached(getOperation(), stage.name) && failed(runPipeline(passes, getOperation())))
      signalPassFailure();
  }

private:
  const Stage &stage;
  std::string target;
  OpPassManager passes;
};

} // namespace

void lacis::registerPipelines() {
  for (const Stage &last : kStages)
    PassPipelineRegistration<TargetOptions>(
        last.pipeline, last.summary, [&last](OpPassManager &pm, const TargetOptions &options) {
          for (const Stage *stage = kStages; stage <= &last; ++stage)
            pm.addPass(std::make_unique<ReachStage>(*stage, options.name()));
        });
}
