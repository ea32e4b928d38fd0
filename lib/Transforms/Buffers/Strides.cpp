// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operands that are read where they lie, whatever their strides: batches of matrices, as heads of attention are.
#include "KernelArguments.h"
#include "lacis/Dialect/Lacis/IR/TilePart.h"

using namespace mlir;
using namespace lacis;

/// Does the operation say an index for each axis of the tensor, or ask for its sizes alone?
static bool saysAllIndices(Operation *user, Value tensor) {
  auto rank = static_cast<size_t>(cast<RankedTensorType>(tensor.getType()).getRank());
  if (auto load = dyn_cast<LoadTileOp>(user))
    return load.getIndices().size() == rank;
  if (auto copy = dyn_cast<CopyTransposedOp>(user))
    return copy.getTarget() != tensor;
  return isa<ReadOp, tensor::DimOp>(user);
}

static bool mayBeStrided(func::FuncOp function, unsigned number) {
  BlockArgument tensor = function.getArgument(number);
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  auto is = [&](StringRef mark) { return function.getArgAttr(number, mark) != nullptr; };
  if (!type || type.getEncoding() || type.getRank() < 3 || type.getRank() > static_cast<int64_t>(kMapAxes))
    return false;
  return !is("lacis.output") && !is("lacis.written") &&
         llvm::all_of(tensor.getUsers(), [&](Operation *user) { return saysAllIndices(user, tensor); });
}

bool KernelArguments::isStrided(const TensorSource &source) {
  if (source.kind != TensorSource::Operand)
    return false;
  auto [known, isNew] = strided.try_emplace(source.number, false);
  if (isNew)
    known->second = mayBeStrided(before, source.number);
  return known->second;
}

DictionaryAttr KernelArguments::strideRecord(const TensorSource &source, int64_t dim) const {
  return b.getDictionaryAttr({b.getNamedAttr("kind", b.getStringAttr("stride")),
                              b.getNamedAttr("operand", b.getI64IntegerAttr(source.number)),
                              b.getNamedAttr("dim", b.getI64IntegerAttr(dim))});
}

Value KernelArguments::stride(const TensorSource &source, int64_t dim) {
  return argument(strideRecord(source, dim), b.getI64Type(), /*readonly=*/false);
}

ArrayAttr KernelArguments::stridesOf(const TensorSource &source) {
  SmallVector<Attribute> found;
  for (int64_t dim = 0; dim + 1 < cast<RankedTensorType>(before.getArgument(source.number).getType()).getRank(); ++dim) {
    stride(source, dim);
    found.push_back(SizeAttr::argument(b.getContext(), indexOf(strideRecord(source, dim))));
  }
  return b.getArrayAttr(found);
}

ArrayAttr KernelArguments::getRecord() {
  SmallVector<Attribute> said;
  for (auto record : ArrayRef(records)) {
    NamedAttrList fields(cast<DictionaryAttr>(record));
    bool isOperand = cast<StringAttr>(fields.get("kind")).getValue() == "operand";
    if (isOperand && isStrided({TensorSource::Operand, cast<IntegerAttr>(fields.get("operand")).getInt(), ""}))
      fields.set("strided", b.getBoolAttr(true));
    said.push_back(fields.getDictionary(b.getContext()));
  }
  return b.getArrayAttr(said);
}
