// SPDX-License-Identifier: Apache-2.0
/// \file
/// The one list of passes: what each stage is made of.
#include "lacis/Transforms/Pipeline.h"
#include "lacis/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace lacis;

/// How the nests of each family of targets become launches. A backend adds a line.
static const struct {
  StringRef family;
  std::unique_ptr<Pass> (*create)();
} kLaunchMaps[] = {
    {"cpu", [] { return createLacisMapToRanges(); }},
    {"cuda", [] { return createLacisMapToGrid(); }},
};

/// How tiles become instructions, by the beginning of the target's name. An architecture adds a line.
static const struct {
  StringRef target;
  std::unique_ptr<Pass> (*create)();
} kTileLowerings[] = {
    {"cuda:sm_90a", [] { return createLacisLowerTilesHopper(); }},
};

static void verifyStage(OpPassManager &pm, StringRef stage, bool mark = true) {
  pm.addPass(createLacisVerifyStage({stage.str(), mark}));
}

void lacis::buildToLoops(OpPassManager &pm, StringRef target) {
  verifyStage(pm, "lacis", /*mark=*/false);
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createLacisLowerPatterns());
  functions.addPass(createLacisLowerSums());
  functions.addPass(createLacisChooseWalks());
  functions.addPass(createLacisLinalgToLoops());
  functions.addPass(createLacisApplySteps({target.split(':').first.str()}));
  verifyStage(pm, "loops");
}

void lacis::buildToTiles(OpPassManager &pm, StringRef target) { verifyStage(pm, "tiles"); }

void lacis::buildToBuffers(OpPassManager &pm, StringRef target) {
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createLacisVectorizeLoops());
  functions.addPass(createLacisUnrollAndJam());
  pm.addPass(createLacisLowerLevels());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  verifyStage(pm, "buffers");
}

void lacis::buildToTarget(OpPassManager &pm, StringRef target) {
  for (const auto &map : kLaunchMaps)
    if (map.family == target.split(':').first)
      pm.addPass(map.create());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // Last: general passes would move instructions between asynchronous products.
  for (const auto &lowering : kTileLowerings)
    if (target.starts_with(lowering.target))
      pm.addPass(lowering.create());
  verifyStage(pm, "target");
}

namespace {
struct TargetOptions : PassPipelineOptions<TargetOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("cpu or cuda"), llvm::cl::init("cpu")};
  Option<std::string> arch{*this, "arch", llvm::cl::desc("architecture, for instance sm_90a"), llvm::cl::init("")};
  std::string name() const { return arch.empty() ? target.getValue() : target + ":" + arch; }
};
} // namespace

void lacis::registerPipelines() {
  PassPipelineRegistration<TargetOptions>(
      "lacis-to-loops", "Algebra to named loops.",
      [](OpPassManager &pm, const TargetOptions &options) { buildToLoops(pm, options.name()); });
  PassPipelineRegistration<TargetOptions>(
      "lacis-to-tiles", "Any earlier stage to roles and tiles.",
      [](OpPassManager &pm, const TargetOptions &options) {
        buildToLoops(pm, options.name());
        buildToTiles(pm, options.name());
      });
  PassPipelineRegistration<TargetOptions>(
      "lacis-to-buffers", "Any earlier stage to loops over buffers.",
      [](OpPassManager &pm, const TargetOptions &options) {
        buildToLoops(pm, options.name());
        buildToTiles(pm, options.name());
        buildToBuffers(pm, options.name());
      });
  PassPipelineRegistration<TargetOptions>(
      "lacis-to-target", "Any earlier stage to one function a launch.",
      [](OpPassManager &pm, const TargetOptions &options) {
        buildToLoops(pm, options.name());
        buildToTiles(pm, options.name());
        buildToBuffers(pm, options.name());
        buildToTarget(pm, options.name());
      });
}
