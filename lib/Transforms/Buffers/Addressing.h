// SPDX-License-Identifier: Apache-2.0
/// \file
/// Levels and dense tensors as loads and addresses: the emission context that level kinds see.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_ADDRESSING_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_ADDRESSING_H

#include "KernelArguments.h"

namespace lacis {

/// What one level of one tensor may ask for while it emits code.
class StorageLevel : public LevelBuilder {
public:
  StorageLevel(mlir::OpBuilder &b, mlir::Location loc, KernelArguments &arguments, TensorSource source,
               FormatAttr format, unsigned level, TensorSource shape)
      : LevelBuilder(b, loc), arguments(arguments), source(std::move(source)), format(format), level(level),
        shape(std::move(shape)) {}

  LevelAttr getLevel() override { return format.getLevels()[level]; }
  mlir::Type indexType() override { return arguments.getIndexType(); }
  mlir::Value constant(int64_t value) override;
  mlir::Value load(llvm::StringRef buffer, mlir::Value index) override;
  mlir::Value size() override;
  mlir::Value width() override;
  mlir::Operation *symbols() override { return arguments.symbols(); }
  /// How many coordinates a digit has.
  mlir::Value digitSize(Digit digit);

private:
  /// How many coordinates an axis or a binding has.
  mlir::Value nameSize(unsigned name);
  std::string nameOf(llvm::StringRef buffer) const { return (buffer + llvm::Twine(level)).str(); }

  KernelArguments &arguments;
  TensorSource source;
  FormatAttr format;
  unsigned level;
  TensorSource shape; // the operand whose dimensions the axes have
};

/// The element address of a dense tensor or workspace, in 64 bits.
class DenseAccess {
public:
  DenseAccess(mlir::OpBuilder &b, mlir::Location loc, KernelArguments &arguments,
              llvm::ArrayRef<WorkspaceOp> workspaces, mlir::Value tensor, mlir::Value tile = {})
      : b(b), loc(loc), arguments(arguments), source(sourceOf(tensor, workspaces)),
        workspaces(workspaces), tensor(tensor), tile(tile) {}

  /// `indices` in the kernel's index type.
  mlir::Value address(mlir::ValueRange indices);
  /// `lanes` neighbours along an axis, from a multiple of `multiple` on, lie evenly spaced.
  bool isEven(unsigned axis, int64_t multiple, int64_t lanes);
  /// The distance, in elements, between neighbours along an axis that is even; null where it is one.
  mlir::Value strideOf(unsigned axis);
  /// Bytes that the address of a run along `axis` that starts at multiples of `multiple` is a multiple of.
  unsigned alignment(unsigned axis, int64_t multiple, unsigned lanes);

private:
  mlir::RankedTensorType type() const { return mlir::cast<mlir::RankedTensorType>(tensor.getType()); }
  FormatAttr layout() const { return mlir::dyn_cast_or_null<FormatAttr>(type().getEncoding()); }
  bool isStrided() { return !tile && arguments.isStrided(source); }
  mlir::Value size(unsigned axis);
  mlir::Value sizeValue(mlir::Value size);
  mlir::Value wide(mlir::Value index);
  mlir::Value extent(Digit digit);
  mlir::Value laidOut(mlir::ValueRange indices);

  mlir::OpBuilder &b;
  mlir::Location loc;
  KernelArguments &arguments;
  TensorSource source;
  llvm::ArrayRef<WorkspaceOp> workspaces;
  mlir::Value tensor;
  mlir::Value tile; // where a tile of the tensor's elements lies, in shared memory
};

/// A signed integer in another width.
mlir::Value castInteger(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Type type);
/// base + elements * sizeof(element), all in 64 bits.
mlir::Value elementAddress(mlir::OpBuilder &b, mlir::Location loc, mlir::Value base, mlir::Value elements,
                           mlir::Type element);
/// The operand whose dimension a size is (`tensor.dim`), and which one.
std::pair<TensorSource, int64_t> dimensionOf(mlir::Value size, llvm::ArrayRef<WorkspaceOp> workspaces);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_ADDRESSING_H
