// SPDX-License-Identifier: Apache-2.0
/// \file
/// Recognises a product of two dense matrices that is sampled on a pattern.
#include "lacis/Dialect/Lacis/IR/SampledProduct.h"

#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Dialect/Lacis/IR/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lacis;

static ArrayAttr axesOf(func::FuncOp function, BlockArgument argument) {
  return function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "lacis.axes");
}

static StringRef letter(ArrayAttr axes, unsigned axis) { return cast<StringAttr>(axes[axis]).getValue(); }

/// The two levels of a stored block, in the order of the values; nullopt where there are not just these.
static std::optional<std::pair<Digit, Digit>> blockDigits(FormatAttr format) {
  ArrayRef<LevelAttr> levels = format.getLevels();
  if (format.getAxes().size() != 2 + format.getNumBatchLevels() || format.getNumTileLevels() != 2)
    return std::nullopt;
  ArrayRef<Digit> first = levels[levels.size() - 2].getDigits(), last = levels.back().getDigits();
  if (first.size() != 1 || last.size() != 1 || first[0].div != 1 || last[0].div != 1 || first[0].axis == last[0].axis)
    return std::nullopt;
  return std::pair(first[0], last[0]);
}

std::pair<int64_t, int64_t> SampledProduct::block() const {
  auto digits = blockDigits(format());
  return digits ? std::pair(digits->first.mod, digits->second.mod) : std::pair<int64_t, int64_t>(0, 0);
}

bool lacis::isOverPositions(LoopOp loop) {
  Value size = loop.getUpper();
  while (auto shares = size.getDefiningOp<arith::CeilDivUIOp>())
    size = shares.getLhs();
  return size.getDefiningOp<PositionsOp>() != nullptr;
}

/// The read of a dense matrix, element by element, that a factor is; null of others.
static ReadOp readOf(Value factor) {
  auto read = behindCast(factor).getDefiningOp<ReadOp>();
  return read && !read.getCount() && !read.getAlong() && isa<BlockArgument>(read.getTensor()) ? read : ReadOp();
}

/// What is stored where an entry is, before it is rounded; elsewhere 0 is.
static Value resultOf(SetOp set) {
  Value value = set.getValue();
  if (auto entry = value.getDefiningOp<arith::SelectOp>(); entry && entry.getCondition().getDefiningOp<EntryOp>())
    value = entry.getTrueValue();
  auto rounded = value.getDefiningOp<arith::TruncFOp>();
  return rounded ? rounded.getIn() : value;
}

static bool followsSum(SampledProduct &product, LoopOp sum) {
  auto function = cast<func::FuncOp>(product.output.getOwner()->getParentOp());
  return isArithmeticOn(sum, product.result, [&](ReadOp read) {
    auto operand = dyn_cast<BlockArgument>(read.getTensor());
    ArrayAttr axes = operand && !formatOf(operand) ? axesOf(function, operand) : ArrayAttr();
    return axes && (axes.empty() || (axes.size() == 1 && letter(axes, 0) == product.columns));
  });
}

/// The first axes of a format are those of the levels of its batch, in their order.
static bool beginsWithBatch(FormatAttr format) {
  for (auto [axis, level] : llvm::enumerate(format.getLevels().take_front(format.getNumBatchLevels())))
    if (level.getDigits().size() != 1 || level.getDigits()[0].axis != axis)
      return false;
  return true;
}

/// The letters of a[h, k, m], b[h, k, n] and w[m, n], the last two of each operand in any order; `copies` are those of
/// w[h, m, n].
static bool findLetters(SampledProduct &product, ArrayRef<Attribute> copies, ArrayAttr w, ArrayAttr a, ArrayAttr b) {
  std::optional<ArrayRef<Attribute>> batch = batchLetters(w, a, b);
  if (!batch || (product.hasCopies && *batch != copies))
    return false;
  for (Attribute h : *batch)
    product.batch.push_back(cast<StringAttr>(h).getValue());
  auto left = [&](unsigned axis) { return letter(a, product.batch.size() + axis); };
  auto right = [&](unsigned axis) { return letter(b, product.batch.size() + axis); };
  product.isLeftAlong = left(0) == product.rows;
  product.isRightAlong = right(0) == product.columns;
  product.depth = left(product.isLeftAlong ? 1 : 0);
  return left(product.isLeftAlong ? 0 : 1) == product.rows && product.depth != product.columns &&
         right(product.isRightAlong ? 0 : 1) == product.columns && right(product.isRightAlong ? 1 : 0) == product.depth;
}

/// The operands and letters of a sum of products a[k, m] b[k, n] into w[m, n], the axes of a and of b in any order.
static bool findOperands(SampledProduct &product, func::FuncOp function, LoopOp outermost) {
  arith::MulFOp factors = factorsOf(outermost);
  auto digits = blockDigits(product.format());
  if (!factors || !digits)
    return false;
  product.readLeft = readOf(factors.getLhs());
  product.readRight = readOf(factors.getRhs());
  if (!product.readLeft || !product.readRight || product.readLeft.getTensor() == product.readRight.getTensor())
    return false;
  product.left = cast<BlockArgument>(product.readLeft.getTensor());
  product.right = cast<BlockArgument>(product.readRight.getTensor());
  ArrayAttr w = axesOf(function, product.output), a = axesOf(function, product.left);
  ArrayAttr b = axesOf(function, product.right);
  unsigned copies = product.format().getNumBatchLevels();
  if (!w || w.size() != copies + 2 || w[copies] == w[copies + 1] || !a || !b || !beginsWithBatch(product.format()))
    return false;
  product.hasCopies = copies != 0;
  product.rowAxis = digits->first.axis - copies;
  w = ArrayAttr::get(w.getContext(), w.getValue().take_back(2));
  product.rows = letter(w, product.rowAxis);
  product.columns = letter(w, 1 - product.rowAxis);
  if (!llvm::is_contained(a, w[product.rowAxis])) {
    std::swap(product.left, product.right);
    std::swap(product.readLeft, product.readRight);
    std::swap(a, b);
  }
  return findLetters(product, axesOf(function, product.output).getValue().take_front(copies), w, a, b);
}

/// The last letter of a loop, which may be one with loops around.
static StringRef lastLetter(LoopOp loop) {
  StringRef letters = letterOf(loop.getName());
  return letters.substr(letters.rfind('_') + 1);
}

/// Of the chain the loop over the entries and those over copies, of the sums the one over k, or over its first digit,
/// alone or with the batch, and those over the batch around it.
static bool findLoops(SampledProduct &product, ArrayRef<LoopOp> chain, ArrayRef<LoopOp> sums) {
  auto isOfBatch = [&](LoopOp loop) { return llvm::is_contained(product.batch, lastLetter(loop)); };
  for (LoopOp loop : chain)
    if (!product.entries && isOverPositions(loop))
      product.entries = loop;
    else if (isOfBatch(loop))
      product.batchLoops.push_back(loop);
  const LoopOp *sum = llvm::find_if(sums, [&](LoopOp loop) { return lastLetter(loop) == product.depth; });
  if (sum == sums.end() || !product.entries)
    return false;
  product.sum = *sum;
  sums = sums.take_front(sum - sums.begin());
  llvm::append_range(product.batchLoops, sums);
  return llvm::all_of(sums, isOfBatch);
}

std::optional<SampledProduct> lacis::sampledProductOf(Nest &nest, std::string &why) {
  func::FuncOp function = nest.getFunction();
  SampledProduct product;
  product.output = function.getArguments().back();
  auto pattern = function.getArgAttrOfType<IntegerAttr>(product.output.getArgNumber(), "lacis.sample");
  SmallVector<LoopOp> chain = nest.mainChain();
  if (!pattern || chain.empty() || !formatOf(product.output))
    return std::nullopt; // who asks why has seen the pattern
  product.pattern = function.getArgument(pattern.getInt());
  SmallVector<SetOp> sets;
  SmallVector<LoopOp> sums;
  bool walks = false;
  chain.front()->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto set = dyn_cast<SetOp>(op))
      sets.push_back(set);
    auto loop = dyn_cast<LoopOp>(op);
    if (loop && loop.getNumResults() == 1)
      sums.push_back(loop);
    walks |= isa<LevelLoopOp>(op);
  });
  if (walks || sets.size() != 1 || sums.empty() || sets[0].getTensor() != product.output || sets[0].getCount())
    return why = "it does not store one sum over a dense axis for each entry", std::nullopt;
  Attribute initial;
  if (!matchPattern(sums[0].getInits()[0], m_Constant(&initial)) || !findOperands(product, function, sums[0]) ||
      !findLoops(product, chain, sums))
    return why = "it is no product of two dense matrices, sampled where blocks are stored", std::nullopt;
  product.initial = cast<TypedAttr>(initial);
  product.result = resultOf(sets[0]);
  if (product.result.getType() != sums[0]->getResult(0).getType() || !followsSum(product, sums[0]))
    return why = ("what follows the sum is no arithmetic on numbers and on vectors along '" + product.columns +
                  "', rounded last")
                     .str(),
           std::nullopt;
  return product;
}
