// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the mappings of all targets share: one function a nest, and the flat number of a unit.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_LAUNCHMAPPING_H
#define LACIS_LIB_TRANSFORMS_MACHINE_LAUNCHMAPPING_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

/// Makes one function of each nest of the module's kernel, named kernel_0, kernel_1, …; calls `map` on each
/// and records the launches it answers; null for a nest that joins the launch of the next. Does nothing at the target stage.
llvm::LogicalResult
mapNests(mlir::ModuleOp module,
         llvm::function_ref<llvm::FailureOr<mlir::Attribute>(mlir::func::FuncOp function)> map);

/// The nest joins the launch of a later one.
bool isBeside(mlir::func::FuncOp function);

/// The units of a nest that shares a launch: [start, end), of which `start` is 0 until the nest is joined to others.
struct SharedUnits {
  mlir::Value start, units, end;
};
/// Those of a nest whose loops `loops` are bound, in `type`, as operations before it.
SharedUnits shareUnits(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, llvm::ArrayRef<mlir::scf::ForOp> loops);

/// Nests that wait for the one whose launch they join.
class BesideNests {
public:
  bool empty() const { return functions.empty(); }
  llvm::ArrayRef<mlir::func::FuncOp> getFunctions() const { return functions; }
  /// One more, whose units end at `end`; `size` are the factors of their number.
  void add(mlir::func::FuncOp function, mlir::Value end, mlir::Attribute size);
  /// Moves them into `function`, before its own nest; returns the launch of all.
  mlir::Attribute joinTo(mlir::func::FuncOp function, mlir::Attribute launch);

private:
  llvm::SmallVector<mlir::func::FuncOp> functions;
  llvm::SmallVector<mlir::Value> ends;
  llvm::SmallVector<mlir::Attribute> sizes;
};

/// Changes the launches on record, one after another.
void changeLaunches(mlir::ModuleOp module, llvm::function_ref<void(mlir::NamedAttrList &launch)> change);

/// The loops of `function` that are bound to one of `units`, outermost first.
llvm::SmallVector<mlir::scf::ForOp> boundLoops(mlir::func::FuncOp function, llvm::ArrayRef<llvm::StringRef> units);

/// The product of the loops' sizes, as factors of the launch record.
SizeAttr productOfSizes(mlir::Builder &b, llvm::ArrayRef<mlir::scf::ForOp> loops);

/// Splits the flat `unit` into the coordinates of `loops` (the last runs fastest), in their index type.
llvm::SmallVector<mlir::Value> decodeUnit(mlir::OpBuilder &b, mlir::Location loc, mlir::Value unit,
                                          llvm::ArrayRef<mlir::scf::ForOp> loops);

/// Replaces a bound loop by its body at one coordinate.
void inlineLoop(mlir::scf::ForOp loop, mlir::Value coordinate);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_MACHINE_LAUNCHMAPPING_H
