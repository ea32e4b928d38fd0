// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which rolled loops can be statements of tiles: of half types, on whole stored blocks, every entry of which is one.
#include "RolledTiles.h"

#include "Expression.h"

using namespace mlir;
using namespace lacis;

/// Rows of a tile are those of one warpgroup; its columns, and those of operands, are lines of 128 bytes, or parts of one.
static constexpr int64_t kRows = 64, kLine = 64, kMostColumns = 128;
/// Shared memory of a block is that of two rows of tiles, with two stages of what their rounds bring.
static constexpr int64_t kBytes = 112 << 10, kStages = 2;

static bool isOfLines(int64_t size) {
  return size == 16 || size == 32 || (size % kLine == 0 && size >= kLine && size <= kMostColumns);
}

static std::string nameOf(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return "operand " + function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "lacis.name").str();
}

static SmallVector<std::string> lettersOf(OpOperand &operand) {
  auto generic = cast<linalg::GenericOp>(operand.getOwner());
  return llvm::map_to_vector(generic.getMatchingIndexingMap(&operand).getResults(), [&](AffineExpr axis) {
    auto dim = dyn_cast<AffineDimExpr>(axis);
    return dim ? letterName(generic, dim.getPosition()) : std::string();
  });
}

/// A number for each row of a tile, or for each column.
static bool isVector(OpOperand &operand, StringRef rows, StringRef columns) {
  auto isOfTile = [&](const std::string &letter) { return letter == rows || letter == columns; };
  SmallVector<std::string> letters = lettersOf(operand);
  return !letters.empty() && isOfTile(letters.back()) && llvm::count_if(letters, isOfTile) == 1 &&
         cast<RankedTensorType>(operand.get().getType()).getElementType().isF32();
}

/// What products take is of a half type, and as wide as lines.
static std::string objectionToFactor(BlockArgument argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  if (!type.getElementType().isBF16() && !type.getElementType().isF16())
    return nameOf(argument) + " is not of a half type";
  if (ShapedType::isDynamic(type.getShape().back()) || !isOfLines(type.getShape().back()))
    return nameOf(argument) + " is no 16, 32, 64 or 128 elements wide";
  return "";
}

/// Dense operands are factors of products, or vectors. Factors without the letter of the rows come with each round.
static std::string objectionToOperands(ArrayRef<linalg::GenericOp> statements, StringRef rows, StringRef summed,
                                       int64_t columns) {
  llvm::SmallDenseMap<Value, int64_t> bytes;
  for (linalg::GenericOp each : statements)
    for (OpOperand *operand : each.getDpsInputOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand->get());
      bool isFactor = each.getNumReductionLoops() != 0 && each.getNumDpsInputs() == 2;
      if (!argument || formatOf(argument) || (!isFactor && isVector(*operand, rows, summed)))
        continue;
      if (!isFactor)
        return nameOf(argument) + " is read by arithmetic; tiles of operands are multiplied";
      if (std::string objection = objectionToFactor(argument); !objection.empty())
        return objection;
      bool isOfRows = llvm::is_contained(lettersOf(*operand), rows);
      int64_t width = cast<RankedTensorType>(argument.getType()).getShape().back();
      bytes[argument] = width * 2 * (isOfRows ? kRows : kStages * columns);
    }
  int64_t all = 0;
  for (auto &[argument, own] : bytes)
    all += own;
  return all <= kBytes ? "" : "the tiles of two rounds do not fit twice into shared memory";
}

std::string lacis::objectionToTiles(const Rescaled &chain, ArrayRef<linalg::GenericOp> statements) {
  linalg::GenericOp scores = chain.made[0];
  BlockArgument pattern = argumentOf(zerosOf(scores.getOutputs()[0]).getSource());
  auto function = cast<func::FuncOp>(pattern.getOwner()->getParentOp());
  if (!function.getArgAttr(pattern.getArgNumber(), "lacis.full"))
    return "stored blocks of the pattern may have places without an entry";
  FormatAttr format = formatOf(pattern);
  ArrayRef<LevelAttr> tile = format.getLevels().drop_front(chain.level + 1);
  auto classes = function.getArgAttrOfType<DenseI64ArrayAttr>(pattern.getArgNumber(), "lacis.divisible");
  unsigned summed = format.getLevels()[chain.level].getDigits()[0].axis;
  if (tile.size() != 2)
    return "entries of the pattern are not stored in blocks";
  AffineMap axes = scores.getIndexingMapsArray().back();
  std::string rows, letter = letterName(scores, axes.getDimPosition(summed));
  int64_t columns = 1;
  for (LevelAttr level : tile) {
    Digit digit = level.getDigits()[0];
    bool isRow = digit.axis != summed;
    if (isRow)
      rows = letterName(scores, axes.getDimPosition(digit.axis));
    else
      columns = digit.mod;
    if (isRow ? digit.mod != kRows : digit.mod % kLine != 0 || digit.mod > kMostColumns)
      return "stored blocks have no 64 rows, or no 64 or 128 columns";
    if (!classes || classes[digit.axis] % digit.mod != 0)
      return "the length of an axis is no multiple of the blocks";
  }
  return objectionToOperands(statements, rows, letter, columns);
}

void lacis::keepArithmetic(Rescaled &chain, ArrayRef<linalg::GenericOp> statements) {
  if (chain.largest)
    return;
  for (linalg::GenericOp each : statements)
    if (formatOf(each.getResult(0)) && each.getNumReductionLoops() == 0 && !llvm::is_contained(chain.made, each))
      chain.made.push_back(each);
  llvm::sort(chain.made, [](linalg::GenericOp a, linalg::GenericOp b) { return a->isBeforeInBlock(b); });
}
