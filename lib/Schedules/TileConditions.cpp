// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a product must be for tensor cores: its types, its stored blocks, the sizes of its axes, and its loops.
#include "TileConditions.h"

#include "lacis/Dialect/Lacis/IR/NestFacts.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lacis;

bool lacis::takesTf32(Nest &nest) { return nest.getFunction()->hasAttr("lacis.tf32"); }

SmallVector<RowLoop> lacis::rowLoops(ArrayRef<LoopOp> loops) {
  SmallVector<RowLoop> found;
  int64_t unit = 1;
  for (LoopOp loop : llvm::reverse(loops)) {
    int64_t rounds = LoopOp(loop).getTrip().value_or(0);
    found.insert(found.begin(), {loop.getName().str(), unit, rounds});
    unit *= rounds;
  }
  return found;
}

SmallVector<LoopOp> lacis::loopsOf(ArrayRef<LoopOp> chain, StringRef letter) {
  SmallVector<LoopOp> found;
  for (LoopOp loop : chain)
    if (letterOf(loop.getName()) == letter)
      found.push_back(loop);
  return found;
}

/// Tensor cores multiply one half type, or float32 if it may take TF32; what they sum up to is float32, too.
static std::string objectionToTypes(BlockArgument one, BlockArgument other, BlockArgument output, bool isTf32) {
  Type first = getElementTypeOrSelf(one), result = getElementTypeOrSelf(output);
  bool isKnown = first.isF16() || first.isBF16() || (isTf32 && first.isF32());
  if (isKnown && getElementTypeOrSelf(other) == first && (result == first || result.isF32()))
    return "";
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "tensor cores take float16 or bfloat16 throughout, or float32 where torch lets it take TF32; here are ";
  llvm::interleaveComma(ArrayRef{one, other, output}, out,
                        [&](BlockArgument operand) { out << getElementTypeOrSelf(operand); });
  return text;
}

/// Lines are copied in chunks of 16 bytes, so each begins at such a chunk: 8 elements of a half type, 4 of float32. The
/// axes from `first` on are those along which lines may lie.
static std::string objectionToLines(func::FuncOp function, BlockArgument operand, unsigned first) {
  constexpr int64_t chunkBits = 128;
  int64_t chunk = chunkBits / getElementTypeOrSelf(operand).getIntOrFloatBitWidth();
  for (Attribute letter : axesOf(function, operand.getArgNumber()).drop_front(first))
    if (divisorOf(function, letter) % chunk != 0)
      return ("the size of '" + cast<StringAttr>(letter).getValue() + "' is no multiple of " + llvm::Twine(chunk) +
              ", and rows are copied in chunks of 16 bytes")
          .str();
  return "";
}

static unsigned lastAxis(BlockArgument operand) {
  return static_cast<unsigned>(cast<RankedTensorType>(operand.getType()).getRank() - 1);
}

/// Those of the stored blocks, which may be turned, and those of dense operands. Sums that are stored in float32 are
/// stored one by one.
static std::string objectionToSizes(func::FuncOp function, const Product &product) {
  std::string found = objectionToLines(function, product.left, product.isSampled() ? lastAxis(product.left) : 0);
  if (found.empty())
    found = objectionToLines(function, product.right, lastAxis(product.right));
  if (found.empty() && !product.isSampled() && !getElementTypeOrSelf(product.output).isF32())
    found = objectionToLines(function, product.output, lastAxis(product.output));
  return found;
}

/// An execution layout has one slot for each block.
static std::string objectionToFormat(FormatAttr format) {
  if (format.getMultiset())
    return "blocks may be stored twice, and a layout of tiles has one slot for each";
  return "";
}

static std::string objectionToBlock(int64_t rows, int64_t columns) {
  if (rows == 0 || columns == 0)
    return "entries are not stored in dense blocks";
  return ("stored blocks of " + llvm::Twine(rows) + " x " + llvm::Twine(columns) + " fill no tile").str();
}

/// Each letter of a batch has one loop; where the batch and the columns are one axis, they stand outside in its order.
static bool hasBatchLoops(ArrayRef<LoopOp> chain, const Product &product) {
  auto isOver = [](LoopOp loop, StringRef letter) { return letterOf(loop.getName()) == letter; };
  SmallVector<StringRef> letters(product.batch.begin(), product.batch.end());
  if (!product.isFolded)
    return llvm::all_of(letters, [&](StringRef letter) { return loopsOf(chain, letter).size() == 1; });
  letters.push_back(product.columns);
  return chain.size() >= letters.size() &&
         llvm::all_of(llvm::zip(chain, letters), [&](auto pair) { return isOver(std::get<0>(pair), std::get<1>(pair)); });
}

/// The rows have one digit over the grid of blocks and one over the rows of a block, the columns have one. A dense
/// matrix has no blocks, so its rows have one loop as well. Other parts of a sum may split the rows further.
static bool hasTileLoops(ArrayRef<LoopOp> chain, const Product &product, int64_t block) {
  SmallVector<LoopOp> rows = loopsOf(chain, product.rows), columns = loopsOf(chain, product.columns);
  bool isChain = !rows.empty() && columns.size() == 1 && chain.size() == rows.size() + 1 + product.batch.size() &&
                 hasBatchLoops(chain, product) && !columns[0].getTrip() && !rows[0].getTrip();
  if (!isChain || block == 0)
    return isChain && rows.size() == 1;
  bool areKnown = llvm::all_of(ArrayRef(rows).drop_front(), [](LoopOp loop) { return loop.getTrip().has_value(); });
  return areKnown && rows.size() > 1 &&
         llvm::any_of(rowLoops(rows), [&](const RowLoop &loop) { return loop.unit == block; });
}

SmallVector<LoopOp> lacis::loopsOfBlock(const Product &product, StringRef letter) {
  SmallVector<LoopOp> around;
  for (auto loop = product.sum->getParentOfType<LoopOp>(); loop && loop != product.entries;
       loop = loop->getParentOfType<LoopOp>())
    around.insert(around.begin(), loop);
  return loopsOf(around, letter);
}

LoopOp lacis::depthLoop(const Product &product) {
  LoopOp innermost;
  product.sum->walk([&](LoopOp loop) { // post-order
    innermost = loop;
    return WalkResult::interrupt();
  });
  return innermost == product.sum ? LoopOp() : innermost;
}

/// The loops over the entries, and those over the two axes of a block and over the batch.
static bool hasBlockLoops(const Product &product, StoredBlock block) {
  auto haveLoops = [&](StringRef letter, int64_t trip) {
    SmallVector<LoopOp> loops = loopsOfBlock(product, letter);
    return !loops.empty() && (loops.size() == 1 || block.isNested) && loops.back().getTrip() == trip &&
           llvm::all_of(loops, [](LoopOp loop) { return loop.getTrip().has_value(); });
  };
  return haveLoops(product.rows, block.rows) && haveLoops(product.columns, block.columns) &&
         product.batchLoops.size() == product.batch.size();
}

static std::string objectionToFinish(Product &product) {
  std::string letters = "'" + product.rows.str() + (product.isFolded ? "'" : "' or '" + product.columns.str() + "'");
  return product.residual() ? ""
                            : "what follows the sum reads more than vectors along " + letters + ", numbers, and one residual";
}

/// The first of these that says something.
static std::string firstOf(ArrayRef<llvm::function_ref<std::string()>> objections) {
  for (auto objection : objections)
    if (std::string text = objection(); !text.empty())
      return text;
  return "";
}

std::string lacis::objectionToTiles(Nest &nest, Product &product, bool hasSizes) {
  bool isTf32 = takesTf32(nest), isSampled = product.isSampled();
  StoredBlock block = product.block();
  auto objectionToLoops = [&]() -> std::string {
    if (isSampled)
      return hasBlockLoops(product, block) ? "" : "the loops are not those over blocks and the two axes of a block";
    bool has = hasTileLoops(nest.mainChain(), product, block.rows);
    return has ? "" : "the loops are not those over blocks, the rows of a block, and columns";
  };
  return firstOf({[&] { return objectionToTypes(product.left, product.right, product.output, isTf32); },
                  [&] { return hasSizes ? "" : objectionToBlock(block.rows, block.columns); },
                  [&] { return isSampled ? "" : objectionToFinish(product); },
                  [&] { return objectionToSizes(nest.getFunction(), product); },
                  [&] { return objectionToFormat(product.format()); }, objectionToLoops});
}
