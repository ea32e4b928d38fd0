// SPDX-License-Identifier: Apache-2.0
/// \file
/// The guards of a checked kernel: around its loads and stores, and around its copies of tiles.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_ACCESSCHECKS_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_ACCESSCHECKS_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

/// The low bits of a fault word are the element that was asked for, those above the argument whose array it is.
constexpr int64_t kIndexBits = 48;

/// Where an access begins: an argument, and how many elements behind it.
struct Place {
  mlir::BlockArgument array;
  mlir::Value element;
};

class AccessChecks {
public:
  AccessChecks(mlir::func::FuncOp kernel, mlir::ArrayAttr arguments)
      : kernel(kernel), entry(kernel.getBody()), records(arguments.getValue()) {}

  llvm::LogicalResult run();
  /// What all arguments are, with those that were added.
  llvm::ArrayRef<mlir::Attribute> getRecords() const { return records; }

private:
  mlir::Value constant(mlir::OpBuilder &b, mlir::Location loc, int64_t value) {
    return mlir::arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  }
  mlir::Value addArgument(mlir::Type type, llvm::StringRef kind, llvm::ArrayRef<mlir::NamedAttribute> fields = {});
  llvm::StringRef kindOf(mlir::Value array) const;
  std::string nameOf(mlir::BlockArgument workspace);
  mlir::Value bytesOf(mlir::BlockArgument array, mlir::Type element);
  /// How many elements an array has.
  mlir::Value extentOf(mlir::OpBuilder &b, mlir::Location loc, mlir::BlockArgument array, mlir::Type element);
  llvm::FailureOr<Place> placeOf(mlir::OpBuilder &b, mlir::Operation *access, mlir::Value address, mlir::Type element);
  llvm::LogicalResult guard(mlir::Operation *access);
  mlir::Value within(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Value size);
  void guardTile(mlir::Operation *copy, mlir::Value array, mlir::Type element, mlir::Value first, mlir::Value inside);
  void guardTileAccess(mlir::Operation *op);
  void guardLoadTile(LoadTileOp load);
  void guardLoadRun(LoadRunOp load);
  mlir::Value liesInTiles(mlir::OpBuilder &b, mlir::Location loc, mlir::Value workspace, mlir::Value place,
                          AccType type);
  void guardLoadAcc(LoadAccOp load);
  void guardStoreAcc(StoreAccOp store);
  void guardRows(mlir::Operation *load, mlir::Value array, mlir::Type element, mlir::Value first,
                 mlir::OpOperand &size);
  void record(mlir::OpBuilder &b, mlir::Location loc, const Place &place, mlir::Value extent);
  void limit(mlir::scf::ForOp loop);

  mlir::func::FuncOp kernel;
  mlir::OpBuilder entry;
  mlir::Value fault, longest;
  llvm::MapVector<mlir::Value, mlir::Value> bytes; // by array
  llvm::DenseMap<mlir::Value, std::string> names; // of workspaces
  llvm::SmallVector<mlir::Attribute> records;
};

/// The bytes of an element of memory.
inline int64_t bytesOfElement(mlir::Type type) {
  return std::max(1u, mlir::getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8);
}

/// Does an operation read tiles, or rows for tiles, from memory, or keep them in a workspace?
inline bool isTileAccess(mlir::Operation *op) {
  return llvm::isa<LoadTileOp, LoadRunOp, LoadRowsOp, LoadColumnsOp, LoadAccOp, StoreAccOp, LoadEntriesOp>(op);
}

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_ACCESSCHECKS_H
