// SPDX-License-Identifier: Apache-2.0
/// \file
/// Walks from a value to the operands of what makes it.
#include "lacis/Dialect/Lacis/IR/Follows.h"

#include "mlir/IR/Operation.h"
#include "mlir/Transforms/RegionUtils.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

llvm::SetVector<Value> lacis::takenBy(Operation *op) {
  llvm::SetVector<Value> taken;
  taken.insert_range(op->getOperands());
  getUsedValuesDefinedAbove(op->getRegions(), taken);
  return taken;
}

bool lacis::followsFrom(Value value, llvm::function_ref<bool(Value)> isSource) {
  llvm::SmallVector<Value> left{value};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!left.empty()) {
    Value next = left.pop_back_val();
    if (isSource(next))
      return true;
    if (Operation *op = next.getDefiningOp(); op && seen.insert(op).second)
      llvm::append_range(left, takenBy(op));
  }
  return false;
}

bool lacis::followsFrom(Value value, Value source) {
  return followsFrom(value, [&](Value each) { return each == source; });
}
