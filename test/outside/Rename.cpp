// SPDX-License-Identifier: Apache-2.0
/// \file
/// A step from outside: for i: s[i]  -->  for row: s[row].
#include "lacis/Dialect/Lacis/IR/Lacis.h"
#include "lacis/Dialect/Lacis/IR/StepInterface.h"

#include "lacis/Dialect/Lacis/IR/KindRegistry.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;

#define GET_ATTRDEF_CLASSES
#include "outside/OutsideSteps.h.inc"
#define GET_ATTRDEF_CLASSES
#include "outside/OutsideSteps.cpp.inc"

SmallVector<StringRef> RenameStepAttr::namedLoops() const { return {getLoop()}; }

LogicalResult RenameStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> loop = nest.require(getLoop(), "rename", loc);
  if (failed(loop))
    return failure();
  loop->setLetters(getName());
  return success();
}

static Room room([](LacisDialect &dialect) { dialect.addKinds<RenameStepAttr>(); });
