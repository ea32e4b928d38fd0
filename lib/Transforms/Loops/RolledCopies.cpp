// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operands of products whose columns a rolled loop copies to a tile, transposed: a row of it is a vector of entries.
#include "RolledCopies.h"

#include "Expression.h"

using namespace mlir;
using namespace lacis;

/// Bytes of a row of entries that fills vectors, and rows that share what is copied: fewer are not worth the copy.
static constexpr int64_t kVectorBytes = 64, kLeastRows = 4;

/// The statements on the pattern behind `statement`, itself among them.
static void collect(linalg::GenericOp statement, SetVector<linalg::GenericOp> &found) {
  if (!statement || !formatOf(statement.getResult(0)) || !found.insert(statement))
    return;
  for (Value input : statement.getInputs())
    if (formatOf(input))
      collect(makerOf(input), found);
}

/// The letters of a dense operand.
static SmallVector<std::string> lettersOf(OpOperand &operand) {
  auto generic = cast<linalg::GenericOp>(operand.getOwner());
  SmallVector<std::string> letters;
  for (AffineExpr expr : generic.getMatchingIndexingMap(&operand).getResults())
    letters.push_back(letterName(generic, cast<AffineDimExpr>(expr).getPosition()));
  return letters;
}

SmallVector<RolledCopy> lacis::findCopies(ArrayRef<linalg::GenericOp> made, const std::string &column,
                                          ArrayRef<std::string> rows, int64_t height, int64_t columns) {
  SetVector<linalg::GenericOp> statements;
  for (linalg::GenericOp each : made)
    collect(each, statements);
  SmallVector<RolledCopy> copies;
  DenseMap<Value, unsigned> reads;
  for (linalg::GenericOp statement : statements)
    for (OpOperand *operand : statement.getDpsInputOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand->get());
      if (!argument || formatOf(argument))
        continue;
      ++reads[argument];
      auto type = cast<RankedTensorType>(argument.getType());
      SmallVector<std::string> letters = lettersOf(*operand);
      if (letters.empty() || ShapedType::isDynamic(type.getShape().back()))
        continue;
      auto isKnown = [&](const std::string &name) { return name == column || llvm::is_contained(rows, name); };
      bool hasColumn = llvm::is_contained(ArrayRef(letters).drop_back(), column);
      bool isWorth = columns * type.getElementTypeBitWidth() / 8 % kVectorBytes == 0 && height >= kLeastRows;
      if (hasColumn && isWorth && !isKnown(letters.back()) && llvm::all_of(ArrayRef(letters).drop_back(), isKnown))
        copies.push_back({argument, letters, {}});
    }
  llvm::erase_if(copies, [&](const RolledCopy &copy) { return reads[copy.operand] > 1; }); // at two places at once
  return copies;
}
