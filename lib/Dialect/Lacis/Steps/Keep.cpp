// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i: y = s(t)  -->  for t.i: w = t;  for i: y = s(w): a statement of a chain with a nest of its own.
///
/// The pass that makes loops of statements asks `getKeptTensor`; here is only checked that it kept the tensor.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> KeepStepAttr::namedLoops() const { return {}; }

bool KeepStepAttr::comesFirst() const { return true; }

StringRef KeepStepAttr::getKeptTensor() const { return getTensor(); }

LogicalResult KeepStepAttr::apply(Nest &nest, Location loc) const {
  for (WorkspaceOp workspace : nest.getFunction().getBody().getOps<WorkspaceOp>())
    if (workspace.getKept() == getTensor())
      return success();
  return emitError(loc) << "keep: '" << getTensor() << "' is no statement of a chain; a function of lacis.kernel is one";
}
