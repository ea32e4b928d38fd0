// SPDX-License-Identifier: Apache-2.0
/// \file
/// kernel: s  -->  kernel: wait for the kernel before; s
///
/// A kernel that waits by itself for what it reads may be started while the one before it ends (programmatic dependent
/// launch), so that one launch hides behind the other.
#include "LaunchMapping.h"
#include "../Stages.h"
#include "lacis/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace lacis {
#define GEN_PASS_DEF_LACISOVERLAPLAUNCHES
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

struct OverlapLaunches : lacis::impl::LacisOverlapLaunchesBase<OverlapLaunches> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (hasReached(module, "target") || !module->hasAttr("lacis.artifact"))
      return;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (!function->hasAttr("lacis.gpu_kernel"))
        continue;
      OpBuilder b(function.getBody());
      NVVM::GriddepcontrolOp::create(b, function.getLoc(), NVVM::GridDepActionKind::wait);
    }
    changeLaunches(module, [&](NamedAttrList &launch) { launch.set("waits", BoolAttr::get(&getContext(), true)); });
  }
};

} // namespace
