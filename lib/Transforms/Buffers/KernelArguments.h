// SPDX-License-Identifier: Apache-2.0
/// \file
/// The flat arguments of a kernel: each is made when first needed, with its source on record.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_KERNELARGUMENTS_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_KERNELARGUMENTS_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

/// The sizes of a stored block of a format, none where it stores single elements.
llvm::SmallVector<int64_t> blockOf(FormatAttr format);

/// Where a tensor of the loops stage lives at run time.
struct TensorSource {
  enum Kind { Operand, Output, Workspace, Storage, Derived } kind;
  int64_t number = 0;     // operand or workspace
  std::string part;       // of a sum
  // Of derived arrays: what they are derived from, and by what, step by step.
  FormatAttr format = {};
  mlir::Type element = {};
  llvm::SmallVector<DerivedInterface, 2> steps = {};
  int64_t batch = 0; // axes of the tensor before those of what is derived

  /// The last step; null where nothing is derived.
  DerivedInterface derived() const { return steps.empty() ? DerivedInterface() : steps.back(); }
  /// What the last step is made from.
  DerivedSource before() const {
    return {format, element, steps.size() > 1 ? steps[steps.size() - 2] : DerivedInterface()};
  }
  /// Of work lists: how many each worker has.
  int64_t lists() const { return steps.empty() ? 0 : derived().getLists(); }
};

/// What stands behind an argument, a part, a walk, a regrouping, a work list or a workspace.
TensorSource sourceOf(mlir::Value tensor, llvm::ArrayRef<WorkspaceOp> workspaces);

class KernelArguments {
public:
  /// `before` is the function at the loops stage, whose types know the sizes that are constants.
  KernelArguments(mlir::func::FuncOp kernel, mlir::func::FuncOp before, unsigned indexBits)
      : kernel(kernel), before(before), b(kernel.getContext()), indexType(b.getIntegerType(indexBits)) {}

  mlir::Type getIndexType() const { return indexType; }
  /// The pointer of a dense operand, the output or a workspace.
  mlir::Value pointer(const TensorSource &source);
  /// The pointer of a named array of a packed operand or of a derived array.
  mlir::Value array(const TensorSource &source, llvm::StringRef name);
  /// The size of dimension `dim` of the named array, as an index.
  mlir::Value arrayDim(const TensorSource &source, llvm::StringRef name, int64_t dim);
  /// The size of a dimension of an operand (or of the output), as an index; of a work list, the number of workers.
  mlir::Value dim(const TensorSource &source, int64_t dim);
  /// May the operand have any strides? It is a batch of matrices of which each access says every index.
  bool isStrided(const TensorSource &source);
  /// The distance between neighbours along a dimension of such an operand, but the last, in elements; i64.
  mlir::Value stride(const TensorSource &source, int64_t dim);
  /// The same for all of them.
  mlir::ArrayAttr stridesOf(const TensorSource &source);
  /// ceildiv(size of a dimension, div).
  SizeAttr sizeOfDim(const TensorSource &source, int64_t dim, int64_t div = 1);
  /// 1 where above < size of a dimension <= upto (-1: no limit), else 0.
  SizeAttr condition(const TensorSource &source, int64_t dim, int64_t above, int64_t upto);
  /// How many positions the arrays of a level have room for, as an index.
  mlir::Value positions(mlir::OpBuilder &at, PositionsOp op, llvm::ArrayRef<WorkspaceOp> workspaces);
  SizeAttr constantSize(int64_t size);
  /// The number of stored blocks of a format.
  SizeAttr slots(const TensorSource &source, FormatAttr format);
  /// The same in the kernel, by the values of a tensor.
  mlir::Value slots(mlir::Value tensor, llvm::ArrayRef<WorkspaceOp> workspaces);
  /// The size of dimension `dim` of the named array.
  SizeAttr sizeOfArray(const TensorSource &source, llvm::StringRef name, int64_t dim);
  /// A size of the loops, or null where it is no product of quotients of dimensions.
  SizeAttr sizeOf(mlir::Value size, llvm::ArrayRef<WorkspaceOp> workspaces);

  /// The operation in whose symbol table the kernel stands.
  mlir::Operation *symbols() const { return mlir::func::FuncOp(kernel)->getParentOp(); }
  /// Which array of which operand a named array is, where the kernel takes it.
  std::optional<mlir::NamedAttrList> arrayTaken(const TensorSource &source, llvm::StringRef name) const;

  mlir::ArrayAttr getRecord();
  /// What the arguments that are derived follow from, in order: a step, its source (a part, or the number of a step
  /// before), and its arrays.
  mlir::ArrayAttr getDerived() const;

private:
  llvm::SmallVector<mlir::DictionaryAttr> roomOf(const TensorSource &source, LevelAttr level, unsigned number);
  /// The argument that holds a size; made where there is none yet.
  SizeAttr sizeOf(mlir::DictionaryAttr record);
  mlir::Value argument(mlir::DictionaryAttr record, mlir::Type type, bool readonly);
  mlir::Value integer(mlir::DictionaryAttr record);
  unsigned indexOf(mlir::DictionaryAttr record) const;
  /// The number of the last step of a source, in `derived`; of no step in it, its length.
  unsigned stepOf(const TensorSource &source) const;
  unsigned addStep(const TensorSource &source);
  mlir::DictionaryAttr stepRecord(const TensorSource &source, mlir::Attribute from) const;
  llvm::SmallVector<mlir::NamedAttribute> arrayRecord(const TensorSource &source, llvm::StringRef name) const;
  mlir::DictionaryAttr arrayDimRecord(const TensorSource &source, llvm::StringRef name, int64_t dim);
  mlir::DictionaryAttr dimRecord(const TensorSource &source, int64_t dim);

  mlir::DictionaryAttr strideRecord(const TensorSource &source, int64_t dim) const;
  std::optional<int64_t> constantDim(const TensorSource &source, int64_t dim);

  mlir::func::FuncOp kernel, before;
  mutable mlir::Builder b;
  mlir::Type indexType;
  llvm::SmallVector<mlir::Attribute> records, derived;
  llvm::SmallVector<mlir::Attribute> derivedArrays; // of each of them
  llvm::DenseMap<int64_t, bool> strided;                // operands that were asked for
  llvm::DenseMap<mlir::Attribute, mlir::Value> values; // record -> argument, or its index form
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_KERNELARGUMENTS_H
