// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a producer loads: the boxes of a round, or those that stay.
#include "BoxLoads.h"

#include "StepTiles.h"
#include "TileFactors.h"
#include "TileVectors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

MutableArrayRef<RoleScalars> BoxLoads::partsOf(const StagedBox &box) {
  bool isGathered = box.inRound && !scalars.parts.empty();
  return isGathered ? MutableArrayRef(scalars.parts) : MutableArrayRef(scalars);
}

/// Those that consumers have of their own, and tiles of a step, have others.
BoxLoads::Bases BoxLoads::basesOf(OpBuilder &b, const StagedBox &box) {
  Bases found;
  if (box.consumers == 1 && !findOf(box.read))
    for (RoleScalars &own : partsOf(box))
      found.push_back(lacis::basesOf(b, box.read, variance, own));
  return found;
}

void BoxLoads::fill(OpBuilder &b, StagedBox &box, const Bases &bases, ValueRange tiles) {
  if (std::optional<StepTiles> step = StepTiles::of(box.read))
    return step->load(b, groups.getLoopName() + "_tile", scalars, tiles[0]);
  if (box.consumers > 1)
    return fillEach(b, box, tiles[0]);
  for (auto [number, own] : llvm::enumerate(partsOf(box))) {
    TilePart part{static_cast<int64_t>(number), static_cast<int64_t>(bases.size())};
    loadBox(b, box.read, bases[number], tiles[0], Value(), part);
    for (auto [vector, line] : llvm::zip(box.vectors, tiles.drop_front()))
      loadLine(b, vector, line, variance, own, part);
  }
}

/// The boxes that consumers have of their own, each tile by tile into the list of the place.
void BoxLoads::fillEach(OpBuilder &b, StagedBox &box, Value list) {
  auto constant = [&](int64_t value) { return arith::ConstantIndexOp::create(b, loc, value).getResult(); };
  for (int64_t number = 0, tile = 0; number < box.consumers; ++number) {
    RoleScalars own = scalars;
    own.map(groups.getCoordinate(), constant(number));
    SmallVector<Value> bases = lacis::basesOf(b, box.read, variance, own);
    Value first = bases.back();
    for (int64_t across = 0; across < box.tile.getCount(); ++across) {
      bases.back() = arith::AddIOp::create(b, loc, first, constant(across * box.tile.getColumns()));
      loadBox(b, box.read, bases, list, constant(tile++));
    }
  }
}

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
