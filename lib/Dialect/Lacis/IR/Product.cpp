// SPDX-License-Identifier: Apache-2.0
/// \file
/// Recognises a sum of products of two matrices in a nest, and one that is sampled on a pattern.
#include "lacis/Dialect/Lacis/IR/Product.h"
#include "lacis/Dialect/Lacis/IR/NestFacts.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace lacis;

//===- Letters and blocks -------------------------------------------------===//

static ArrayAttr lettersOf(func::FuncOp function, BlockArgument argument) {
  return function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "lacis.axes");
}

static StringRef letter(Attribute axis) { return cast<StringAttr>(axis).getValue(); }

static ArrayRef<Attribute> lastTwo(ArrayAttr axes) { return axes.getValue().take_back(2); }

/// The one of the last two letters that both have, or null.
static Attribute sharedLetter(ArrayAttr one, ArrayAttr other) {
  auto has = [&](Attribute axis) { return llvm::is_contained(lastTwo(other), axis); };
  bool second = has(lastTwo(one)[1]);
  return has(lastTwo(one)[0]) == second ? Attribute() : lastTwo(one)[second];
}

/// The letters of result += left * right by which of the three have them, and the batch before these; false where it is no
/// product of matrices.
static bool findLetters(Contraction &found, ArrayAttr result, ArrayAttr left, ArrayAttr right) {
  ArrayRef<Attribute> batch;
  for (ArrayAttr axes : {result, left, right}) {
    llvm::SmallDenseSet<Attribute> letters;
    if (!axes || axes.size() < 2 || !llvm::all_of(axes, [&](Attribute axis) { return letters.insert(axis).second; }))
      return false;
    ArrayRef<Attribute> own = axes.getValue().drop_back(2);
    if (!own.empty() && !batch.empty() && own != batch)
      return false;
    batch = own.empty() ? batch : own;
  }
  Attribute m = sharedLetter(result, left), n = sharedLetter(result, right), k = sharedLetter(left, right);
  if (!m || !n || !k || m == n || m == k || n == k)
    return false;
  found.rows = letter(m), found.columns = letter(n), found.depth = letter(k);
  for (Attribute h : batch)
    found.batch.push_back(letter(h));
  return true;
}

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

//===- A stored and a dense matrix ----------------------------------------===//

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
    bool transposed = letter(lettersOf(function, stored)[levels[0].getDigits()[0].axis]) != rows;
    return {0, 0, transposed, /*isMatrix=*/true};
  }
  auto digits = blockDigits(format());
  if (!digits)
    return {};
  auto [first, last] = *digits;
  auto function = cast<func::FuncOp>(stored.getOwner()->getParentOp());
  if (letter(lettersOf(function, stored)[first.axis]) == rows)
    return {first.mod, last.mod, false};
  return {last.mod, first.mod, true};
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

/// The letters of w[m, k], x[h, n, k] and y[h, n, m].
static bool findLetters(Product &product, func::FuncOp function) {
  ArrayAttr w = lettersOf(function, product.stored), x = lettersOf(function, product.dense);
  ArrayAttr y = lettersOf(function, product.output);
  if (!w || !x || !y || w.size() != 2 || x.size() != y.size() || !findLetters(product, y, w, x))
    return false;
  product.isDepthFirst = letter(lastTwo(x)[0]) == product.depth;
  product.isRowsFirst = letter(lastTwo(y)[0]) == product.rows;
  return true;
}

std::optional<ReadOp> Product::residual() {
  auto function = cast<func::FuncOp>(stored.getOwner()->getParentOp());
  auto letter = StringAttr::get(function.getContext(), rows), across = StringAttr::get(function.getContext(), columns);
  ReadOp found;
  bool isKnown = isArithmeticOn(walk, write.getValue(), [&](ReadOp read) {
    auto operand = dyn_cast<BlockArgument>(read.getTensor());
    ArrayAttr axes = operand ? lettersOf(function, operand) : ArrayAttr();
    bool isResidual = axes == lettersOf(function, output) && llvm::equal(read.getIndices(), write.getIndices()) &&
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
    auto own = dyn_cast<LoopOpInterface>(op);
    PathAttr path = own ? own.getPathAttr() : PathAttr();
    if (path && !part.empty() && path.first(PathKind::Part) != part)
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
    ArrayAttr x = lettersOf(function, product.dense);
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

//===- Two dense matrices, sampled ----------------------------------------===//

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
    ArrayAttr axes = operand && !formatOf(operand) ? lettersOf(function, operand) : ArrayAttr();
    return axes && (axes.empty() || (axes.size() == 1 && letter(axes[0]) == product.columns));
  });
}

/// Padding holds zeros: a sum is 0 there, what follows it need not be.
static bool keepsPadding(SampledProduct &product, LoopOp sum) {
  auto function = cast<func::FuncOp>(product.output.getOwner()->getParentOp());
  auto divides = [&](StringRef letter, int64_t block) {
    return block && divisorOf(function, StringAttr::get(function.getContext(), letter)) % block == 0;
  };
  auto [height, width] = product.block();
  return product.result == sum->getResult(0) || (divides(product.rows, height) && divides(product.columns, width));
}

/// The first axes of a format are those of the levels of its batch, in their order.
static bool beginsWithBatch(FormatAttr format) {
  for (auto [axis, level] : llvm::enumerate(format.getLevels().take_front(format.getNumBatchLevels())))
    if (level.getDigits().size() != 1 || level.getDigits()[0].axis != axis)
      return false;
  return true;
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
  ArrayAttr w = lettersOf(function, product.output), a = lettersOf(function, product.left);
  ArrayAttr b = lettersOf(function, product.right);
  unsigned copies = product.format().getNumBatchLevels();
  if (!w || w.size() != copies + 2 || !a || !b || a.size() != b.size() || !beginsWithBatch(product.format()))
    return false;
  product.hasCopies = copies != 0;
  product.rowAxis = digits->first.axis - copies;
  if (!llvm::is_contained(a, lastTwo(w)[product.rowAxis])) {
    std::swap(product.left, product.right);
    std::swap(product.readLeft, product.readRight);
    std::swap(a, b);
  }
  if ((product.hasCopies && a.size() != w.size()) || !findLetters(product, w, a, b))
    return false;
  product.isLeftAlong = letter(lastTwo(a)[0]) == product.rows;
  product.isRightAlong = letter(lastTwo(b)[0]) == product.columns;
  return true;
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
  if (!keepsPadding(product, sums[0]))
    return why = "blocks may reach behind the sizes, where what follows the sum stores no zeros", std::nullopt;
  return product;
}
