// SPDX-License-Identifier: Apache-2.0
/// \file
/// What roles read of arguments and arrays in memory alike on every architecture.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_ROLES_READS_H
#define LACIS_LIB_TRANSFORMS_MACHINE_ROLES_READS_H

#include "lacis/Dialect/Lacis/IR/TilePart.h"
#include "lacis/Transforms/Passes.h"

namespace lacis {

/// The element at `index`, of `type`; 0 unless `inside`.
mlir::Value elementOr0(mlir::OpBuilder &b, mlir::Location loc, mlir::Value array, mlir::Value index, mlir::Type type,
                       mlir::Value inside);
/// The number at `index`, of `type`, as f32; 0 unless `inside`.
mlir::Value numberOr0(mlir::OpBuilder &b, mlir::Location loc, mlir::Value array, mlir::Value index, mlir::Type type,
                      mlir::Value inside);
/// The element at `index` of the vector that is loaded along columns, as f32; 0 beyond its end. `array` and `size` are
/// what the role has of it, in the type of the index.
mlir::Value columnElement(mlir::OpBuilder &b, LoadColumnsOp op, mlir::Value array, mlir::Value index, mlir::Value size);
/// The vector is of numbers that `numberOr0` reads.
llvm::LogicalResult checkLoadRows(LoadRowsOp op);
/// Stores read the vector part by part, with what they compute; nothing else does.
llvm::LogicalResult checkLoadColumns(LoadColumnsOp op);
/// Where matrix `number` of those behind `array` begins, each of so many rows and columns, all in i64.
mlir::Value matrixAt(mlir::OpBuilder &b, mlir::Location loc, mlir::Value array, mlir::Value number, mlir::Value rows,
                     mlir::Value columns, mlir::Type element);
/// A pointer to a batch of matrices: their sizes, and their strides where they are not contiguous.
struct MatrixBatch {
  mlir::Value array;
  mlir::ArrayAttr shape, strides;
};
/// Where the matrix begins that the indices before the last two name.
mlir::Value matrixOfBatch(mlir::OpBuilder &b, mlir::Location loc, mlir::func::FuncOp kernel, const MatrixBatch &batch,
                          mlir::ValueRange indices, mlir::Type element);
/// The one of `firsts` that has this number, of the type of its integers.
mlir::Value chosenOf(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange firsts, mlir::Value number);
/// The tile that a load fills: all of it, or a part.
TileType pieceOf(LoadTileOp op);
/// Two neighbouring bytes of a bitmap, `offset` bytes behind `base`, as f32.
std::array<mlir::Value, 2> entryPair(mlir::OpBuilder &b, mlir::Location loc, mlir::Value base, int32_t offset);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_MACHINE_ROLES_READS_H
