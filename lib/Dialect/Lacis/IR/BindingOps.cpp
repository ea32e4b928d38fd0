// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a nest asks the bindings of a format.
#include "lacis/Dialect/Lacis/IR/BindingOps.h"

#include "lacis/Dialect/Lacis/IR/BindingCode.h"

using namespace mlir;
using namespace lacis;

LogicalResult LookupOp::verify() {
  FormatAttr format = formatOf(getTensor());
  if (!format || getBinding() >= format.getBindings().size() || bindingArray(format, getBinding()).empty())
    return emitOpError("needs a tensor with a format whose binding ") << getBinding() << " stores an array";
  return success();
}

#define GET_OP_CLASSES
#include "lacis/Dialect/Lacis/IR/BindingOps.cpp.inc"
