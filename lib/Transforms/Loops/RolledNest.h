// SPDX-License-Identifier: Apache-2.0
/// \file
/// One loop over the positions of a row that carries sums, and a maximum where they are below one.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_ROLLEDNEST_H
#define LACIS_LIB_TRANSFORMS_LOOPS_ROLLEDNEST_H

#include "Expression.h"
#include "Rescaled.h"
#include "RolledCopies.h"

#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// Is what `statement` made read by `reader`, or by what that is made of?
bool isReadBy(mlir::linalg::GenericOp reader, mlir::linalg::GenericOp statement);

/// for rows: m, l, o = -inf, 0, 0;  for j0: { t; n = max(m, t); r = p(m, n); p(t, n); l = l r + …; o = o r + …; m = n };  y
/// Without a maximum:  for rows: o = 0;  for j0: { t; o = o + t … };  y
class RolledNest {
public:
  RolledNest(OutputLoops &outer, const Rescaled &chain, llvm::ArrayRef<KernelResult> results);
  llvm::LogicalResult build();

private:
  /// Loops of one statement over its tile: the place of each index, and the letters there.
  struct Tile {
    mlir::OpBuilder b;
    llvm::SmallVector<LoopOp> loops;
    mlir::Value row, column;                // indices inside of the tile
    llvm::SmallVector<Letter, 0> letters;   // of the rows, the column, and what only this statement has
    llvm::SmallVector<mlir::Value> others;  // coordinates of the latter
    mlir::Value inside;                     // the row is one of the axis; null where all are
  };

  LoopOp openOwners(mlir::OpBuilder &b);
  LoopOp openParts(mlir::Block *block, Letter &letter, int64_t ofTile, int64_t ofBlock);
  std::string nameOfRow() const { return digitName(tiledRow, rowPart ? 2 : 1, rowPart ? 3 : 2); }
  std::string nameOfColumn() const { return digitName(column.name, columnPart ? 2 : 1, columnPart ? 3 : 2); }
  mlir::Value placeInBlock(mlir::OpBuilder &b, mlir::Value part, int64_t ofTile, mlir::Value place);
  Tile open(mlir::OpBuilder at, mlir::linalg::GenericOp statement, PathAttr path, bool columns, bool others);
  void close(Tile &tile);
  mlir::Value openColumns(Tile &tile, PathAttr path, mlir::ValueRange carried, LoopOp &loop,
                          std::optional<Reduction> reduce = {});
  void placeRow(Tile &tile);
  mlir::Value placeColumn(Tile &tile, mlir::OpBuilder &b);
  mlir::Value read(mlir::OpBuilder &b, mlir::Value tile, mlir::ValueRange at);
  void write(mlir::OpBuilder &b, mlir::Value value, mlir::Value tile, mlir::ValueRange at);
  llvm::SmallVector<mlir::Value> coordinates(mlir::OpBuilder &b, mlir::linalg::GenericOp statement, Tile &tile);
  mlir::FailureOr<mlir::Value> share(mlir::OpBuilder &b, Tile &tile, mlir::Value score, mlir::Value largest);
  mlir::Value scaled(mlir::OpBuilder &b, mlir::Value score);

  llvm::LogicalResult begin(mlir::OpBuilder &b);
  void copyOperands(mlir::OpBuilder &b);
  mlir::Value neutral(mlir::OpBuilder &b);
  mlir::Value isEntry(mlir::OpBuilder &b, Tile &tile, mlir::Value place);
  mlir::Value masked(mlir::OpBuilder &b, Tile &tile, mlir::Value value, mlir::Value place, mlir::Value inside);
  llvm::SmallVector<std::pair<LevelAttr, unsigned>> ownerLevels();
  void setMade(Expression &expression, mlir::OpBuilder &b, mlir::linalg::GenericOp reader, Tile &tile);
  llvm::LogicalResult fill(mlir::OpBuilder &b, unsigned number);
  llvm::LogicalResult findLargest(mlir::OpBuilder &b);
  llvm::LogicalResult rescale(mlir::OpBuilder &b);
  llvm::LogicalResult fillShares(mlir::OpBuilder &b);
  llvm::LogicalResult fillLinear(mlir::OpBuilder &b, unsigned number);
  llvm::LogicalResult updateFollower(mlir::OpBuilder &b, unsigned number);
  llvm::LogicalResult finish(mlir::OpBuilder &b, const KernelResult &result, PathAttr path);
  std::string nameOf(mlir::linalg::GenericOp statement) const;
  /// The path of the loops of a statement, in what they do beside others.
  PathAttr pathOf(mlir::linalg::GenericOp statement, llvm::StringRef phase = "") const;
  /// What stands in a tile: a statement and its tile.
  mlir::linalg::GenericOp madeOf(unsigned number) const { return chain.shares && isShared ? chain.shares : chain.made[number]; }
  unsigned summedAxis() const { return format.getLevels()[chain.level].getDigits()[0].axis; }
  bool guardsColumns() const {
    return needsGuard(column.size, chain.isOfTiles ? storedColumns : columns, columns > 1 ? 2 : 1);
  }

  OutputLoops &outer;
  Rescaled chain;
  llvm::ArrayRef<KernelResult> results;
  mlir::Location loc;
  mlir::Value pattern, position; // of the present round
  FormatAttr format;
  mlir::Value walked;                // the pattern, or an execution layout of it
  mlir::Value bits;                  // of the round in a layout: which rows of blocks have one
  unsigned level = 0, firstAxis = 0; // of what is walked: its rolled level, its first axis among the pattern's
  mlir::Type element;
  llvm::SmallVector<Letter, 0> rows; // of what the maximum is over
  Letter column;
  std::string tiledRow;              // the letter whose rows a tile has, or none
  int64_t height = 1, columns = 1;   // of a tile
  int64_t blockRows = 1, blockColumns = 1; // of a block that is walked, which may have several tiles of either
  int64_t storedColumns = 1; // of a block of the pattern: tiles of the last one may lie behind the columns
  mlir::Value rowPart, columnPart;   // the number of the tile in its block, or null
  llvm::SmallVector<mlir::Value> made; // tiles of what is made on the pattern: t, later p
  llvm::SmallVector<mlir::Value> linear; // tiles of what is linear in p
  bool isShared = false;               // p is in the place of t
  mlir::TypedAttr factor;              // t and m are so many times what their tiles hold; null is 1
  mlir::Value largest, ratio;          // tiles: m, p(m, n); null without a maximum
  llvm::SmallVector<RolledCopy> copies;
  llvm::SmallVector<mlir::Value> states; // of each follower
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_ROLLEDNEST_H
