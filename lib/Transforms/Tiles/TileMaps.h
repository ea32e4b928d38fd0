// SPDX-License-Identifier: Apache-2.0
/// \file
/// Arithmetic on the elements of a tile, as maps of accumulators.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILEMAPS_H
#define LACIS_LIB_TRANSFORMS_TILES_TILEMAPS_H

#include "TileVariance.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace lacis {

class RoleScalars;
struct Access;

class TileMaps {
public:
  using Known = llvm::DenseMap<mlir::Value, mlir::Value>;
  /// `known` are the accumulators of values that statements have made; `row` is the coordinate of the rows. Functions are
  /// computed as half types need them: `exp` is 2^(x log2 e), which machines have.
  TileMaps(TileVariance &variance, RoleScalars &scalars, Known &known, mlir::Value row)
      : variance(variance), scalars(scalars), known(known), row(row) {}

  /// The accumulator of a value, of `across` columns where `column` is null.
  llvm::FailureOr<mlir::Value> make(mlir::OpBuilder &b, mlir::Value value, mlir::Value column, mlir::Location loc,
                                    int64_t across = 1);
  /// From here on a choice that coordinates make is made at once for tiles that have the first value everywhere.
  void branchOnTiles() { branches = true; }
  /// What follows from rows alone divides them once: quotients of elements become products.
  static void divideByRows(LoopOp nest, TileVariance &variance);
  /// Reads what the value needs of operands that varies along these coordinates; numbers, where they are none.
  void loadAhead(mlir::OpBuilder &b, mlir::Value value, const TileVariance::Coordinates &along);
  /// Stores a value of rows and columns, or a number for each row; the operation, null for numbers.
  llvm::FailureOr<StoreTileOp> store(mlir::OpBuilder &b, const Access &to, mlir::Value value);
  /// The accumulator in another type.
  static mlir::Value rounded(mlir::OpBuilder &b, mlir::Value acc, mlir::Type element);

private:
  llvm::LogicalResult collect(mlir::OpBuilder &b, mlir::Value value);
  llvm::LogicalResult collectPlace(mlir::Value index);
  bool isVector(ReadOp read);
  llvm::FailureOr<mlir::Value> choose(mlir::OpBuilder &b, mlir::arith::SelectOp choice);
  llvm::FailureOr<mlir::Value> loadVector(mlir::OpBuilder &b, ReadOp read);
  mlir::Value compute(mlir::OpBuilder &b, mlir::Value value);
  mlir::Value chosenPart(mlir::OpBuilder &b, mlir::Value part, llvm::ArrayRef<mlir::Value> values);
  void placeGathered(mlir::OpBuilder &b, mlir::Value across, llvm::ArrayRef<llvm::SmallVector<mlir::Value>> numbers);
  mlir::Value powerOfTwo(mlir::OpBuilder &b, mlir::Operation *op);
  mlir::Value approximate(mlir::OpBuilder &b, mlir::Operation *op);

  TileVariance &variance;
  RoleScalars &scalars;
  Known &known;
  mlir::Value row, column;
  llvm::SmallPtrSet<mlir::Operation *, 8> steps;
  llvm::SetVector<mlir::Value> leaves; // values that are accumulators, or the same for all of the tile
  std::array<mlir::Value, 2> bases;    // of rows and columns, where coordinates are read
  llvm::SmallVector<mlir::Value> gathered; // leaves that are others in each part of a gathered tile
  bool readsPlace = false;
  bool branches = false;
  mlir::IRMapping inner;               // in the body of the map
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILEMAPS_H
