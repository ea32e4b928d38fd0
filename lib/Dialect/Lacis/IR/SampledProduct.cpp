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

/// A dense matrix that is read, element by element, as it is or widened.
static BlockArgument matrixOf(Value factor) {
  if (auto wide = factor.getDefiningOp<arith::ExtFOp>())
    factor = wide.getIn();
  auto read = factor.getDefiningOp<ReadOp>();
  return read && !read.getCount() && !read.getAlong() ? dyn_cast<BlockArgument>(read.getTensor()) : BlockArgument();
}

/// What is stored: the sum, rounded, and 0 at padding.
static bool storesSum(SetOp set, LoopOp sum) {
  Value value = set.getValue();
  if (auto entry = value.getDefiningOp<arith::SelectOp>())
    value = entry.getTrueValue();
  if (auto rounded = value.getDefiningOp<arith::TruncFOp>())
    value = rounded.getIn();
  return value == sum->getResult(0);
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
  auto sum = dyn_cast_or_null<arith::AddFOp>(combinerOf(outermost));
  auto lhs = sum ? sum.getLhs().getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  auto rhs = sum ? sum.getRhs().getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  auto factors = lhs ? lhs : rhs;
  auto digits = blockDigits(product.format());
  if (!factors || (lhs && rhs) || !digits)
    return false;
  product.left = matrixOf(factors.getLhs());
  product.right = matrixOf(factors.getRhs());
  if (!product.left || !product.right || product.left == product.right)
    return false;
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
    std::swap(a, b);
  }
  return findLetters(product, axesOf(function, product.output).getValue().take_front(copies), w, a, b);
}

/// The loop over the entries, of the chain, and those over copies.
static void findEntries(SampledProduct &product, ArrayRef<LoopOp> chain) {
  unsigned copies = product.format().getNumBatchLevels();
  for (LoopOp loop : chain.take_front(std::min<size_t>(copies + 1, chain.size())))
    if (!product.entries && isOverPositions(loop))
      product.entries = loop;
    else
      product.batchLoops.push_back(loop);
}

/// The loop over k, or over the first digit of k, and those over the batch, all around it.
static bool findSums(SampledProduct &product, ArrayRef<LoopOp> sums) {
  for (LoopOp loop : sums) {
    StringRef letter = letterOf(loop.getName());
    if (letter == product.depth) {
      product.sum = loop;
      return product.batchLoops.size() == product.batch.size() && llvm::all_of(product.batchLoops, [&](LoopOp own) {
               return llvm::is_contained(product.batch, letterOf(own.getName()));
             });
    }
    product.batchLoops.push_back(loop);
  }
  return false;
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
  findEntries(product, chain);
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
  if (walks || sets.size() != 1 || sums.empty() || !product.entries ||
      sets[0].getTensor() != product.output || sets[0].getCount() || !storesSum(sets[0], sums[0]))
    return why = "it does not store one sum over a dense axis for each entry", std::nullopt;
  Attribute initial;
  if (!matchPattern(sums[0].getInits()[0], m_Constant(&initial)) || !findOperands(product, function, sums[0]) ||
      !findSums(product, sums))
    return why = "it is no product of two dense matrices, sampled where blocks are stored", std::nullopt;
  product.initial = cast<TypedAttr>(initial);
  return product;
}
