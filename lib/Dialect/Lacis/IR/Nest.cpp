// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finding loops by name in a nest, and what is known about their sizes.
#include "lacis/Dialect/Lacis/IR/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace lacis;

LoopOp Nest::find(StringRef name) const {
  LoopOp found;
  function.walk([&](LoopOp loop) {
    if (loop.getName() == name)
      found = loop;
  });
  return found;
}

FailureOr<LoopOp> Nest::require(StringRef name, StringRef step, Location loc) const {
  if (LoopOp loop = find(name))
    return loop;
  SmallVector<StringRef> names;
  function.walk<WalkOrder::PreOrder>([&](LoopOp loop) { names.push_back(loop.getName()); });
  auto diagnostic = emitError(loc) << step << ": no loop named '" << name << "'; loops here are ";
  llvm::interleaveComma(names, diagnostic, [&](StringRef other) { diagnostic << "'" << other << "'"; });
  return failure();
}

Value Nest::findOperand(StringRef name) const {
  for (BlockArgument argument : function.getArguments())
    if (auto attr = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "lacis.name"))
      if (attr.getValue() == name)
        return argument;
  return {};
}

SmallVector<LoopOp> lacis::perfectChain(LoopOp outermost) {
  SmallVector<LoopOp> chain{outermost};
  while (true) {
    Block *body = chain.back().getBlock();
    auto inner = dyn_cast<LoopOp>(body->front());
    if (!inner || inner.getNumResults() != 0 || std::next(body->begin()) != std::prev(body->end()))
      return chain;
    chain.push_back(inner);
  }
}

SmallVector<LoopOp> Nest::mainChain() const {
  LoopOp last;
  for (LoopOp loop : function.getBody().getOps<LoopOp>())
    if (!loop.getName().contains('.')) // copies carry the operand's name: x.j
      last = loop;
  return last ? perfectChain(last) : SmallVector<LoopOp>();
}

static int64_t divisorOfDimension(tensor::DimOp dim) {
  auto argument = dyn_cast<BlockArgument>(dim.getSource());
  auto axis = dim.getConstantIndex();
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : nullptr;
  if (!function || !axis)
    return 1;
  auto classes = function.getArgAttrOfType<DenseI64ArrayAttr>(argument.getArgNumber(), "lacis.divisible");
  return classes && *axis < classes.size() ? classes[*axis] : 1;
}

int64_t lacis::knownDivisor(Value size) {
  if (auto constant = getConstantIntValue(size))
    return *constant;
  if (auto dim = size.getDefiningOp<tensor::DimOp>())
    return divisorOfDimension(dim);
  if (auto div = size.getDefiningOp<arith::CeilDivUIOp>())
    if (auto by = getConstantIntValue(div.getRhs()); by && knownDivisor(div.getLhs()) % *by == 0)
      return knownDivisor(div.getLhs()) / *by;
  return 1;
}

std::string lacis::digitName(StringRef letter, unsigned digit, unsigned count) {
  if (count == 1)
    return letter.str();
  if (digit == 0)
    return (letter + "0").str();
  return digitName((letter + "1").str(), digit - 1, count - 1);
}
