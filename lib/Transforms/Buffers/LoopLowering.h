// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rewrites the body of a nest: lacis loops and accesses become scf loops over pointers.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_LOOPLOWERING_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_LOOPLOWERING_H

#include "Addressing.h"
#include "lacis/Dialect/Lacis/IR/BindingOps.h"
#include "lacis/Dialect/Lacis/IR/Guards.h"

namespace lacis {

class LoopLowering {
public:
  /// `outlines`: what many nests do in the same way becomes a function that they call.
  LoopLowering(KernelArguments &arguments, llvm::ArrayRef<WorkspaceOp> workspaces, bool outlines)
      : arguments(arguments), workspaces(workspaces), outlines(outlines) {}

  /// Lowers all operations of `block` but its terminator.
  llvm::LogicalResult lower(mlir::OpBuilder &b, mlir::Block &block);

private:
  llvm::LogicalResult lowerOperation(mlir::OpBuilder &b, mlir::Operation &op);
  llvm::LogicalResult lowerLoop(mlir::OpBuilder &b, LoopOp loop);
  llvm::LogicalResult lowerLevelLoop(mlir::OpBuilder &b, LevelLoopOp loop);
  llvm::FailureOr<llvm::SmallVector<mlir::Value>> lowerPosition(mlir::OpBuilder &b, LevelLoopOp loop,
                                                                StorageLevel &level, mlir::Value lo,
                                                                mlir::Value position, mlir::ValueRange carried,
                                                                llvm::SmallVector<mlir::Value> &state);
  llvm::LogicalResult lowerFewPositions(mlir::OpBuilder &b, LevelLoopOp loop, mlir::Value lo, int64_t trip,
                                        llvm::SmallVector<mlir::Value> carried, llvm::SmallVector<mlir::Value> state);
  llvm::LogicalResult lowerIf(mlir::OpBuilder &b, mlir::scf::IfOp op);
  void lowerWorkspace(mlir::OpBuilder &b, WorkspaceOp op);
  void lowerLocate(mlir::OpBuilder &b, LocateOp op);
  void lowerOwner(mlir::OpBuilder &b, OwnerOp op);
  void lowerLookup(mlir::OpBuilder &b, LookupOp op);
  void lowerSolve(mlir::OpBuilder &b, SolveOp op);
  void lowerBounds(mlir::OpBuilder &b, BoundsOp op);
  void lowerFind(mlir::OpBuilder &b, FindOp op);
  void lowerSeek(mlir::OpBuilder &b, SeekOp op);
  void lowerCoordinate(mlir::OpBuilder &b, CoordinateOp op);
  void lowerValue(mlir::OpBuilder &b, ValueOp op);
  void lowerEntry(mlir::OpBuilder &b, EntryOp op);
  void lowerSet(mlir::OpBuilder &b, SetOp op);
  void lowerLanes(mlir::OpBuilder &b, LanesOp op);
  llvm::LogicalResult lowerRead(mlir::OpBuilder &b, ReadOp op);
  llvm::LogicalResult lowerWrite(mlir::OpBuilder &b, WriteOp op);
  llvm::LogicalResult lowerCopyTransposed(mlir::OpBuilder &b, CopyTransposedOp op);
  llvm::LogicalResult lowerRegions(mlir::OpBuilder &b, mlir::Operation &op);
  llvm::LogicalResult lowerPresence(mlir::OpBuilder &b, PresenceOp op);
  void lowerOrigin(mlir::OpBuilder &b, OriginOp op);
  mlir::Value takeCopy(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                       llvm::SmallVectorImpl<mlir::Value> &indices, int64_t rows);
  mlir::Value copyRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, mlir::Value copy, int64_t rows);
  llvm::LogicalResult lowerLoadTile(mlir::OpBuilder &b, LoadTileOp op);
  void lowerLoadRun(mlir::OpBuilder &b, LoadRunOp op);
  template <typename Load> void lowerLoadVector(mlir::OpBuilder &b, Load op);
  void lowerStoreRows(mlir::OpBuilder &b, StoreRowsOp op);
  void lowerLoadAcc(mlir::OpBuilder &b, LoadAccOp op);
  void lowerStoreAcc(mlir::OpBuilder &b, StoreAccOp op);
  mlir::Value withoutPadding(mlir::OpBuilder &b, mlir::Location loc, mlir::Value target, mlir::Value value,
                             mlir::ValueRange rows, mlir::Value column);
  llvm::LogicalResult lowerStoreBlocks(mlir::OpBuilder &b, StoreBlocksOp op);
  llvm::LogicalResult lowerStoreTile(mlir::OpBuilder &b, StoreTileOp op);
  llvm::LogicalResult cloneConverted(mlir::OpBuilder &b, mlir::Operation &op);

  TensorSource valuesOf(mlir::Value tensor);
  /// `multiple` is known to divide the number of elements before `array`, 0 where it begins there.
  mlir::Value loadAt(mlir::OpBuilder &b, mlir::Location loc, mlir::Value array, mlir::Value position, mlir::Type type,
                     int64_t multiple = 0);
  mlir::Value copyAddress(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, mlir::Value array,
                          mlir::Value copy);
  StorageLevel storageLevel(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, unsigned level);
  llvm::SmallVector<mlir::Value> mapped(mlir::ValueRange values);
  llvm::SmallVector<mlir::Value> yielded(mlir::Block &block);
  SizeAttr conditionOf(LoopOp outermost);
  mlir::Type convert(mlir::Type type) const {
    return mlir::isa<mlir::IndexType>(type) ? arguments.getIndexType() : type;
  }

  KernelArguments &arguments;
  llvm::ArrayRef<WorkspaceOp> workspaces;
  bool outlines;
  mlir::IRMapping mapping;
};

/// The digits of a level's coordinate, first most significant.
llvm::SmallVector<mlir::Value> splitDigits(mlir::OpBuilder &b, mlir::Location loc, StorageLevel &level,
                                           llvm::ArrayRef<Digit> digits, mlir::Value crd);
/// Refuses an access to `lanes` elements along an axis that do not lie evenly spaced from `indices` on.
llvm::LogicalResult requireEven(mlir::Operation *op, DenseAccess &access, mlir::ValueRange indices, unsigned axis,
                                int64_t lanes);
/// lane < count, for each lane.
mlir::Value laneMask(mlir::OpBuilder &b, mlir::Location loc, mlir::Value count, int64_t lanes);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_LOOPLOWERING_H
