// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tiles that several loads fill, each a part of its own: the mark of such a load.
#ifndef LACIS_DIALECT_LACIS_IR_TILEPART_H
#define LACIS_DIALECT_LACIS_IR_TILEPART_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"

namespace lacis {

/// Axes that one map of the copy engine has at the most.
inline constexpr size_t kMapAxes = 5;

/// One of the equal parts of a tile: of its rows, or of the columns of a tile of one row.
struct TilePart {
  int64_t number = 0, count = 1;
};

/// The part that a load fills.
inline TilePart partOf(LoadTileOp load) {
  mlir::DenseI64ArrayAttr mark = load.getPartAttr();
  return mark ? TilePart{mark[0], mark[1]} : TilePart();
}

/// The load fills this part. That of a tile of one row lies inside of its tensor.
inline void setPart(LoadTileOp load, TilePart part) {
  if (part.count > 1)
    load.setPartAttr(mlir::DenseI64ArrayAttr::get(load.getContext(), {part.number, part.count}));
}

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_TILEPART_H
