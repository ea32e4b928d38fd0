// SPDX-License-Identifier: Apache-2.0
/// \file
/// The stored tiles of a step of an execution layout: a round brings them as a list, in which each consumer finds its own.
#ifndef LACIS_LIB_TRANSFORMS_TILES_STEPTILES_H
#define LACIS_LIB_TRANSFORMS_TILES_STEPTILES_H

#include "StagedBoxes.h"
#include "TileNest.h"

namespace lacis {

class RoleScalars;

class StepTiles {
public:
  /// Those that the access takes one of, by `lacis.find`; nullopt of other accesses.
  static std::optional<StepTiles> of(const Access &access);

  /// Room for all tiles that a step may have.
  TileType list();
  /// Starts the loads of the tiles of the present step. `name` is that of a loop over tiles.
  void load(mlir::OpBuilder &b, const LoopName &name, RoleScalars &scalars, mlir::Value list);
  /// The first tile of a place in the list, and which of its tiles are stored, null where all are. `last` is what was found
  /// before in the same round: a next place is counted on from there.
  struct Found {
    mlir::Value step, base, first, rest, stored;
    int64_t number = 0;
  };
  Found find(mlir::OpBuilder &b, RoleScalars &scalars, const Found &last);

private:
  void loadLinked(mlir::OpBuilder &b, mlir::Value position, mlir::Value place, mlir::Value list);
  void loadMatrix(mlir::OpBuilder &b, RoleScalars &scalars, mlir::Value list);
  mlir::Value constant(mlir::OpBuilder &b, int64_t value);

  FindOp found;
  RegroupOp walked;
  TileLayout layout;
  std::pair<int64_t, int64_t> block; // as it lies in memory; of a dense matrix 0, 0
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_STEPTILES_H
