// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a launch must be given: the dtype of every tensor, and the sizes that tensors share.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_TENSORTABLE_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_TENSORTABLE_H

#include "KernelArguments.h"

namespace lacis {

/// The word for a dtype in the artifact.
std::string dtypeName(mlir::Type type);

/// Built from the letters of the function's arguments (`lacis.axes`) and the levels of their formats.
class TensorTable {
public:
  TensorTable(mlir::func::FuncOp function, const KernelArguments &arguments);

  /// The fields `sizes` and `tensors` of the artifact.
  void addTo(mlir::NamedAttrList &artifact);

private:
  struct Size {
    std::string name;
    int64_t multiple = 1;
    int64_t value = -1;
    int most = -1;     // the size that it may not exceed
    bool told = false; // some dimension is this size, or it times a number and more
    int number = -1;   // in the artifact
  };
  struct Tensor {
    mlir::NamedAttrList record;
    bool shaped = false;
    bool optional = false;
    llvm::SmallVector<SizeAttr> dims; // of numbers of `sizes`
    int64_t copies = 0;               // the first of them, which positions do not run through
  };

  SizeAttr unknown();
  SizeAttr constant(int64_t number) { return SizeAttr::get(b.getContext(), number); }
  int letter(llvm::StringRef name);
  void addOperand(mlir::BlockArgument argument);
  void addStorage(mlir::Value tensor);
  void addDerived(mlir::Value tensor);
  void addArrays(const TensorSource &source, llvm::ArrayRef<DerivedArray> arrays,
                 llvm::SmallVectorImpl<SizeAttr> &sizes);
  llvm::SmallVector<SizeAttr> axesOf(mlir::Value tensor);
  SizeAttr known(llvm::SmallVectorImpl<SizeAttr> &sizes, int64_t number);
  SizeAttr translated(llvm::SmallVectorImpl<SizeAttr> &sizes, SizeAttr size);
  void addArray(const TensorSource &source, llvm::StringRef name, mlir::Type element,
                std::optional<llvm::SmallVector<SizeAttr>> dims, bool optional = false, int64_t copies = 0);
  bool isTold(SizeAttr dimension) const;
  void settle(SizeAttr &dimension, bool tells);
  void limitLinks();
  int number(int size);
  mlir::DictionaryAttr toAttribute(const Size &size);
  SizeAttr numbered(SizeAttr dimension);

  const KernelArguments &arguments;
  mlir::Builder b;
  llvm::StringMap<int> letters;
  SizeAttr workers; // of all work lists
  llvm::SmallVector<Size> sizes;
  llvm::SmallVector<Tensor> tensors;
  llvm::SmallVector<std::pair<TensorSource, int>> links;      // whose positions are slots of the values
  llvm::SmallVector<std::pair<TensorSource, SizeAttr>> slots; // of the values of each part
  llvm::DenseMap<SizeAttr, SizeAttr> untold;                  // what stands for a size of its own
  llvm::SmallVector<int> mentioned;                           // the sizes that the artifact mentions
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_TENSORTABLE_H
