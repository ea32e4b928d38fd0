// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tiles that are compiled for several numbers of columns.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILEVERSIONS_H
#define LACIS_LIB_TRANSFORMS_TILES_TILEVERSIONS_H

#include "TileStatements.h"

namespace lacis {

/// What a consumer does of an item, once for each number of `lacis.version`: `if part < version` says that columns of other
/// parts are not needed.
class TileVersions {
public:
  /// Finds the operation in a nest; without one there is a single version.
  static TileVersions find(LoopOp groups, TileVariance &variance);
  /// Emits all versions, and a choice between them.
  llvm::LogicalResult emit(mlir::OpBuilder &b, llvm::ArrayRef<StagedBox *> rings, RoleScalars &scalars,
                           llvm::function_ref<llvm::LogicalResult(mlir::OpBuilder &)> item);

private:
  llvm::LogicalResult emitUpTo(mlir::OpBuilder &b, size_t number, llvm::ArrayRef<StagedBox *> rings, RoleScalars &scalars,
                               llvm::function_ref<llvm::LogicalResult(mlir::OpBuilder &)> item);

  VersionOp version;
  TileVariance *variance = nullptr;
  llvm::SmallVector<mlir::Value> columns; // the loops over columns that have only what a version needs
  int64_t width = 0;                      // of a part
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILEVERSIONS_H
