// SPDX-License-Identifier: Apache-2.0
/// \file
/// Recognises a sum of products of two matrices in a nest.
#include "lacis/Dialect/Lacis/IR/Product.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace lacis;

FormatAttr Product::format() const { return formatOf(tensor); }

StringRef Product::walkName() const {
  auto loop = dyn_cast<LoopOp>(walk);
  return loop ? loop.getName() : cast<LevelLoopOp>(walk).getName();
}

std::string Product::columnLoop() const {
  std::string name;
  for (StringRef letter : isFolded() ? ArrayRef(batch) : ArrayRef<StringRef>())
    name += letter.str() + "_";
  return name + columns.str();
}

/// Every coordinate of both axes has a place.
static bool isMatrix(FormatAttr format) {
  return format.getAxes().size() == 2 && format.getLevels().size() == 2 &&
         llvm::all_of(format.getLevels(), [](LevelAttr level) {
           ArrayRef<Digit> digits = level.getDigits();
           return level.getExtent().coversDomain() && level.getCoordinate().isImplicit() && digits.size() == 1 &&
                  digits[0].div == 1 && digits[0].mod == 0;
         });
}

StoredBlock Product::block() const {
  ArrayRef<LevelAttr> levels = format().getLevels();
  if (isMatrix(format())) {
    auto function = cast<func::FuncOp>(stored.getOwner()->getParentOp());
    auto axes = function.getArgAttrOfType<ArrayAttr>(stored.getArgNumber(), "lacis.axes");
    bool transposed = cast<StringAttr>(axes[levels[0].getDigits()[0].axis]).getValue() != rows;
    return {0, 0, transposed, /*isMatrix=*/true};
  }
  if (format().getAxes().size() != 2 || format().getNumTileLevels() != 2)
    return {};
  ArrayRef<Digit> first = levels[levels.size() - 2].getDigits(), last = levels.back().getDigits();
  if (first.size() != 1 || last.size() != 1 || first[0].div != 1 || last[0].div != 1 || first[0].axis == last[0].axis)
    return {};
  auto function = cast<func::FuncOp>(stored.getOwner()->getParentOp());
  auto axes = function.getArgAttrOfType<ArrayAttr>(stored.getArgNumber(), "lacis.axes");
  if (cast<StringAttr>(axes[first[0].axis]).getValue() == rows)
    return {first[0].mod, last[0].mod, false};
  return {last[0].mod, first[0].mod, true};
}

/// What is walked through a companion.
static Value behindWalk(Value tensor) {
  auto walk = tensor.getDefiningOp<WalkOp>();
  return walk ? walk.getSource() : tensor;
}

/// The argument that a tensor is, or is a part of.
static BlockArgument argumentOf(Value tensor) {
  auto part = tensor.getDefiningOp<PartOp>();
  return dyn_cast<BlockArgument>(part ? part.getSource() : tensor);
}

static ArrayAttr axesOf(func::FuncOp function, BlockArgument argument) {
  return function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "lacis.axes");
}

Value lacis::behindCast(Value value) {
  auto wide = value.getDefiningOp<arith::ExtFOp>();
  return wide ? wide.getIn() : value;
}

/// The two factors of what the walk sums up: one from the stored operand, one from a dense one.
static bool findFactors(Product &product) {
  arith::MulFOp factors = factorsOf(product.walk);
  if (!factors)
    return false;
  Value one = behindCast(factors.getLhs()), other = behindCast(factors.getRhs());
  if (one.getDefiningOp<ReadOp>())
    std::swap(one, other);
  auto value = one.getDefiningOp<ValueOp>();
  auto read = other.getDefiningOp<ReadOp>();
  if (!value || !read || read.getCount() || read.getAlong())
    return false;
  product.tensor = behindWalk(value.getTensor());
  product.stored = argumentOf(product.tensor);
  product.read = read;
  product.dense = dyn_cast<BlockArgument>(read.getTensor());
  return product.stored && product.dense && product.stored != product.dense;
}

std::optional<ArrayRef<Attribute>> lacis::batchLetters(ArrayAttr w, ArrayAttr a, ArrayAttr b) {
  auto isMatrix = [](ArrayAttr axes) {
    llvm::SmallDenseSet<Attribute> letters;
    return axes && axes.size() >= 2 && llvm::all_of(axes, [&](Attribute axis) { return letters.insert(axis).second; });
  };
  if (!isMatrix(a) || !isMatrix(b))
    return std::nullopt;
  ArrayRef<Attribute> batch = a.getValue().drop_back(2);
  bool isNew = llvm::none_of(batch, [&](Attribute h) { return llvm::is_contained(w, h); });
  return isNew && batch == b.getValue().drop_back(2) ? std::optional(batch) : std::nullopt;
}

/// The letters of w[m, k], x[h, n, k] and y[h, n, m], the last two of each in any order: what two of them share.
static bool findLetters(Product &product, func::FuncOp function) {
  ArrayAttr w = axesOf(function, product.stored), x = axesOf(function, product.dense);
  ArrayAttr y = axesOf(function, product.output);
  std::optional<ArrayRef<Attribute>> batch = areOfMatrix(w) ? batchLetters(w, x, y) : std::nullopt;
  if (!batch)
    return false;
  for (Attribute letter : *batch)
    product.batch.push_back(cast<StringAttr>(letter).getValue());
  ArrayRef<Attribute> dense = x.getValue().take_back(2), output = y.getValue().take_back(2);
  product.isDepthFirst = llvm::is_contained(w, dense[0]);
  product.isRowsFirst = llvm::is_contained(w, output[0]);
  Attribute n = dense[product.isDepthFirst], k = dense[!product.isDepthFirst], m = output[!product.isRowsFirst];
  if (output[product.isRowsFirst] != n || k == m || llvm::is_contained(w, n) || !llvm::is_contained(w, k) ||
      !llvm::is_contained(w, m))
    return false;
  product.columns = cast<StringAttr>(n).getValue();
  product.rows = cast<StringAttr>(m).getValue();
  product.depth = cast<StringAttr>(k).getValue();
  return true;
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

std::optional<ReadOp> Product::residual() {
  auto function = cast<func::FuncOp>(stored.getOwner()->getParentOp());
  auto letter = StringAttr::get(function.getContext(), rows), across = StringAttr::get(function.getContext(), columns);
  ReadOp found;
  bool isKnown = isArithmeticOn(walk, write.getValue(), [&](ReadOp read) {
    auto operand = dyn_cast<BlockArgument>(read.getTensor());
    ArrayAttr axes = operand ? axesOf(function, operand) : ArrayAttr();
    bool isResidual = axes == axesOf(function, output) && llvm::equal(read.getIndices(), write.getIndices()) &&
                      !found && getElementTypeOrSelf(operand) == getElementTypeOrSelf(dense);
    bool isVector = axes && axes.size() == 1 && (axes[0] == letter || (axes[0] == across && !isFolded()));
    found = isResidual ? read : found;
    return axes && !formatOf(operand) && (isResidual || axes.empty() || isVector);
  });
  return isKnown ? std::optional(found) : std::nullopt;
}

/// The one walk and the one write of a nest; false where there are more. Loops of other parts than `part` are left out,
/// where it is named.
static bool findWalk(Product &product, LoopOp top, StringRef part) {
  unsigned walks = 0, writes = 0;
  LoopOp sum; // the outermost one, where nothing is walked
  top->walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto name = op->getAttrOfType<StringAttr>("name");
    bool isLoop = isa<LoopOp, LevelLoopOp>(op);
    if (isLoop && !part.empty() && name.getValue().contains('.') && !name.getValue().starts_with((part + ".").str()))
      return WalkResult::skip();
    if (auto write = dyn_cast<WriteOp>(op))
      product.write = write, ++writes;
    if (isa<LevelLoopOp>(op))
      product.walk = op, ++walks;
    auto loop = dyn_cast<LoopOp>(op);
    if (loop && loop.getNumResults() == 1 && !sum)
      sum = loop;
    return WalkResult::advance();
  });
  if (walks == 0 && sum)
    product.walk = sum, ++walks;
  return walks == 1 && writes == 1 && product.walk->getNumResults() == 1;
}

/// What the sum begins with: a constant, or what was summed up before; of one part of several, anything.
static bool findStart(Product &product, bool isPart) {
  Value start = product.walk->getOperands().back();
  Attribute initial;
  if (matchPattern(start, m_Constant(&initial)))
    product.initial = cast<TypedAttr>(initial);
  auto read = start.getDefiningOp<ReadOp>();
  if (read && read.getTensor().getDefiningOp<WorkspaceOp>() && !read.getCount() && !read.getAlong())
    product.start = read;
  return isPart || product.initial || product.start;
}

std::optional<Product> lacis::productOf(Nest &nest, std::string &why, StringRef part) {
  func::FuncOp function = nest.getFunction();
  Product product;
  product.output = function.getArguments().back();
  SmallVector<LoopOp> chain = nest.mainChain();
  if (chain.empty() || !findWalk(product, chain.front(), part) || product.write.getTensor() != product.output)
    return why = "it has not one loop over the positions of a level, under an output of its own", std::nullopt;
  if (!findStart(product, !part.empty()) || !findFactors(product))
    return why = "it does not sum products of a stored and a dense element", std::nullopt;
  if (!findLetters(product, function)) {
    ArrayAttr x = axesOf(function, product.dense);
    why = x && x.size() > 2 ? "letters of a batch come first in the dense operand and in the output, in one order"
                            : "it is no product of two matrices, of which one has a format";
    return std::nullopt;
  }
  return product;
}

FormatAttr lacis::accumulatorTiles(MLIRContext *context, StringRef n, StringRef m, int64_t columns, int64_t rows) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "#lacis.format<(" << n << ", " << m << ") -> (" << n << " floordiv " << columns << " : dense, " << m
      << " floordiv " << rows << " : dense, " << m << " mod " << rows << " : dense, " << n << " mod " << columns
      << " : dense)>";
  return cast<FormatAttr>(parseAttribute(text, context));
}
