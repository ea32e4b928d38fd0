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

/// The letters of output += left * right by which of the three have them, and the batch before these; false where it is no
/// product of matrices.
static bool findLetters(Product &found, ArrayAttr output, ArrayAttr left, ArrayAttr right) {
  ArrayRef<Attribute> batch;
  for (ArrayAttr axes : {output, left, right}) {
    llvm::SmallDenseSet<Attribute> letters;
    if (!axes || axes.size() < 2 || !llvm::all_of(axes, [&](Attribute axis) { return letters.insert(axis).second; }))
      return false;
    ArrayRef<Attribute> own = axes.getValue().drop_back(2);
    if (!own.empty() && !batch.empty() && own != batch)
      return false;
    batch = own.empty() ? batch : own;
  }
  Attribute m = sharedLetter(output, left), n = sharedLetter(output, right), k = sharedLetter(left, right);
  if (!m || !n || !k || m == n || m == k || n == k)
    return false;
  found.rows = letter(m), found.columns = letter(n), found.depth = letter(k);
  for (Attribute h : batch)
    found.batch.push_back(letter(h));
  found.isLeftAlong = lastTwo(left)[0] == m;
  found.isRightAlong = lastTwo(right)[0] == n;
  found.isRowsFirst = lastTwo(output)[0] == m;
  bool sharesRows = found.isSampled() ? !found.isLeftAlong && !found.isRightAlong && !found.hasCopies
                                      : found.isRightAlong && !found.isRowsFirst;
  found.isFolded = !batch.empty() && sharesRows;
  return true;
}

/// The last two levels, in the order of the values; nullopt where they are no block.
static std::optional<std::pair<Digit, Digit>> blockDigits(FormatAttr format) {
  ArrayRef<LevelAttr> levels = format.getLevels();
  if (format.getAxes().size() != 2 + format.getNumBatchLevels() || format.getNumTileLevels() < 2)
    return std::nullopt;
  ArrayRef<Digit> first = levels[levels.size() - 2].getDigits(), last = levels.back().getDigits();
  if (first.size() != 1 || last.size() != 1 || first[0].div != 1 || last[0].div != 1 || first[0].axis == last[0].axis)
    return std::nullopt;
  return std::pair(first[0], last[0]);
}

//===- Facts of a product -------------------------------------------------===//

FormatAttr Product::format() const { return formatOf(isSampled() ? output : tensor); }

LoopName Product::sumName() const { return cast<LoopOpInterface>(sum).getLoopName(); }

std::string Product::columnLoop() const {
  std::string name;
  for (StringRef letter : isFolded && !isSampled() ? ArrayRef(batch) : ArrayRef<StringRef>())
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
  ArrayAttr letters = lettersOf(cast<func::FuncOp>(output.getOwner()->getParentOp()), isSampled() ? output : stored);
  auto isOfRows = [&](const Digit &digit) { return letter(letters[digit.axis]) == rows; };
  if (isMatrix(format()))
    return {0, 0, /*transposed=*/!isOfRows(levels[0].getDigits()[0]), /*isMatrix=*/true};
  auto digits = blockDigits(format());
  if (!digits)
    return {};
  auto [first, last] = *digits;
  StoredBlock found = isOfRows(first) ? StoredBlock{first.mod, last.mod, false} : StoredBlock{last.mod, first.mod, true};
  found.isNested = format().getNumTileLevels() > 2;
  found.allRows = 1;
  for (LevelAttr level : levels.take_back(format().getNumTileLevels()))
    if (Digit digit = level.getDigits()[0]; isOfRows(digit))
      found.allRows *= digit.mod;
  return found;
}

/// A sum over a batch may stand around that over k.
static Operation *outermostSum(Operation *sum) {
  while (isa<LoopOp>(sum->getParentOp()) && sum->getParentOp()->getNumResults() != 0)
    sum = sum->getParentOp();
  return sum;
}

std::optional<ReadOp> Product::residual() {
  auto function = cast<func::FuncOp>(output.getOwner()->getParentOp());
  auto letter = StringAttr::get(function.getContext(), rows), across = StringAttr::get(function.getContext(), columns);
  ReadOp found;
  bool isKnown = isArithmeticOn(isSampled() ? outermostSum(sum) : sum, result, [&](ReadOp read) {
    auto operand = dyn_cast<BlockArgument>(read.getTensor());
    ArrayAttr axes = operand ? lettersOf(function, operand) : ArrayAttr();
    bool isResidual = write && axes == lettersOf(function, output) && !found &&
                      llvm::equal(read.getIndices(), write.getIndices()) &&
                      getElementTypeOrSelf(operand) == getElementTypeOrSelf(right);
    Attribute along = axes && axes.size() == 1 ? axes[0] : Attribute();
    bool isVector = (along == letter && write) || (along == across && (!write || !isFolded));
    found = isResidual ? read : found;
    return axes && !formatOf(operand) && (isResidual || axes.empty() || isVector);
  });
  return isKnown ? std::optional(found) : std::nullopt;
}

FormatAttr lacis::accumulatorTiles(MLIRContext *context, StringRef n, StringRef m, int64_t columns, int64_t rows) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "#lacis.format<(" << n << ", " << m << ") -> (" << n << " floordiv " << columns << " : dense, " << m
      << " floordiv " << rows << " : dense, " << m << " mod " << rows << " : dense, " << n << " mod " << columns
      << " : dense)>";
  return cast<FormatAttr>(parseAttribute(text, context));
}

bool lacis::isOverPositions(LoopOp loop) {
  Value size = loop.getUpper();
  while (auto shares = size.getDefiningOp<arith::CeilDivUIOp>())
    size = shares.getLhs();
  return size.getDefiningOp<PositionsOp>() != nullptr;
}

//===- Recognition --------------------------------------------------------===//

Value lacis::behindWalk(Value tensor) {
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

ReadOp lacis::operandOf(Value factor) {
  auto read = behindCast(factor).getDefiningOp<ReadOp>();
  return read && isa<BlockArgument>(read.getTensor()) ? read : ReadOp();
}

/// One that is read element by element.
static ReadOp readOf(Value factor) {
  ReadOp read = operandOf(factor);
  return read && !read.getCount() && !read.getAlong() ? read : ReadOp();
}

namespace {
/// What a nest walks, its sums, outermost first, and what it stores.
struct NestParts {
  SmallVector<Operation *> walks, sums, stores;
};
} // namespace

/// Loops of other parts than `part` are left out, where it is named.
static NestParts partsOf(LoopOp top, StringRef part) {
  NestParts found;
  top->walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto own = dyn_cast<LoopOpInterface>(op);
    PathAttr path = own ? own.getPathAttr() : PathAttr();
    if (path && !part.empty() && path.first(PathKind::Part) != part)
      return WalkResult::skip();
    if (isa<WriteOp, SetOp>(op))
      found.stores.push_back(op);
    else if (isa<LevelLoopOp>(op))
      found.walks.push_back(op);
    else if (own && op->getNumResults() == 1)
      found.sums.push_back(op);
    return WalkResult::advance();
  });
  return found;
}

/// What is stored, before it is rounded; 0 is where no entry is.
static Value resultOf(Value value) {
  if (auto entry = value.getDefiningOp<arith::SelectOp>(); entry && entry.getCondition().getDefiningOp<EntryOp>())
    value = entry.getTrueValue();
  auto rounded = value.getDefiningOp<arith::TruncFOp>();
  return rounded ? rounded.getIn() : value;
}

/// The sum and the one store of the output.
static bool findSum(Product &product, const NestParts &parts, bool isSampled) {
  ArrayRef<Operation *> sums = parts.walks.empty() ? ArrayRef(parts.sums) : ArrayRef(parts.walks);
  auto isInside = [&](Operation *walk) { return walk == sums[0] || sums[0]->isProperAncestor(walk); };
  if (sums.empty() || sums[0]->getNumResults() != 1 || parts.stores.size() != 1 || !llvm::all_of(parts.walks, isInside) ||
      (isSampled && !parts.walks.empty()))
    return false;
  product.sum = sums[0];
  product.write = dyn_cast<WriteOp>(parts.stores[0]);
  auto set = dyn_cast<SetOp>(parts.stores[0]);
  if (isSampled != bool(set) || (set && set.getCount()))
    return false;
  product.result = resultOf(set ? set.getValue() : product.write.getValue());
  return product.output == (set ? set.getTensor() : product.write.getTensor());
}

/// What the sum begins with: a constant, or what was summed up before; of one part of several, anything.
static bool findStart(Product &product, bool isPart) {
  Value start = product.sum->getOperands().back();
  Attribute initial;
  if (matchPattern(start, m_Constant(&initial)))
    product.initial = cast<TypedAttr>(initial);
  auto read = start.getDefiningOp<ReadOp>();
  if (read && read.getTensor().getDefiningOp<WorkspaceOp>() && !read.getCount() && !read.getAlong())
    product.start = read;
  return isPart || product.initial || (product.start && product.write);
}

/// The two factors of what is summed up: one from the stored operand and one from a dense one, or both from dense ones.
static bool findFactors(Product &product) {
  arith::MulFOp factors = factorsOf(product.sum);
  if (!factors)
    return false;
  Value one = factors.getLhs(), other = factors.getRhs();
  product.readRight = readOf(other);
  product.readLeft = readOf(one);
  if (product.write) {
    if (product.readLeft)
      std::swap(one, other), std::swap(product.readLeft, product.readRight);
    auto value = behindCast(one).getDefiningOp<ValueOp>();
    product.tensor = value ? behindWalk(value.getTensor()) : Value();
    product.stored = product.left = value ? argumentOf(product.tensor) : BlockArgument();
  } else if (product.readLeft) {
    product.left = cast<BlockArgument>(product.readLeft.getTensor());
  }
  product.right = product.readRight ? cast<BlockArgument>(product.readRight.getTensor()) : BlockArgument();
  return product.left && product.right && product.left != product.right;
}

/// The first axes of a format are those of the levels of its batch, in their order.
static bool beginsWithBatch(FormatAttr format) {
  for (auto [axis, level] : llvm::enumerate(format.getLevels().take_front(format.getNumBatchLevels())))
    if (level.getDigits().size() != 1 || level.getDigits()[0].axis != axis)
      return false;
  return true;
}

/// The letters of a product; of a sampled one the left factor is that with the rows of the stored blocks.
static bool findLetters(Product &product, func::FuncOp function) {
  ArrayAttr output = lettersOf(function, product.output);
  auto letters = [&](BlockArgument operand) { return lettersOf(function, operand); };
  if (!output || !letters(product.left) || !letters(product.right))
    return false;
  bool isSampled = product.isSampled();
  unsigned copies = isSampled ? product.format().getNumBatchLevels() : 0;
  product.hasCopies = copies != 0;
  if (isSampled) {
    auto digits = blockDigits(product.format());
    if (!digits || output.size() != copies + 2 || !beginsWithBatch(product.format()))
      return false;
    if (!llvm::is_contained(letters(product.left), output[digits->first.axis])) {
      std::swap(product.left, product.right);
      std::swap(product.readLeft, product.readRight);
    }
  }
  ArrayAttr left = letters(product.left), right = letters(product.right), alike = isSampled ? left : output;
  bool isBatch = alike.size() == right.size() && (!product.hasCopies || left.size() == output.size()) &&
                 (isSampled || left.size() == 2);
  return isBatch && findLetters(product, output, left, right);
}

/// The last letter of a loop, which may be one with loops around.
static StringRef lastLetter(Operation *loop) {
  StringRef letters = letterOf(cast<LoopOp>(loop).getName());
  return letters.substr(letters.rfind('_') + 1);
}

/// Of the chain the loop over the entries and those over copies, of the sums the one over k, or over its first digit,
/// alone or with the batch, and those over the batch around it.
static bool findLoops(Product &product, ArrayRef<LoopOp> chain, ArrayRef<Operation *> sums) {
  auto isOfBatch = [&](Operation *loop) { return llvm::is_contained(product.batch, lastLetter(loop)); };
  for (LoopOp loop : chain)
    if (!product.entries && isOverPositions(loop))
      product.entries = loop;
    else if (isOfBatch(loop))
      product.batchLoops.push_back(loop);
  const auto *sum = llvm::find_if(sums, [&](Operation *loop) { return lastLetter(loop) == product.depth; });
  if (sum == sums.end() || !product.entries)
    return false;
  product.sum = *sum;
  for (Operation *around : sums.take_front(sum - sums.begin()))
    product.batchLoops.push_back(cast<LoopOp>(around));
  return llvm::all_of(product.batchLoops, isOfBatch);
}

/// Padding holds zeros: a sum is 0 there, what follows it need not be.
static bool keepsPadding(Product &product) {
  auto function = cast<func::FuncOp>(product.output.getOwner()->getParentOp());
  auto divides = [&](StringRef letter, int64_t block) {
    return block && divisorOf(function, StringAttr::get(function.getContext(), letter)) % block == 0;
  };
  StoredBlock block = product.block();
  return product.result == outermostSum(product.sum)->getResult(0) ||
         (divides(product.rows, block.rows) && divides(product.columns, block.columns));
}

/// Why it is no product of a stored and a dense matrix, or nothing where it is.
static std::string findProduct(Product &product, const NestParts &parts, StringRef part) {
  auto function = cast<func::FuncOp>(product.output.getOwner()->getParentOp());
  if (!findSum(product, parts, /*isSampled=*/false))
    return "it has not one loop over the positions of a level, under an output of its own";
  if (!findStart(product, !part.empty()) || !findFactors(product))
    return "it does not sum products of a stored and a dense element";
  if (findLetters(product, function))
    return "";
  ArrayAttr right = lettersOf(function, product.right);
  if (right && right.size() > 2)
    return "letters of a batch come first in the dense operand and in the output, in one order";
  return "it is no product of two matrices, of which one has a format";
}

/// Why it is no product of two dense matrices that is sampled, or nothing where it is.
static std::string findSampled(Product &product, const NestParts &parts, ArrayRef<LoopOp> chain) {
  auto function = cast<func::FuncOp>(product.output.getOwner()->getParentOp());
  if (!product.stored || !findSum(product, parts, /*isSampled=*/true))
    return "it does not store one sum over a dense axis for each entry";
  bool isOfType = product.result.getType() == product.sum->getResult(0).getType();
  if (!findStart(product, /*isPart=*/false) || !findFactors(product) || !findLetters(product, function) ||
      !findLoops(product, chain, parts.sums))
    return "it is no product of two dense matrices, sampled where blocks are stored";
  if (!isOfType || !product.residual())
    return ("what follows the sum is no arithmetic on numbers and on vectors along '" + product.columns + "', rounded last")
        .str();
  return keepsPadding(product) ? "" : "blocks may reach behind the sizes, where what follows the sum stores no zeros";
}

std::optional<Product> lacis::productOf(Nest &nest, std::string &why, StringRef part) {
  func::FuncOp function = nest.getFunction();
  Product product;
  product.output = function.getArguments().back();
  SmallVector<LoopOp> chain = nest.mainChain();
  NestParts parts = chain.empty() ? NestParts() : partsOf(chain.front(), part);
  auto pattern = function.getArgAttrOfType<IntegerAttr>(product.output.getArgNumber(), "lacis.sample");
  if (formatOf(product.output) && pattern)
    product.tensor = product.stored = function.getArgument(pattern.getInt());
  why = formatOf(product.output) ? findSampled(product, parts, chain) : findProduct(product, parts, part);
  return why.empty() ? std::optional(product) : std::nullopt;
}
