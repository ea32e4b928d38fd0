// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where the stages, barriers and vectors of rings lie in shared memory.
#include "Rings.h"

#include "WarpInstructions.h"

using namespace mlir;
using namespace lacis;

/// Of the barriers that say full, or of those that say empty.
static int64_t sideBytes(Operation *ring) { return kBarrierBytes * cast<RingOp>(ring).getType().getStages(); }

int64_t lacis::placeStages(RolesOp roles, Rings &rings) {
  constexpr int64_t alignment = 1024;
  int64_t bytes = 0;
  roles.walk([&](AcquireOp acquire) {
    RingOp ring = ringOf(acquire.getRing());
    if (!rings.insert({ring, RingPlace()}).second)
      return;
    RingPlace &place = rings[ring];
    place.begin = bytes;
    for (TileType tile : ring.getType().getTiles()) {
      place.tiles.push_back(place.stageBytes);
      place.stageBytes += isVector(tile) ? 0 : llvm::alignTo(tile.getBytes(), alignment);
    }
    bytes += place.stageBytes * ring.getType().getStages();
  });
  return bytes;
}

/// Of all stages of the ring; `place`, if given, learns where they begin.
static int64_t placeVectors(Operation *op, int64_t begin, RingPlace *place) {
  auto ring = cast<RingOp>(op);
  for (auto [n, tile] : llvm::enumerate(ring.getType().getTiles())) {
    if (!isVector(tile))
      continue;
    if (place)
      place->tiles[n] = begin;
    begin += ring.getType().getStages() * vectorBytes(tile);
  }
  return begin;
}

int64_t lacis::countBarrierBytes(const Rings &rings) {
  int64_t bytes = 0, vectors = 0;
  for (auto &[ring, place] : rings) {
    bytes += 2 * sideBytes(ring);
    vectors = placeVectors(ring, vectors, nullptr);
  }
  constexpr int64_t alignment = 128; // of the vectors of the next group
  return vectors ? llvm::alignTo(vectors + bytes, alignment) : bytes;
}

int64_t lacis::placeBarriers(Rings &rings, int64_t begin) {
  for (auto &[ring, place] : rings)
    begin = placeVectors(ring, begin, &place);
  for (auto &[ring, place] : rings) {
    place.full = begin;
    place.empty = begin + sideBytes(ring);
    begin += 2 * sideBytes(ring);
  }
  return begin;
}

void GroupRings::place(OpBuilder &b, Warpgroup &group, Value number) const {
  WarpInstructions i(b, number.getLoc());
  group.number = number;
  group.stages = i.add(group.shared, i.multiply(number, groupStages));
  group.barriers = i.add(group.shared, i.multiply(number, groupBarriers));
}
