// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operations on tiles as loops over memory: tiles lie row by row, each thread has some rows of an accumulator.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_PLAIN_TILELOOPS_H
#define LACIS_LIB_TRANSFORMS_MACHINE_PLAIN_TILELOOPS_H

#include "../Roles/Reads.h"
#include "../Roles/RoleBody.h"
#include "Resumable.h"

#include "llvm/ADT/MapVector.h"

namespace lacis::plain {

/// The rows of an accumulator that this thread has, in memory, `stride` elements apart; or the number of a place.
struct Acc {
  mlir::Value pointer;
  int64_t stride = 0;
  mlir::Type element;
};

/// Where the stages of a ring lie. Rings beside others have all their stages, and count how many places have been filled,
/// since the roles may use them in another order. A place is its number there.
struct Stages {
  llvm::SmallVector<mlir::Value> tiles; // of the first stage; those of the next ones follow
  int64_t count = 1;
  mlir::Value filled; // i64 in memory; null where there is one stage
};

class TileLoops {
public:
  using Body = llvm::function_ref<void(mlir::OpBuilder &, mlir::Value)>;

  /// `threads` share the rows; `thread` is the number of this one (i64).
  TileLoops(mlir::func::FuncOp kernel, mlir::Value thread, int64_t threads);

  void placeRing(RingOp ring, Stages place) { stages[ring] = std::move(place); }
  llvm::LogicalResult lowerProducer(mlir::Region &role);
  /// `fill` calls the producer until it has filled a stage.
  llvm::LogicalResult lowerConsumer(mlir::Region &role, llvm::function_ref<void(mlir::OpBuilder &)> fill);
  /// Memory of the kernel, for all its time.
  mlir::Value allocate(mlir::Type element, int64_t count);

private:
  // Structure
  llvm::LogicalResult lower(mlir::Block &block);
  llvm::LogicalResult lower(mlir::scf::ForOp loop);
  llvm::LogicalResult lower(mlir::scf::IfOp op);
  void lower(AcquireOp op);
  void lower(RevisitOp op);
  void lower(AdvanceOp op) { moveOn(op.getRing(), op.getNext()); }
  void lower(ReleaseOp op);
  void lower(CompleteOp op);
  void moveOn(mlir::Value place, mlir::Value next);
  void placeTiles(mlir::OpBuilder &b, const Stages &ring, mlir::Value number, mlir::ValueRange tiles);
  Acc carriedOf(mlir::Value value);
  mlir::Value numberOf(mlir::OpBuilder &b, mlir::Value place);
  void await(mlir::OpBuilder &b, const Stages &ring, mlir::Value number);
  bool isCarried(mlir::Value value);
  void dropTiles(mlir::Region &role);

  // Tiles
  mlir::Value tileAt(mlir::OpBuilder &b, mlir::Value tile, mlir::Value place);
  mlir::Value elementOf(mlir::OpBuilder &b, TileType tile, bool transposed, mlir::Value base, mlir::Value side,
                        mlir::Value depth);
  void lower(LoadTileOp op);
  /// The matrix that indices mean: of a batch, whose `shape` has more than two sizes, that of those before the last two.
  mlir::Value ownMatrix(mlir::OpBuilder &b, const MatrixBatch &batch, mlir::ValueRange indices, mlir::Type element);
  void loadBox(mlir::OpBuilder &b, TileType tile, const MatrixBatch &from, mlir::Value row, mlir::Value column, mlir::Value to);
  void lower(LoadRunOp op);

  // Accumulators
  Acc make(mlir::Type type);
  Acc made(mlir::Value value, mlir::Type type) { return accs[value] = make(type); }
  void copy(mlir::OpBuilder &b, mlir::Type type, const Acc &from, const Acc &to);
  mlir::Value get(mlir::OpBuilder &b, const Acc &from, mlir::Value row, mlir::Value column);
  mlir::Value single(mlir::OpBuilder &b, mlir::Value value);
  void put(mlir::OpBuilder &b, const Acc &to, mlir::Value row, mlir::Value column, mlir::Value value);
  /// For each row that this thread has of an accumulator: where it lies, and its number.
  void eachRow(mlir::OpBuilder &b, AccType type,
               llvm::function_ref<void(mlir::OpBuilder &, mlir::Value, mlir::Value)> body);
  /// For each of its elements.
  void eachElement(mlir::OpBuilder &b, AccType type,
                   llvm::function_ref<void(mlir::OpBuilder &, mlir::Value, mlir::Value, mlir::Value)> body);
  void lower(SplatOp op);
  Acc zeros(mlir::OpBuilder &b, mlir::Value acc);
  Acc sumOf(mlir::OpBuilder &b, mlir::Operation *product, mlir::Value before);
  void lower(MmaOp op);
  void lower(MmaGatheredOp op);
  /// A row or a column of a tile: its `number`, and where in the contraction it begins.
  struct Side {
    TileType tile;
    bool transposed;
    mlir::Value base, number;
    int64_t skipped;
  };
  mlir::Value dot(mlir::OpBuilder &b, const Side &x, const Side &y, int64_t depth);
  using Element = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)>;
  mlir::Value dot(mlir::OpBuilder &b, int64_t depth, Element left, Element right);
  void multiplyLists(mlir::OpBuilder &b, MmaOp op, const Acc &acc, mlir::Value a, mlir::Value right);
  void multiplyHeld(mlir::OpBuilder &b, MmaOp op, const Acc &acc, mlir::Value right);
  void multiply(mlir::OpBuilder &b, MmaOp op, const Acc &acc, mlir::Value a, mlir::Value right, int64_t skipped);
  void lower(MapOp op);
  void lower(ReduceRowsOp op);
  void lower(ColumnsOp op);
  void lower(ReadTileOp op);
  void lower(ReadColumnsOp op);
  void lower(LoadRowsOp op);
  void lower(LoadColumnsOp op);
  void lower(LoadAccOp op);
  void lower(StoreAccOp op);
  void lower(LoadEntriesOp op);
  mlir::Value rowOfGroup(mlir::OpBuilder &b, mlir::ValueRange firsts, int64_t rows, mlir::Value row);
  void storeAt(mlir::OpBuilder &b, mlir::Location loc, mlir::Value target, mlir::ArrayAttr shape, mlir::Type element,
               mlir::Value row, mlir::Value column, mlir::Value value);
  void lower(StoreTileOp op);
  void lower(StoreRowsOp op);
  void lower(StoreBlocksOp op);

  // Arithmetic in i64
  mlir::Value constant(int64_t value);
  mlir::Value wide(mlir::OpBuilder &b, mlir::Value value);
  mlir::Value add(mlir::OpBuilder &b, mlir::Value x, mlir::Value y);
  mlir::Value multiply(mlir::OpBuilder &b, mlir::Value x, mlir::Value y);
  mlir::Value less(mlir::OpBuilder &b, mlir::Value x, mlir::Value y);
  mlir::Value address(mlir::OpBuilder &b, mlir::Value base, mlir::Type element, mlir::Value index);
  void loop(mlir::OpBuilder &b, mlir::Value begin, mlir::Value end, mlir::Value step, Body body);
  mlir::Value size(mlir::Attribute size);

  mlir::func::FuncOp kernel;
  mlir::Location loc;
  mlir::OpBuilder entry; // in the kernel's first block, behind what has been made there
  mlir::Value thread;
  const int64_t threads;
  llvm::DenseMap<mlir::Operation *, Stages> stages;
  llvm::DenseMap<mlir::Value, mlir::Value> tiles;
  llvm::DenseMap<mlir::Value, Acc> accs;
  llvm::DenseMap<int64_t, mlir::Value> constants;
  llvm::DenseMap<mlir::Attribute, mlir::Value> sizes;
  llvm::SmallVector<mlir::Operation *> dead;
  llvm::function_ref<void(mlir::OpBuilder &)> fill;
};

} // namespace lacis::plain

#endif // LACIS_LIB_TRANSFORMS_MACHINE_PLAIN_TILELOOPS_H
