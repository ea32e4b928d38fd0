// SPDX-License-Identifier: Apache-2.0
// A pass that lives outside of the core's folders.

#ifndef OUTSIDE_PASSES_TD
#define OUTSIDE_PASSES_TD

include "mlir/Pass/PassBase.td"

def OutsideCountLoops : Pass<"outside-count-loops", "::mlir::func::FuncOp"> {
  let summary = "Says how many loops a nest has.";
}

#endif // OUTSIDE_PASSES_TD
