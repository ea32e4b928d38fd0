// SPDX-License-Identifier: Apache-2.0
/// \file
/// kernel: s  -->  kernel: wait for the kernel before; s
///
/// A kernel that waits by itself for what it reads may be started while the one before it ends (programmatic dependent
/// launch), so that one launch hides behind the other.
#include "Stages.h"
#include "lacis/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace lacis {
#define GEN_PASS_DEF_LACISOVERLAPLAUNCHES
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;

namespace {

struct OverlapLaunches : lacis::impl::LacisOverlapLaunchesBase<OverlapLaunches> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto record = module->getAttrOfType<DictionaryAttr>("lacis.artifact");
    if (lacis::hasReached(module, "target") || !record)
      return;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (!function->hasAttr("lacis.gpu_kernel"))
        continue;
      OpBuilder b(function.getBody());
      NVVM::GriddepcontrolOp::create(b, function.getLoc(), NVVM::GridDepActionKind::wait);
    }
    Builder b(&getContext());
    SmallVector<Attribute> launches;
    for (auto entry : record.getAs<ArrayAttr>("launches").getAsRange<DictionaryAttr>()) {
      NamedAttrList launch(entry);
      launch.set("waits", b.getBoolAttr(true));
      launches.push_back(launch.getDictionary(&getContext()));
    }
    NamedAttrList artifact(record);
    artifact.set("launches", b.getArrayAttr(launches));
    module->setAttr("lacis.artifact", artifact.getDictionary(&getContext()));
  }
};

} // namespace
