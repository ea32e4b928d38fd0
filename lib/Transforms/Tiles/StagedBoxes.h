// SPDX-License-Identifier: Apache-2.0
/// \file
/// What rings bring for a nest of statements: boxes of operands that products take, vectors along the columns of tiles.
#ifndef LACIS_LIB_TRANSFORMS_TILES_STAGEDBOXES_H
#define LACIS_LIB_TRANSFORMS_TILES_STAGEDBOXES_H

#include "TileVariance.h"
#include "lacis/Dialect/Lacis/IR/TilePart.h"

namespace lacis {

/// An element of an operand: a dense one has an index for each axis, a stored one the position of its block and one for
/// each level of that, behind the number of the copy where its values are in copies.
struct Access {
  mlir::Operation *op = nullptr;
  mlir::Value tensor;
  llvm::SmallVector<mlir::Value> indices;

  Access() = default;
  Access(ReadOp read) : op(read), tensor(read.getTensor()), indices(foldDigits(read.getIndices())) {}
  /// Where `write` or `set` stores.
  static std::optional<Access> ofStore(mlir::Operation *store);
  /// What a factor of a product takes of an operand; nothing of one that statements made. A tile of a step of an execution
  /// layout may not be stored.
  static std::optional<Access> ofFactor(mlir::Value factor);
  mlir::Location getLoc() const { return op->getLoc(); }
};

/// Where a tile of a step of an execution layout is found, or null.
FindOp findOf(const Access &access);

/// A part of a box that lies elsewhere in the operand than its neighbours.
struct BoxPart {
  mlir::Value begin, isThere; // where it begins along its axis; whether anything needs it, null where all is needed
};

/// A box of an operand that products take. A ring brings it, of its own or of a box that the same products take.
struct StagedBox {
  Access read;                         // the first that reads it
  bool inRound = false;                // it is another one in each round of the loop that loads ahead
  TileType tile;
  llvm::SmallVector<ReadOp> vectors;   // one number for each column, which come with it
  unsigned uses = 0, left = 0;         // how many reads take what the ring brings, and how many of them are to come
  mlir::Value place;                   // of its ring, as far as the role has come
  llvm::SmallVector<mlir::Value> held; // its tile and those of its vectors, between acquire and release
  /// So many consumers take what rounds bring, and each has a box of its own in this one's place, or all have the same.
  int64_t consumers = 1;
  bool isShared = false;
  mlir::Value first; // the first tile of a consumer's own box; null where there is one box
  mlir::Value partIndex; // along which parts of it begin anywhere; null where it is one
  llvm::SmallVector<BoxPart> parts; // consumer by consumer, as a producer has found them
  std::optional<TileVariance::Window> window; // in which its parts begin anywhere, or nullopt
  llvm::SmallVector<mlir::Value> offsets;     // of these, as a consumer has found them
  std::optional<unsigned> around;     // the box whose ring brings this one, too
  llvm::SmallVector<unsigned> joined; // boxes that its own ring brings, too, behind its own tile
  unsigned tiles = 0;                 // of the ring, before its own

  /// The type of what it has in the ring.
  TileType tileOfRing() const;
};

/// The boxes of a nest, in the order in which products take them.
class StagedBoxes {
public:
  /// A read that takes a box; one that another read takes, too, is brought once.
  void add(const StagedBox &box, TileVariance &variance);
  /// A vector that comes with the box of `beside`.
  void addVector(ReadOp vector, ReadOp beside, TileVariance &variance);
  /// The box that the read takes, or whose vector it is, and the number of the tile in its ring; null of other reads.
  std::pair<StagedBox *, unsigned> find(mlir::Operation *read);
  bool contains(mlir::Operation *read) const { return numbers.contains(read); }
  /// One ring brings the boxes of both factors of a product, where no other product takes either.
  void joinPairs(LoopOp groups);
  StagedBox &ringOf(StagedBox &box) { return box.around ? boxes[*box.around] : box; }
  StagedBox &operator[](unsigned number) { return boxes[number]; }
  /// What the ring of a box brings: tiles, and those of vectors.
  llvm::SmallVector<TileType> tiles(const StagedBox &ring, TileVariance &variance);
  llvm::SmallVector<mlir::Type> types(const StagedBox &ring, TileVariance &variance);

  auto begin() { return boxes.begin(); }
  auto end() { return boxes.end(); }
  bool empty() const { return boxes.empty(); }

private:
  void join(StagedBox &box, StagedBox &other);

  llvm::SmallVector<StagedBox, 0> boxes;
  llvm::DenseMap<mlir::Operation *, std::pair<unsigned, unsigned>> numbers; // of a read: its box, the tile in the ring
};

/// So many tiles, or lists of them, one after another.
TileType listOf(TileType tile, int64_t count);
/// The boxes with rings of which a loop moves the places on, or those alone that its rounds fill.
llvm::SmallVector<StagedBox *> placesOf(StagedBoxes &boxes, bool inRound);
void setPlaces(llvm::ArrayRef<StagedBox *> boxes, mlir::ValueRange places);
llvm::SmallVector<mlir::Value> valuesOf(llvm::ArrayRef<StagedBox *> boxes);
/// Where a box begins: of several axes of a batch it is the number of the matrix. In a stored block the position is first.
llvm::SmallVector<mlir::Value> placeOfBox(mlir::OpBuilder &b, mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices);
/// The number that the first indices make, up to the last `behind` axes: of a matrix of a batch, of a row, or of an
/// element. The first may stand for several axes.
mlir::Value numberOf(mlir::OpBuilder &b, mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices, size_t behind = 0);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_STAGEDBOXES_H
