// SPDX-License-Identifier: Apache-2.0
/// \file
/// The boxes of operands that the products of a nest take: each side of one runs along the rows or columns of a tile, or along
/// the sum.
#include "FindBoxes.h"

#include "TileFactors.h"
#include "lacis/Dialect/Lacis/IR/Reduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace lacis;

/// The coordinates that the indices of a box run along; the one whose parts begin anywhere, and whether rounds change it.
static FailureOr<SmallVector<Value>> sidesOf(StagedBox &box, Rounds rounds, TileVariance &variance) {
  SmallVector<Value> sides;
  for (Value index : box.read.indices) {
    if (auto window = variance.windowOf(index)) {
      sides.push_back(window->coordinate);
      box.window = window, box.partIndex = index;
      continue;
    }
    std::optional<TileVariance::Place> place = variance.placeInParts(index);
    if (!place || (!sides.empty() && !place->coordinate))
      return refuseStatement(box.read.op);
    if (place->coordinate)
      sides.push_back(place->coordinate);
    box.inRound |= place->base && changesInRound(place->base, rounds.loop);
    box.partIndex = place->width > 0 ? index : box.partIndex;
  }
  return sides;
}

/// Rows and columns of an operand, of which one side runs along the sum.
static LogicalResult readBox(StagedBox &box, StringRef name, LoopOp sum, Rounds rounds, TileVariance &variance) {
  FailureOr<SmallVector<Value>> sides = sidesOf(box, rounds, variance);
  if (failed(sides))
    return failure();
  bool isAlong = !sides->empty() && sides->back() == sum.getCoordinate();
  if (sides->size() != 2 || !llvm::is_contained(*sides, sum.getCoordinate()) || (box.window && isAlong))
    return refuseStatement(box.read.op);
  int64_t rows = variance.sizeOf((*sides)[0]), columns = variance.sizeOf((*sides)[1]);
  int64_t parts = 1;
  if (box.window) {
    columns = box.window->size;
  } else if (box.partIndex) {
    int64_t &size = isAlong ? rows : columns, width = variance.placeInParts(box.partIndex)->width;
    parts = size / width, size = width;
  }
  box.tile = tileOfBox(getElementTypeOrSelf(box.read.tensor), rows, columns);
  if (box.tile.getCount() * box.tile.getColumns() != columns)
    return box.read.op->emitError("tiles: operand '")
           << name << "' has " << columns << " elements in a row of a tile, which are no whole lines of "
           << box.tile.getColumns();
  box.tile = listOf(box.tile, parts);
  return success();
}

/// A box of an operand that is staged, or the tiles of a step.
static LogicalResult addBox(StagedBoxes &boxes, const Access &read, LoopOp sum, Rounds rounds, TileVariance &variance) {
  StagedBox box;
  box.read = read;
  if (findOf(read)) {
    std::optional<StepTiles> step = StepTiles::of(read);
    if (!step)
      return refuseStatement(read.op);
    box.inRound = true, box.tile = step->list();
    boxes.add(box, variance);
    return success();
  }
  auto argument = cast<BlockArgument>(read.tensor);
  auto function = read.op->getParentOfType<func::FuncOp>();
  StringRef name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "lacis.name").getValue();
  if (!function.getArgAttr(argument.getArgNumber(), "lacis.staged"))
    return read.op->emitError("tiles: operand '") << name << "' is not staged in 'shared'";
  if (failed(readBox(box, name, sum, rounds, variance)))
    return failure();
  boxes.add(box, variance);
  return success();
}

FailureOr<StagedBoxes> lacis::findBoxes(LoopOp groups, Rounds rounds, TileVariance &variance) {
  StagedBoxes boxes;
  LogicalResult ok = success();
  groups->walk<WalkOrder::PreOrder>([&](LoopOp loop) {
    auto product = loop != groups ? factorsOf(loop) : arith::MulFOp();
    for (Value factor : product ? ValueRange(product->getOperands()) : ValueRange())
      if (std::optional<Access> read = Access::ofFactor(factor); read && succeeded(ok))
        ok = addBox(boxes, *read, loop, rounds, variance);
  });
  if (succeeded(ok) && boxes.empty() && rounds.statements()->getOps<LoopOp>().empty())
    return refuseStatement(rounds.loop);
  return failed(ok) ? FailureOr<StagedBoxes>() : FailureOr<StagedBoxes>(boxes);
}
