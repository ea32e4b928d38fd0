// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tiles with an element for each lane, where a store need not leave out the lanes past an end.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_LANETILES_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_LANETILES_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "llvm/ADT/DenseSet.h"

namespace lacis {

/// The axes of tiles along which each guard of lanes around a write stands around all reads too: what a lane past the
/// end writes there, nobody reads. Found before loops become lanes, for then their guards are gone.
class LaneTiles {
public:
  explicit LaneTiles(mlir::Operation *function);

  bool has(WorkspaceOp tile, unsigned axis) const { return known.contains({tile, axis}); }

private:
  llvm::DenseSet<std::pair<mlir::Operation *, unsigned>> known;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_LANETILES_H
