// SPDX-License-Identifier: Apache-2.0
/// \file
/// What is known of a nest and of the letters of its loops.
#include "lacis/Dialect/Lacis/IR/NestFacts.h"

#include "lacis/Dialect/Lacis/IR/Lacis.h"

using namespace mlir;
using namespace lacis;

ArrayRef<Attribute> lacis::axesOf(func::FuncOp function, unsigned argument) {
  auto axes = function.getArgAttrOfType<ArrayAttr>(argument, "lacis.axes");
  return axes ? axes.getValue() : ArrayRef<Attribute>();
}

StringRef lacis::letterOf(StringRef loop) {
  size_t point = loop.rfind('.'); // of a nest for small sizes
  return (point == StringRef::npos ? loop : loop.substr(point + 1)).rtrim("0123456789");
}

bool lacis::isSampled(Nest &nest) {
  auto type = dyn_cast<RankedTensorType>(nest.getFunction().getArgumentTypes().back());
  return type && type.getEncoding();
}

LevelLoopOp lacis::entryLoop(LoopOp top) {
  LevelLoopOp found;
  unsigned sums = 0;
  top->walk([&](Operation *op) {
    if (!isa<LoopOp, LevelLoopOp>(op) || op->getNumResults() == 0)
      return;
    ++sums;
    found = dyn_cast<LevelLoopOp>(op);
  });
  bool marked = found && (found.getUnroll() || found.getPipeline());
  if (found && found->getParentOfType<LevelLoopOp>()) // whose rounds differ from lane to lane
    return {};
  return sums == 1 && found && isStateless(found) && !marked && reductionOf(found) ? found : LevelLoopOp();
}

/// The letters of which `fact` is known.
static SmallVector<StringRef> lettersWith(Nest &nest, StringRef fact) {
  SmallVector<StringRef> letters;
  func::FuncOp function = nest.getFunction();
  for (unsigned number = 0; number < function.getNumArguments(); ++number)
    if (auto flags = function.getArgAttrOfType<DenseBoolArrayAttr>(number, fact))
      for (auto [flag, axis] : llvm::zip(flags.asArrayRef(), axesOf(function, number)))
        if (flag)
          letters.push_back(cast<StringAttr>(axis).getValue());
  return letters;
}

bool lacis::letterHas(Nest &nest, StringRef letter, StringRef fact) {
  return llvm::is_contained(lettersWith(nest, fact), letter);
}

bool lacis::summedHas(Nest &nest, StringRef fact) {
  func::FuncOp function = nest.getFunction();
  ArrayRef<Attribute> kept = axesOf(function, function.getNumArguments() - 1);
  return llvm::any_of(lettersWith(nest, fact), [&](StringRef letter) {
    return llvm::none_of(kept, [&](Attribute axis) { return cast<StringAttr>(axis).getValue() == letter; });
  });
}
