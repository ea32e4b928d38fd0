// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest that adds to the output itself what an operand's lower levels find of it.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_PUSHEDOUTPUT_H
#define LACIS_LIB_TRANSFORMS_LOOPS_PUSHEDOUTPUT_H

#include "PushedNest.h"

namespace lacis {

/// for i: y[i] = init;  for j, i in w: y[i] += w * x[j];  for i: y[i] = finish(y[i])
///
/// A sum that is rounded is a workspace. Iterations over what the output lacks meet in its elements.
class PushedOutput : PushedNest {
public:
  using PushedNest::PushedNest;
  llvm::LogicalResult build(mlir::OpBuilder &b);
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_PUSHEDOUTPUT_H
