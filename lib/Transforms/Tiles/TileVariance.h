// SPDX-License-Identifier: Apache-2.0
/// \file
/// Along which loops of a tile the values of a nest vary.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILEVARIANCE_H
#define LACIS_LIB_TRANSFORMS_TILES_TILEVARIANCE_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "llvm/ADT/SetVector.h"

namespace lacis {

class TileVariance {
public:
  using Coordinates = llvm::SetVector<mlir::Value>;
  /// An index is a number, the same for all of a tile, and a coordinate of the tile; either may be null.
  struct Place {
    mlir::Value base, coordinate;
    int64_t width = 0; // the base is another one in each part of so many neighbours along the coordinate; 0 in a whole tile
  };

  /// The rounds of the loop are elements of a tile, which has so many times as many of them side by side.
  void add(LoopOp loop, int64_t times = 1) { sizes[loop.getCoordinate()] = *loop.getTrip() * times; }
  int64_t sizeOf(mlir::Value coordinate) const { return sizes.lookup(coordinate); }
  bool isOfTile(mlir::Value coordinate) const { return sizes.contains(coordinate); }
  /// The coordinates of tiles that the value follows from.
  const Coordinates &of(mlir::Value value);
  std::optional<Place> placeOf(mlir::Value index);
  /// The same, of an index that may begin anew in each part of the tile.
  std::optional<Place> placeInParts(mlir::Value index);
  /// An index whose parts of `width` neighbours begin somewhere in a window of the axis: `offset` behind `base`, where the
  /// last may begin at `last`.
  struct Window {
    mlir::Value base, offset, last, coordinate;
    int64_t width = 0, size = 0;
  };
  std::optional<Window> windowOf(mlir::Value index);
  /// Where the box begins that the index is in; null at the first place of its axis.
  mlir::Value baseOf(mlir::Value index);
  /// From here on so many rounds of a loop are elements of a tile.
  void resize(mlir::Value coordinate, int64_t size) { sizes[coordinate] = size; }

private:
  std::optional<Place> digitOf(mlir::Value index);

  llvm::DenseMap<mlir::Value, int64_t> sizes;
  llvm::DenseMap<mlir::Value, std::unique_ptr<Coordinates>> found;
};

/// So many neighbours along a coordinate have the same value: 1 where each has its own, 0 where all have one.
int64_t neighboursOf(mlir::Value value, mlir::Value coordinate);
/// Leading indices that are the digits of one number, as those of a batch are, as that number.
llvm::SmallVector<mlir::Value> foldDigits(mlir::ValueRange indices);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILEVARIANCE_H
