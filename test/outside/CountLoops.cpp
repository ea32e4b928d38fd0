// SPDX-License-Identifier: Apache-2.0
/// \file
/// A pass from outside: a remark at each function with the number of its loops over coordinates and positions.
#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace {
#define GEN_PASS_DECL
#define GEN_PASS_DEF_OUTSIDECOUNTLOOPS
#define GEN_PASS_REGISTRATION
#include "outside/OutsidePasses.h.inc"

struct CountLoops : impl::OutsideCountLoopsBase<CountLoops> {
  void runOnOperation() override {
    int coordinates = 0, positions = 0;
    getOperation().walk([&](lacis::LoopOp) { ++coordinates; });
    getOperation().walk([&](lacis::LevelLoopOp) { ++positions; });
    getOperation().emitRemark() << coordinates << " loops over coordinates, " << positions << " over positions";
  }
};

const bool registered = (registerOutsideCountLoops(), true);
} // namespace
