// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a producer loads: the boxes of a round, or those that stay.
#include "BoxLoads.h"

#include "StepTiles.h"
#include "TileFactors.h"
#include "TileVectors.h"
#include "lacis/Dialect/Lacis/IR/Follows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lacis;

MutableArrayRef<RoleScalars> BoxLoads::partsOf(const StagedBox &box) {
  bool isGathered = box.inRound && !scalars.parts.empty();
  return isGathered ? MutableArrayRef(scalars.parts) : MutableArrayRef(scalars);
}

/// Those that consumers have of their own, and tiles of a step, have others.
BoxLoads::Bases BoxLoads::basesOf(OpBuilder &b, const StagedBox &box) {
  Bases found;
  if (box.consumers == 1 && box.parts.empty() && !findOf(box.read))
    for (RoleScalars &own : partsOf(box))
      found.push_back(lacis::basesOf(b, box.read, variance, own));
  return found;
}

void BoxLoads::fill(OpBuilder &b, StagedBox &box, const Bases &bases, ValueRange tiles) {
  if (std::optional<StepTiles> step = StepTiles::of(box.read))
    return step->load(b, groups.getLoopName() + "_tile", scalars, tiles[0]);
  if (box.consumers > 1 || !box.parts.empty())
    return fillEach(b, box, tiles[0]);
  for (auto [number, own] : llvm::enumerate(partsOf(box))) {
    TilePart part{static_cast<int64_t>(number), static_cast<int64_t>(bases.size())};
    loadBox(b, box.read, bases[number], tiles[0], Value(), part);
    for (auto [vector, line] : llvm::zip(box.vectors, tiles.drop_front()))
      loadLine(b, vector, line, variance, own, part);
  }
}

//===- Parts --------------------------------------------------------------===//

/// What is the same for all parts of all consumers is computed once.
void BoxLoads::shareNumbers(OpBuilder &b, Value number) {
  Operation *op = number.getDefiningOp();
  if (!op || op->getNumRegions() != 0)
    return;
  if (variance.of(number).empty() && !followsFrom(number, groups.getCoordinate()))
    (void)scalars.get(b, number);
  else
    llvm::for_each(op->getOperands(), [&](Value operand) { shareNumbers(b, operand); });
}

/// Line by line, up to where the last part ends.
void BoxLoads::findLines(OpBuilder &b, StagedBox &box) {
  const TileVariance::Window &window = *box.window;
  Value base = scalars.get(b, window.base), last = scalars.get(b, window.last);
  Value end = arith::AddIOp::create(b, loc, last, constant(b, window.width));
  for (int64_t number = 0; number < box.tile.getCount(); ++number) {
    Value first = constant(b, number * box.tile.getColumns());
    BoxPart line{arith::AddIOp::create(b, loc, base, first), Value()};
    if (!matchPattern(last, m_Constant()))
      line.isThere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, first, end);
    box.parts.push_back(line);
  }
}

/// Guards around the read may leave parts out.
void BoxLoads::findParts(OpBuilder &b, StagedBox &box) {
  if (box.window)
    return findLines(b, box);
  TileVariance::Place place = *variance.placeInParts(box.partIndex);
  SmallVector<Value> conditions;
  for (auto guard = box.read.op->getParentOfType<scf::IfOp>(); guard; guard = guard->getParentOfType<scf::IfOp>())
    if (variance.of(guard.getCondition()).contains(place.coordinate))
      conditions.push_back(guard.getCondition());
  shareNumbers(b, place.base);
  llvm::for_each(conditions, [&](Value condition) { shareNumbers(b, condition); });
  int64_t count = variance.sizeOf(place.coordinate) / place.width;
  for (int64_t number = 0; number < box.consumers * count; ++number) {
    RoleScalars own = scalars;
    if (box.consumers > 1)
      own.map(groups.getCoordinate(), constant(b, number / count));
    own.map(place.coordinate, constant(b, number % count * place.width));
    Value begin = own.get(b, place.base);
    box.parts.push_back({begin, own.all(b, conditions)});
  }
}

/// The boxes that consumers have of their own, and parts, each tile by tile into the list of the place.
void BoxLoads::fillEach(OpBuilder &b, StagedBox &box, Value list) {
  int64_t pieces = box.parts.empty() ? box.consumers : box.parts.size();
  int64_t across = box.consumers * box.tile.getCount() / pieces, tile = 0;
  for (int64_t number = 0; number < pieces; ++number) {
    RoleScalars own = scalars;
    if (box.consumers > 1)
      own.map(groups.getCoordinate(), constant(b, number * box.consumers / pieces));
    OpBuilder in = b;
    if (!box.parts.empty()) {
      auto [begin, isThere] = box.parts[number];
      own.map(variance.baseOf(box.partIndex), begin);
      if (isThere)
        in = scf::IfOp::create(b, loc, isThere, /*withElseRegion=*/false).getThenBodyBuilder();
    }
    SmallVector<Value> bases = lacis::basesOf(in, box.read, variance, own);
    Value first = bases.back();
    for (int64_t line = 0; line < across; ++line) {
      bases.back() = arith::AddIOp::create(in, loc, first, constant(in, line * box.tile.getColumns()));
      loadBox(in, box.read, bases, list, constant(in, tile++));
    }
  }
}

//===- Loads --------------------------------------------------------------===//

Value BoxLoads::load(OpBuilder &b, StagedBox &ring) {
  Bases bases = basesOf(b, ring);
  ValueRange tiles = AcquireOp::create(b, loc, boxes.types(ring, variance), ring.place).getTiles();
  fill(b, ring, bases, tiles);
  for (unsigned number : ring.joined) {
    StagedBox &box = boxes[number];
    fill(b, box, basesOf(b, box), tiles.drop_front(box.tiles));
  }
  return ReleaseOp::create(b, loc, ring.place.getType(), ring.place);
}
