// SPDX-License-Identifier: Apache-2.0
/// \file
/// Recognises a product of two dense matrices that is sampled on a pattern.
#include "lacis/Dialect/Lacis/IR/SampledProduct.h"

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
  if (format.getAxes().size() != 2 || format.getNumTileLevels() != 2)
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

/// The operands and letters of a sum of products a[k, m] b[k, n] into w[m, n], the axes of a and of b in any order.
static bool findOperands(SampledProduct &product, func::FuncOp function) {
  auto sum = dyn_cast_or_null<arith::AddFOp>(combinerOf(product.sum));
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
  if (!areOfMatrix(w) || !areOfMatrix(a) || !areOfMatrix(b))
    return false;
  product.rowAxis = digits->first.axis;
  product.rows = letter(w, product.rowAxis);
  product.columns = letter(w, 1 - product.rowAxis);
  if (!llvm::is_contained(a, w[product.rowAxis])) {
    std::swap(product.left, product.right);
    std::swap(a, b);
  }
  product.isLeftAlong = letter(a, 0) == product.rows;
  product.isRightAlong = letter(b, 0) == product.columns;
  product.depth = letter(a, product.leftDepth());
  return letter(a, 1 - product.leftDepth()) == product.rows && product.depth != product.columns &&
         letter(b, product.isRightAlong ? 0 : 1) == product.columns &&
         letter(b, product.isRightAlong ? 1 : 0) == product.depth;
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
  product.entries = chain.front();
  SmallVector<SetOp> sets;
  bool walks = false;
  product.entries->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto set = dyn_cast<SetOp>(op))
      sets.push_back(set);
    auto loop = dyn_cast<LoopOp>(op);
    if (loop && loop.getNumResults() == 1 && !product.sum)
      product.sum = loop;
    walks |= isa<LevelLoopOp>(op);
  });
  if (walks || sets.size() != 1 || !product.sum || !isOverPositions(product.entries) ||
      sets[0].getTensor() != product.output || sets[0].getCount() || !storesSum(sets[0], product.sum))
    return why = "it does not store one sum over a dense axis for each entry", std::nullopt;
  Attribute initial;
  if (!matchPattern(product.sum.getInits()[0], m_Constant(&initial)) || !findOperands(product, function))
    return why = "it is no product of two dense matrices, sampled where blocks are stored", std::nullopt;
  product.initial = cast<TypedAttr>(initial);
  return product;
}
