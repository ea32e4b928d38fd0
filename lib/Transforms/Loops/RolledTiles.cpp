// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which rolled loops can be statements of tiles: of half types, on whole stored blocks, every entry of which is one.
///
/// for i0: for j0 in row(i0): tile  -->  for panels of 64 rows: for j0 in the union of their rows: tile, masked by its bits
#include "RolledTiles.h"

#include "Expression.h"

#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace lacis;

/// Columns that all sums of a round may have: they stay in half of a thread's 240 registers.
static constexpr int64_t kMostSums = 256;

static bool isOfLines(int64_t size) { return llvm::is_contained({16, 32, 64, 128, 192, 256}, size); }

static std::string nameOf(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return "operand " + function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "lacis.name").str();
}

/// What products take is of a half type, and as wide as lines.
static std::string objectionToFactor(BlockArgument argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  if (!type.getElementType().isBF16() && !type.getElementType().isF16())
    return nameOf(argument) + " is not of a half type";
  if (ShapedType::isDynamic(type.getShape().back()) || !isOfLines(type.getShape().back()))
    return nameOf(argument) + " is no 16, 32, 64, 128, 192 or 256 elements wide";
  return "";
}

static bool isProduct(linalg::GenericOp each) { return each.getNumReductionLoops() != 0 && each.getNumDpsInputs() == 2; }

/// Factors of products stand in tiles; arithmetic reads other operands where they lie.
static SmallVector<OpOperand *> factorsOf(ArrayRef<linalg::GenericOp> statements) {
  SmallVector<OpOperand *> found;
  for (linalg::GenericOp each : llvm::make_filter_range(statements, isProduct))
    for (OpOperand *operand : each.getDpsInputOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand->get()); argument && !formatOf(argument))
        found.push_back(operand);
  return found;
}

/// The bytes of a tile of each operand among the factors that `takes` takes, with `kTileSide` rows or columns.
static int64_t bytesOf(ArrayRef<OpOperand *> factors, llvm::function_ref<bool(OpOperand *)> takes) {
  llvm::SmallDenseMap<Value, int64_t> bytes;
  for (OpOperand *factor : llvm::make_filter_range(factors, takes))
    bytes[factor->get()] = cast<RankedTensorType>(factor->get().getType()).getShape().back() * 2 * kTileSide;
  int64_t all = 0;
  for (auto &[argument, own] : bytes)
    all += own;
  return all;
}

static std::string objectionToFactors(ArrayRef<linalg::GenericOp> statements) {
  SmallVector<OpOperand *> factors = factorsOf(statements);
  for (OpOperand *factor : factors)
    if (std::string objection = objectionToFactor(cast<BlockArgument>(factor->get())); !objection.empty())
      return objection;
  bool fits = bytesOf(factors, [](OpOperand *) { return true; }) <= kRolledBytes;
  return fits ? "" : "the tiles of a round do not fit twice into shared memory";
}

/// Columns of the sums of products that rounds add to, which stay in registers.
static int64_t columnsOfSums(ArrayRef<linalg::GenericOp> statements) {
  int64_t columns = 0;
  for (linalg::GenericOp each : llvm::make_filter_range(statements, isProduct)) {
    int64_t width = cast<RankedTensorType>(each.getResult(0).getType()).getShape().back();
    if (!formatOf(each.getResult(0)) && !ShapedType::isDynamic(width))
      columns += width;
  }
  return columns;
}

static std::string objectionToSums(ArrayRef<linalg::GenericOp> statements) {
  int64_t columns = columnsOfSums(statements);
  if (columns <= kMostSums)
    return "";
  return "sums of " + std::to_string(columns) + " columns have no place in registers; " + std::to_string(kMostSums) + " have";
}

//===- Blocks -------------------------------------------------------------===//

namespace {
/// What the levels of a pattern say of its blocks.
struct Blocks {
  int64_t rows = 0, columns = 0;        // of one
  unsigned rowAxis = 0, columnAxis = 0; // without those of the batch
  int64_t columnMultiple = 1;           // which the length of the axis of columns is known to be
  int64_t rowMultiple = 1;              // and that of rows
  unsigned lead = 0;                    // axes before rows and columns, without those of the batch
  bool isApart = false;                 // a level for each of these, and one for rows, are above the positions

  bool isSmall() const { return rows % kTileSide != 0 || columns % kTileSide != 0; }
};
} // namespace

static BlockArgument patternOf(const Rescaled &chain) {
  return argumentOf(zerosOf(linalg::GenericOp(chain.made[0]).getOutputs()[0]).getSource());
}

static bool isFull(const Rescaled &chain) {
  BlockArgument pattern = patternOf(chain);
  return cast<func::FuncOp>(pattern.getOwner()->getParentOp()).getArgAttr(pattern.getArgNumber(), "lacis.full") != nullptr;
}

static std::optional<Blocks> blocksOf(const Rescaled &chain) {
  BlockArgument pattern = patternOf(chain);
  auto function = cast<func::FuncOp>(pattern.getOwner()->getParentOp());
  auto classes = function.getArgAttrOfType<DenseI64ArrayAttr>(pattern.getArgNumber(), "lacis.divisible");
  FormatAttr format = formatOf(pattern);
  ArrayRef<LevelAttr> tile = format.getLevels().drop_front(chain.level + 1);
  if (tile.size() != 2)
    return std::nullopt;
  unsigned batch = format.getNumBatchLevels(), summed = format.getLevels()[chain.level].getDigits()[0].axis;
  Blocks found;
  found.lead = format.getAxes().size() - batch - 2;
  for (LevelAttr level : tile) {
    Digit digit = level.getDigits()[0];
    bool isColumn = digit.axis == summed;
    (isColumn ? found.columns : found.rows) = digit.mod;
    (isColumn ? found.columnAxis : found.rowAxis) = digit.axis - batch;
    if (classes)
      (isColumn ? found.columnMultiple : found.rowMultiple) = classes[digit.axis];
  }
  found.isApart = chain.level == batch + found.lead + 1 && std::min(found.rowAxis, found.columnAxis) == found.lead;
  return found;
}

/// Numbers of float32 in 16 bytes, at multiples of which copies begin.
static constexpr int64_t kChunk = 4;

static bool isPartOfTile(int64_t side) { return side == 8 || side == 16 || side == 32; }

static std::string objectionToBlocks(const Blocks &blocks) {
  for (int64_t side : {blocks.rows, blocks.columns})
    if (side % kTileSide != 0 && !isPartOfTile(side))
      return "stored blocks have sides that are no multiple of 64, and none of 8, 16 and 32";
  if (blocks.isSmall() && !blocks.isApart)
    return "stored blocks of less than 64 rows or columns are below heads whose axes and levels are not the first";
  if (isPartOfTile(blocks.columns) && blocks.columnMultiple % kChunk != 0) // vectors along them are copied in parts
    return "stored blocks of less than 64 columns are of an axis whose length is no multiple of 4";
  return "";
}

/// Panels below the axes before rows, steps of one column of blocks, bits, and the tiles that they say of.
FormatAttr lacis::layoutOfTiles(const Rescaled &chain) {
  std::optional<Blocks> blocks = blocksOf(chain);
  if (!isFull(chain) || !blocks || !blocks->isSmall() || !objectionToBlocks(*blocks).empty())
    return {};
  // A bit level has two coordinates at the least.
  int64_t rows = std::min(blocks->rows, kTileSide / 2), columns = std::min(blocks->columns, kTileSide);
  bool isTurned = blocks->rowAxis > blocks->columnAxis;
  StringRef row = isTurned ? "j" : "i", column = isTurned ? "i" : "j";
  std::string axes, lead, text;
  for (unsigned axis = 0; axis < blocks->lead; ++axis) {
    std::string name = "l" + std::to_string(axis);
    axes += name + ", ";
    lead += name + " : dense, ";
  }
  llvm::raw_string_ostream(text) << "#lacis.format<(" << axes << "i, j) -> (" << lead << row << " floordiv "
                                 << kTileSide << " : dense, " << column << " floordiv " << columns << " : compressed, "
                                 << row << " floordiv " << rows << " mod " << kTileSide / rows << " : bitmap, " << row
                                 << " mod " << rows << " : dense, " << column << " mod " << columns << " : dense)>";
  return cast<FormatAttr>(parseAttribute(text, chain.made[0]->getContext()));
}

std::string lacis::objectionToColumns(const Rescaled &chain, int64_t columns) {
  std::optional<Blocks> blocks = blocksOf(chain);
  if (!blocks || chain.layout)
    return "stored blocks have no columns of a tile";
  if ((columns == kTileSide || columns == kWideTile) && blocks->columns % columns == 0)
    return "";
  return "a round takes 64 or 128 columns of a stored block, or all, and of these blocks of " +
         std::to_string(blocks->columns) + " not " + std::to_string(columns);
}

/// Is the operand read along the columns of the pattern, so that each round brings others?
static bool isOfRounds(const Rescaled &chain, OpOperand *operand) {
  linalg::GenericOp first = chain.made[0], own = cast<linalg::GenericOp>(operand->getOwner());
  unsigned summed = formatOf(patternOf(chain)).getLevels()[chain.level].getDigits()[0].axis;
  std::string letter = letterName(first, first.getIndexingMapsArray().back().getDimPosition(summed));
  return llvm::any_of(own.getMatchingIndexingMap(operand).getResults(), [&](AffineExpr axis) {
    return letterName(own, cast<AffineDimExpr>(axis).getPosition()) == letter;
  });
}

/// Operations that each place of a tile takes, besides those of products: 8 of plain attention, 201 below a causal mask with dropout.
static int64_t arithmeticOf(ArrayRef<linalg::GenericOp> statements) {
  int64_t count = 0;
  for (linalg::GenericOp each : statements)
    if (formatOf(each.getResult(0)) && !isProduct(each))
      count += llvm::range_size(each.getBody()->without_terminator());
  return count;
}

int64_t lacis::columnsOfRound(const Rescaled &chain, ArrayRef<linalg::GenericOp> statements) {
  auto isSampled = [](linalg::GenericOp each) { return isProduct(each) && formatOf(each.getResult(0)); };
  constexpr int64_t mostArithmetic = 64; // dropout spills 16 bytes in wide rounds, heads of 128; score functions nothing
  int64_t sums = columnsOfSums(statements);
  bool haveRegisters = sums <= kSharedSums && arithmeticOf(statements) <= mostArithmetic;
  if (!objectionToColumns(chain, kWideTile).empty() || llvm::count_if(statements, isSampled) != 1 || !haveRegisters)
    return kTileSide;
  SmallVector<OpOperand *> factors = factorsOf(statements);
  int64_t held = bytesOf(factors, [&](OpOperand *factor) { return !isOfRounds(chain, factor); });
  int64_t rounds = 2 * bytesOf(factors, [&](OpOperand *factor) { return isOfRounds(chain, factor); }) * kWideTile / kTileSide;
  if (held + rounds <= kRolledBytes)
    return kWideTile;
  constexpr int64_t pair = 2 * kTileSide;
  std::optional<Blocks> blocks = blocksOf(chain);
  bool arePairs = sums == kSharedSums && blocks->rows % pair == 0 && blocks->rowMultiple % pair == 0;
  return arePairs && 2 * held + rounds <= 2 * kRolledBytes ? kWideTile : kTileSide;
}

std::string lacis::objectionToTiles(const Rescaled &chain, ArrayRef<linalg::GenericOp> statements) {
  if (!isFull(chain))
    return "stored blocks of the pattern may have places without an entry";
  std::optional<Blocks> blocks = blocksOf(chain);
  if (!blocks)
    return "entries of the pattern are not stored in blocks";
  if (std::string objection = objectionToBlocks(*blocks); !objection.empty())
    return objection;
  std::string objection = objectionToFactors(statements);
  return objection.empty() ? objectionToSums(statements) : objection;
}

void lacis::keepArithmetic(Rescaled &chain, ArrayRef<linalg::GenericOp> statements) {
  if (chain.largest)
    return;
  for (linalg::GenericOp each : statements)
    if (formatOf(each.getResult(0)) && each.getNumReductionLoops() == 0 && !llvm::is_contained(chain.made, each))
      chain.made.push_back(each);
  llvm::sort(chain.made, [](linalg::GenericOp a, linalg::GenericOp b) { return a->isBeforeInBlock(b); });
}
