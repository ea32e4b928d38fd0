// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i1: for b1: for j1: y += w * x  -->  y tile += w tile * x tile: loops become one product of tiles.
#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Dialect/Lacis/IR/Product.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> TensorizeStepAttr::namedLoops() const {
  return llvm::map_to_vector(getLoops().getAsValueRange<StringAttr>(), [](StringRef name) { return name; });
}

/// What the loops over the rows and over the columns of the main nest's product are called, but for their digits.
static std::optional<std::pair<std::string, std::string>> sideLetters(Nest &nest, std::string &why) {
  std::optional<Product> product = productOf(nest, why);
  return product ? std::optional(std::pair(product->rows.str(), product->columnLoop())) : std::nullopt;
}

/// Has the argument of the function that is the output (the last tensor), or one that has a format, the letter?
static bool hasLetter(func::FuncOp function, StringRef letter, bool isOutput) {
  auto tensors = llvm::make_filter_range(function.getArguments(), [](BlockArgument argument) {
    return isa<RankedTensorType>(argument.getType());
  });
  SmallVector<BlockArgument> arguments(tensors);
  return llvm::any_of(arguments, [&](BlockArgument argument) {
    auto axes = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "lacis.axes");
    bool isStored = cast<RankedTensorType>(argument.getType()).getEncoding() != nullptr;
    return axes && (isOutput ? argument == arguments.back() : isStored) &&
           llvm::is_contained(axes.getAsValueRange<StringAttr>(), letter);
  });
}

/// A loop that no other step has marked and whose count is a constant.
static FailureOr<LoopOp> freeTile(StringRef name, Nest &nest, Location loc) {
  FailureOr<LoopOp> loop = nest.requireFree(name, "tensorize", loc);
  if (succeeded(loop) && !pinTrip(*loop))
    return emitError(loc) << "tensorize: loop '" << name << "' has no constant trip count; split it first";
  return loop;
}

/// The loops of a tile that one warp multiplies, wherever they stand.
static LogicalResult markForWarp(ArrayAttr loops, Nest &nest, Location loc) {
  for (StringRef name : loops.getAsValueRange<StringAttr>()) {
    FailureOr<LoopOp> loop = freeTile(name, nest, loc);
    if (failed(loop))
      return failure();
    StringRef letter = letterOf(name);
    bool kept = hasLetter(nest.getFunction(), letter, /*isOutput=*/true);
    bool stored = hasLetter(nest.getFunction(), letter, /*isOutput=*/false);
    TileSide side = !kept ? TileSide::Depth : stored ? TileSide::Rows : TileSide::Columns;
    loop->setMma(side);
    (*loop)->setLoc(loc);
  }
  return success();
}

/// The statements of a rolled loop, and those before and behind it, are of tiles: their loops have constant counts.
static LogicalResult markStatements(LevelLoopOp round, Location loc) {
  LogicalResult result = success();
  round->getParentOfType<LoopOp>()->walk([&](LoopOp loop) {
    if (loop != round->getParentOfType<LoopOp>() && !pinTrip(loop))
      result = emitError(loc) << "tensorize: loop '" << loop.getName() << "' of a statement has no constant trip count";
  });
  round.setTiled(true);
  round->setLoc(loc);
  return result;
}

/// The order of the loops says nothing, and the kind may be left to the rule.
Attribute TensorizeStepAttr::unify(Attribute open) const {
  auto other = dyn_cast<TensorizeStepAttr>(open);
  if (!other || (getKind() && getKind() != other.getKind()))
    return {};
  auto sorted = [](TensorizeStepAttr step) {
    SmallVector<StringRef> names = step.namedLoops();
    llvm::sort(names);
    return names;
  };
  return sorted(*this) == sorted(other) ? open : Attribute();
}

LogicalResult TensorizeStepAttr::apply(Nest &nest, Location loc) const {
  bool isTf32 = getKind() && getKind().getValue() == "tf32";
  if (getKind() && !isTf32 && getKind().getValue() != "mma")
    return emitError(loc) << "tensorize: no kind " << getKind()
                          << "; there are 'mma', of one warp, and 'tf32', of float32 in 10 bits of the mantissa";
  if (getKind() && !isTf32)
    return markForWarp(getLoops(), nest, loc);
  SmallVector<Operation *> found = nest.findAll(namedLoops().front());
  auto round = getLoops().size() == 1 && found.size() == 1 ? dyn_cast<LevelLoopOp>(found.front()) : LevelLoopOp();
  if (round && round.getRolled())
    return markStatements(round, loc);
  std::string why;
  std::optional<std::pair<std::string, std::string>> letters = sideLetters(nest, why);
  if (!letters)
    return emitError(loc) << "tensorize: the nest is no product of tiles: " << why;
  for (StringRef name : namedLoops()) {
    FailureOr<LoopOp> loop = freeTile(name, nest, loc);
    if (failed(loop))
      return failure();
    StringRef letter = letterOf(name);
    bool isRow = letter == letters->first, isColumn = letter == letters->second;
    loop->setTensorize(isRow ? TileSide::Rows : isColumn ? TileSide::Columns : TileSide::Depth);
    loop->setTf32(isTf32);
    (*loop)->setLoc(loc);
  }
  return success();
}
