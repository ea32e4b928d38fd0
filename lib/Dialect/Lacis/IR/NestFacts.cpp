// SPDX-License-Identifier: Apache-2.0
/// \file
/// What is known of a nest and of the letters of its loops.
#include "lacis/Dialect/Lacis/IR/NestFacts.h"

#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

ArrayRef<Attribute> lacis::axesOf(func::FuncOp function, unsigned argument) {
  auto axes = function.getArgAttrOfType<ArrayAttr>(argument, "lacis.axes");
  return axes ? axes.getValue() : ArrayRef<Attribute>();
}

Attribute lacis::letterOf(Value tensor, unsigned axis) {
  auto argument = dyn_cast<BlockArgument>(tensor);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  ArrayRef<Attribute> letters = function ? axesOf(function, argument.getArgNumber()) : ArrayRef<Attribute>();
  return axis < letters.size() ? letters[axis] : Attribute();
}

bool lacis::hasMarks(LoopOp nest) {
  auto stop = [](LoopOp loop) { return isMarked(loop) ? WalkResult::interrupt() : WalkResult::advance(); };
  return nest->walk(stop).wasInterrupted();
}

void lacis::append(func::FuncOp function, StringRef list, ArrayRef<Attribute> entries) {
  SmallVector<Attribute> all;
  if (auto known = function->getAttrOfType<ArrayAttr>(list))
    llvm::append_range(all, known);
  llvm::append_range(all, entries);
  function->setAttr(list, ArrayAttr::get(function.getContext(), all));
}

bool lacis::rollsOnTiles(func::FuncOp function) {
  auto rolls = function->getAttrOfType<StringAttr>("lacis.rolls");
  return rolls && rolls.getValue().ends_with("tiles");
}

bool lacis::isTensorized(Nest &nest) {
  return nest.getFunction()
      .walk([](Operation *op) {
        auto loop = dyn_cast<LoopOp>(op);
        auto rounds = dyn_cast<LevelLoopOp>(op);
        bool isMarked = loop ? loop.getTensorize().has_value() : rounds && rounds.getTiled();
        return isMarked ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
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

int64_t lacis::divisorOf(func::FuncOp function, Attribute letter) {
  int64_t divisor = 1;
  for (BlockArgument operand : function.getArguments()) {
    auto classes = function.getArgAttrOfType<DenseI64ArrayAttr>(operand.getArgNumber(), "lacis.divisible");
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    for (auto [axis, own] : llvm::enumerate(type ? axesOf(function, operand.getArgNumber()) : ArrayRef<Attribute>()))
      if (own == letter)
        divisor = std::max(divisor, !type.isDynamicDim(axis) ? type.getDimSize(axis) : classes ? classes[axis] : 1);
  }
  return divisor;
}

/// A loop beside `walk` that carries on the same sum, over another part of the operand.
static bool isPartOf(Operation *op, Operation *walk) {
  return isa_and_nonnull<LoopOp, LevelLoopOp>(op) && op->getBlock() == walk->getBlock();
}

bool lacis::isArithmeticOn(Operation *sum, Value value, llvm::function_ref<bool(ReadOp)> takes) {
  llvm::DenseSet<Operation *> seen;
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (op == sum || isPartOf(op, sum) || (op && !seen.insert(op).second))
      continue;
    auto read = dyn_cast_or_null<ReadOp>(op);
    if (!op || (read ? !takes(read) : op->getNumRegions() != 0 || !isPure(op)))
      return false;
    if (!read)
      llvm::append_range(open, op->getOperands());
  }
  return true;
}

using Pairs = llvm::SmallDenseMap<std::pair<Value, Value>, bool>;

/// `asked` has what is known of pairs: values may share what they are made of.
static bool isSameValue(Value a, Value b, KnownSame known, Pairs &asked) {
  if (auto found = asked.find({a, b}); found != asked.end())
    return found->second;
  if (std::optional<bool> answer = known ? known(a, b) : std::nullopt)
    return asked[{a, b}] = *answer;
  if (a == b)
    return true;
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  bool isAlike = x && y && x->getName() == y->getName() && x->getAttrDictionary() == y->getAttrDictionary() &&
                 isMemoryEffectFree(x) && x->getNumRegions() == 0 && x->getNumOperands() == y->getNumOperands() &&
                 cast<OpResult>(a).getResultNumber() == cast<OpResult>(b).getResultNumber();
  bool isSame = isAlike && llvm::all_of(llvm::zip(x->getOperands(), y->getOperands()), [&](auto pair) {
                  return isSameValue(std::get<0>(pair), std::get<1>(pair), known, asked);
                });
  return asked[{a, b}] = isSame;
}

bool lacis::isSameValue(Value a, Value b, KnownSame known) {
  Pairs asked;
  return ::isSameValue(a, b, known, asked);
}
