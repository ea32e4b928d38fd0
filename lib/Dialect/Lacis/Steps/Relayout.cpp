// SPDX-License-Identifier: Apache-2.0
/// \file
/// The nest reads a copy of a dense operand in another layout, made by a nest before it; or it writes
/// the output in another layout, and a nest after it copies that to its place.
#include "lacis/Dialect/Lacis/IR/Guards.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lacis;

namespace {
/// Builds the workspace and the nest that fills or empties it, level by level of the layout.
struct Copy {
  OpBuilder b;
  Location loc;
  Value tensor; // the operand, or the output
  bool isOutput;
  FormatAttr layout;
  PathAttr path; // of the loops
  SmallVector<std::string> letters; // of the operand's axes
  SmallVector<Value> sizes;

  Value makeWorkspace() {
    auto type = cast<RankedTensorType>(tensor.getType());
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      sizes.push_back(tensor::DimOp::create(b, loc, tensor, axis));
    auto laidOut = RankedTensorType::get(type.getShape(), type.getElementType(), layout);
    return WorkspaceOp::create(b, loc, laidOut, sizes);
  }

  LoopOp openLoop(OpBuilder &inner, Digit digit, unsigned rank, unsigned count) {
    Value upper = digit.mod ? arith::ConstantIndexOp::create(b, loc, digit.mod).getResult() : sizes[digit.axis];
    if (!digit.mod && digit.div != 1)
      upper = arith::CeilDivUIOp::create(b, loc, upper, arith::ConstantIndexOp::create(b, loc, digit.div));
    return LoopOp::create(inner, loc, {digitName(letters[digit.axis], rank, count), path}, upper);
  }

  void copy(Value workspace) {
    SmallVector<Digit> digits;
    for (LevelAttr level : layout.getLevels())
      llvm::append_range(digits, level.getDigits());
    SmallVector<LoopOp> loops;
    SmallVector<Value> coordinates(sizes.size());
    for (Digit digit : digits) {
      unsigned count = llvm::count_if(digits, [&](Digit d) { return d.axis == digit.axis; });
      unsigned rank = llvm::count_if(digits, [&](Digit d) { return d.axis == digit.axis && d.div > digit.div; });
      OpBuilder inner = loops.empty() ? b : OpBuilder::atBlockEnd(loops.back().getBlock());
      loops.push_back(openLoop(inner, digit, rank, count));
      b.setInsertionPoint(loops.front()); // sizes stand before the nest
    }
    OpBuilder body = OpBuilder::atBlockEnd(loops.back().getBlock());
    for (auto [digit, loop] : llvm::zip(digits, loops)) {
      Value term = loop.getCoordinate();
      if (digit.div != 1)
        term = arith::MulIOp::create(body, loc, term, arith::ConstantIndexOp::create(body, loc, digit.div));
      Value &sum = coordinates[digit.axis];
      sum = sum ? arith::AddIOp::create(body, loc, sum, term).getResult() : term;
    }
    Value inside = insideAxes(body, coordinates, digits);
    if (isOutput)
      store(body, workspace, coordinates, inside);
    else
      WriteOp::create(body, loc, load(body, coordinates, inside), workspace, coordinates, Value(), IntegerAttr());
    for (LoopOp loop : loops) {
      OpBuilder end = OpBuilder::atBlockEnd(loop.getBlock());
      YieldOp::create(end, loc);
    }
  }

  /// True where the coordinates lie inside the axes; null where the layout pads no axis.
  Value insideAxes(OpBuilder &body, ArrayRef<Value> coordinates, ArrayRef<Digit> digits) {
    Value inside;
    for (auto [axis, size] : llvm::enumerate(sizes)) {
      int64_t largest = 1;
      for (Digit digit : digits)
        if (digit.axis == axis)
          largest = std::max(largest, digit.div);
      if (fillStrips(size, largest))
        continue;
      Value ok = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::slt, coordinates[axis], size);
      inside = inside ? arith::AndIOp::create(body, loc, inside, ok).getResult() : ok;
    }
    return inside;
  }

  Value read(OpBuilder &at, Value from, ArrayRef<Value> coordinates) {
    Type element = cast<RankedTensorType>(from.getType()).getElementType();
    return ReadOp::create(at, loc, element, from, coordinates, Value(), IntegerAttr());
  }

  /// The operand's element, or zero in the padding.
  Value load(OpBuilder &body, ArrayRef<Value> coordinates, Value inside) {
    if (!inside)
      return read(body, tensor, coordinates);
    Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
    auto guard = scf::IfOp::create(body, loc, element, inside, /*withElseRegion=*/true);
    OpBuilder then = guard.getThenBodyBuilder(), otherwise = guard.getElseBodyBuilder();
    scf::YieldOp::create(then, loc, read(then, tensor, coordinates));
    Value zero = arith::ConstantOp::create(otherwise, loc, otherwise.getZeroAttr(element));
    scf::YieldOp::create(otherwise, loc, zero);
    return guard.getResult(0);
  }

  /// Stores an element of the workspace in the output, but for the padding.
  void store(OpBuilder &body, Value workspace, ArrayRef<Value> coordinates, Value inside) {
    OpBuilder at = body;
    if (inside)
      at = scf::IfOp::create(body, loc, inside, /*withElseRegion=*/false).getThenBodyBuilder();
    Value value = read(at, workspace, coordinates);
    WriteOp::create(at, loc, value, tensor, coordinates, Value(), IntegerAttr());
  }
};
} // namespace

SmallVector<StringRef> RelayoutStepAttr::namedLoops() const { return {}; }

/// The letters of an operand's axes, or i, j, ... where the expression did not name them.
static SmallVector<std::string> lettersOf(func::FuncOp function, BlockArgument argument) {
  SmallVector<std::string> letters;
  if (auto axes = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "lacis.axes"))
    for (StringRef letter : axes.getAsValueRange<StringAttr>())
      letters.push_back(letter.str());
  for (int64_t axis = letters.size(); axis < cast<RankedTensorType>(argument.getType()).getRank(); ++axis)
    letters.push_back(std::string(1, static_cast<char>('i' + axis)));
  return letters;
}

/// The axes stored in reverse: (b, j) -> (j : dense, b : dense).
static FormatAttr reversed(MLIRContext *context, ArrayRef<std::string> letters) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "#lacis.format<(" << llvm::join(letters, ", ") << ") -> (";
  llvm::interleaveComma(llvm::reverse(letters), out, [&](StringRef letter) { out << letter << " : dense"; });
  out << ")>";
  return cast<FormatAttr>(parseAttribute(text, context));
}

/// The nest for small sizes, or of a part of a sum, that is called `prefix`, or the main one; null where there is none.
static LoopOp nestCalled(Nest &nest, StringRef prefix) {
  if (prefix.empty())
    return nest.mainChain().front();
  for (LoopOp loop : nest.getFunction().getBody().getOps<LoopOp>())
    if (PathAttr path = loop.getPathAttr();
        path && path.spell() == prefixOf(prefix) && (caseOf(loop) || llvm::is_contained(nest.parts(), prefix)))
      return loop;
  return {};
}

LogicalResult RelayoutStepAttr::apply(Nest &nest, Location loc) const {
  auto [prefix, name] = splitName(getOperand());
  Value tensor = nest.findOperand(name);
  LoopOp main = nestCalled(nest, prefix);
  if (!tensor || !main)
    return emitError(loc) << "relayout: no operand named '" << getOperand() << "'";
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getEncoding())
    return emitError(loc) << "relayout: operand '" << getOperand() << "' is sparse; its format says how it is stored";
  func::FuncOp function = nest.getFunction();
  SmallVector<std::string> letters = lettersOf(function, cast<BlockArgument>(tensor));
  auto layout = getLayout() ? dyn_cast<FormatAttr>(getLayout()) : reversed(getContext(), letters);
  if (!layout || layout.getAxes().size() != static_cast<size_t>(type.getRank()) ||
      !llvm::all_of(layout.getLevels(), [](LevelAttr level) { return level.getExtent().coversDomain(); }))
    return emitError(loc) << "relayout: the layout of '" << getOperand() << "' must be dense levels over its axes";
  bool isOutput = cast<BlockArgument>(tensor).getArgNumber() + 1 == function.getNumArguments();
  if (isOutput && function.getArgAttr(function.getNumArguments() - 1, "lacis.listed"))
    return emitError(loc) << "relayout: rows that an operand lists are written where they lie in '" << name
                          << "'; own of the operand with 'companion' runs over all rows";
  // What is added to atomically was set before, in a nest of its own; rows that run apart have one too.
  SmallVector<LoopOp> nests;
  SmallVector<LoopOp> classes = classNests(main);
  for (LoopOp loop : function.getBody().getOps<LoopOp>())
    if (llvm::is_contained(classes, loop) || (prefix.empty() && ((isOutput && loop.getBegins()) || isApart(loop))))
      nests.push_back(loop);
  auto isInside = [&](Operation *user) {
    return llvm::any_of(nests, [&](LoopOp loop) { return loop->isProperAncestor(user); });
  };
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : tensor.getUses())
    if (isInside(use.getOwner()) &&
        (isOutput ? isa<WriteOp>(use.getOwner()) : isa<ReadOp>(use.getOwner())))
      uses.push_back(&use);
  if (uses.empty())
    return emitError(loc) << "relayout: nothing in the nest reads or writes '" << getOperand() << "'";
  PathAttr path = join(main.getPathAttr(), pathOf(getContext(), PathKind::Copy, name));
  Copy copy{OpBuilder(nests.front()), loc, tensor, isOutput, layout, path, letters, {}};
  Value workspace = copy.makeWorkspace();
  for (OpOperand *use : uses)
    use->set(workspace);
  if (isOutput)
    copy.b.setInsertionPointAfter(main);
  copy.copy(workspace);
  return success();
}
