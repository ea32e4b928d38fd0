// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which rolled loops can be statements of tiles: of half types, on whole stored blocks, every entry of which is one.
#include "RolledTiles.h"

#include "Expression.h"

using namespace mlir;
using namespace lacis;

static bool isOfLines(int64_t size) { return size == 16 || size == 32 || size == 64 || size == 128; }

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

/// A number for each row of a tile, or for each column, or one for all of it.
static bool isVector(OpOperand &operand, StringRef rows, StringRef columns) {
  auto isOfTile = [&](const std::string &letter) { return letter == rows || letter == columns; };
  SmallVector<std::string> letters = lettersOf(operand);
  auto count = llvm::count_if(letters, isOfTile);
  return (count == 0 || (count == 1 && isOfTile(letters.back()))) &&
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

/// Dense operands are factors of products, or vectors.
static std::string objectionToOperands(ArrayRef<linalg::GenericOp> statements, StringRef rows, StringRef summed) {
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
      bytes[argument] = cast<RankedTensorType>(argument.getType()).getShape().back() * 2 * kTileSide;
    }
  int64_t all = 0;
  for (auto &[argument, own] : bytes)
    all += own;
  return all <= kRolledBytes ? "" : "the tiles of a round do not fit twice into shared memory";
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
  for (LevelAttr level : tile) {
    Digit digit = level.getDigits()[0];
    if (digit.axis != summed)
      rows = letterName(scores, axes.getDimPosition(digit.axis));
    if (digit.mod % kTileSide != 0)
      return "stored blocks have no multiple of 64 rows and of 64 columns";
    if (!classes || classes[digit.axis] % digit.mod != 0)
      return "the length of an axis is no multiple of the blocks";
  }
  return objectionToOperands(statements, rows, letter);
}

void lacis::keepArithmetic(Rescaled &chain, ArrayRef<linalg::GenericOp> statements) {
  if (chain.largest)
    return;
  for (linalg::GenericOp each : statements)
    if (formatOf(each.getResult(0)) && each.getNumReductionLoops() == 0 && !llvm::is_contained(chain.made, each))
      chain.made.push_back(each);
  llvm::sort(chain.made, [](linalg::GenericOp a, linalg::GenericOp b) { return a->isBeforeInBlock(b); });
}
