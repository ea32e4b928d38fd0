// SPDX-License-Identifier: Apache-2.0
/// \file
/// A pattern is a tensor whose values nobody reads: arguments of that type become tensors with the format.
#include "lacis/Transforms/Passes.h"

namespace lacis {
#define GEN_PASS_DEF_LACISLOWERPATTERNS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

struct LowerPatterns : lacis::impl::LacisLowerPatternsBase<LowerPatterns> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    for (BlockArgument argument : function.getArguments())
      if (auto pattern = dyn_cast<PatternType>(argument.getType()))
        argument.setType(
            RankedTensorType::get(pattern.getShape(), IntegerType::get(&getContext(), 1), pattern.getFormat()));
    function.setType(FunctionType::get(&getContext(), function.getBody().getArgumentTypes(), function.getResultTypes()));
  }
};

} // namespace
