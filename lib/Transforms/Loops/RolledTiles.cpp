// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which rolled loops can be statements of tiles: of half types, on whole stored blocks, every entry of which is one.
#include "RolledTiles.h"

#include "Expression.h"

using namespace mlir;
using namespace lacis;

/// Half of a processor's shared memory has the rows of a tile and what one round brings.
static constexpr int64_t kBytes = 112 << 10;

static bool isOfLines(int64_t size) {
  return size == 16 || size == 32 || size == 64 || size == 128;
}

/// The dense operands of the statements are of a half type, and as wide as lines, or parts of one; the name of one that is
/// not.
static std::string objectionToOperands(ArrayRef<linalg::GenericOp> statements) {
  int64_t bytes = 0;
  for (linalg::GenericOp each : statements)
    for (OpOperand *operand : each.getDpsInputOperands()) {
      Value input = operand->get();
      auto argument = dyn_cast<BlockArgument>(input);
      if (!argument)
        continue;
      auto type = cast<RankedTensorType>(input.getType());
      auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
      std::string name = "operand " + function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "lacis.name").str();
      if (each.getNumReductionLoops() == 0 || each.getNumDpsInputs() != 2)
        return name + " is read by arithmetic; tiles of operands are multiplied";
      if (!type.getElementType().isBF16() && !type.getElementType().isF16())
        return name + " is not of a half type";
      if (ShapedType::isDynamic(type.getShape().back()) || !isOfLines(type.getShape().back()))
        return name + " is no 16, 32, 64 or 128 elements wide";
      bytes += type.getShape().back() * 2 * kTileSide;
    }
  return bytes <= kBytes ? "" : "the tiles of a round do not fit twice into shared memory";
}

std::string lacis::objectionToTiles(const Rescaled &chain, ArrayRef<linalg::GenericOp> statements) {
  linalg::GenericOp scores = chain.made[0];
  if (!chain.largest)
    return "no maximum is carried: sums alone have no form on tiles yet";
  BlockArgument pattern = argumentOf(zerosOf(scores.getOutputs()[0]).getSource());
  auto function = cast<func::FuncOp>(pattern.getOwner()->getParentOp());
  if (!function.getArgAttr(pattern.getArgNumber(), "lacis.full"))
    return "stored blocks of the pattern may have places without an entry";
  FormatAttr format = formatOf(pattern);
  ArrayRef<LevelAttr> tile = format.getLevels().drop_front(chain.level + 1);
  auto classes = function.getArgAttrOfType<DenseI64ArrayAttr>(pattern.getArgNumber(), "lacis.divisible");
  if (tile.size() != 2)
    return "entries of the pattern are not stored in blocks";
  for (LevelAttr level : tile) {
    Digit digit = level.getDigits()[0];
    if (digit.mod % kTileSide != 0)
      return "stored blocks have no multiple of 64 rows and of 64 columns";
    if (!classes || classes[digit.axis] % digit.mod != 0)
      return "the length of an axis is no multiple of the blocks";
  }
  return objectionToOperands(statements);
}
