// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a launch must be given: the dtype of every tensor, and the sizes that tensors share.
#include "TensorTable.h"
#include "lacis/Dialect/Lacis/IR/BindingCode.h"

using namespace mlir;
using namespace lacis;

std::string lacis::dtypeName(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

/// The argument whose arrays a part shows, or whose pattern an array is derived from.
static BlockArgument argumentOf(Value tensor) {
  while (Operation *op = tensor.getDefiningOp())
    tensor = op->getOperand(0);
  return cast<BlockArgument>(tensor);
}

TensorTable::TensorTable(func::FuncOp function, const KernelArguments &arguments)
    : arguments(arguments), b(function.getContext()) {
  for (BlockArgument argument : function.getArguments())
    addOperand(argument);
  for (BlockArgument argument : function.getArguments())
    if (formatOf(argument))
      addStorage(argument);
  function.walk([&](Operation *op) {
    if (isa<PartOp>(op))
      addStorage(op->getResult(0));
    if (isa<WalkOp, RegroupOp, BalanceOp>(op))
      addDerived(op->getResult(0));
  });
}

SizeAttr TensorTable::unknown() {
  sizes.emplace_back();
  return SizeAttr::argument(b.getContext(), int64_t(sizes.size()) - 1);
}

int TensorTable::letter(StringRef name) {
  auto [place, isNew] = letters.try_emplace(name, int(sizes.size()));
  if (isNew) {
    sizes.emplace_back();
    sizes.back().name = name.str();
  }
  return place->second;
}

/// A dense operand, the output, or the logical sizes of the packed operand: one letter a dimension.
void TensorTable::addOperand(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  unsigned number = argument.getArgNumber();
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!type)
    return; // a pattern, whose tensor is an argument of its own
  auto axes = function.getArgAttrOfType<ArrayAttr>(number, "lacis.axes");
  auto classes = function.getArgAttrOfType<DenseI64ArrayAttr>(number, "lacis.divisible");
  bool isOutput = function.getArgAttr(number, "lacis.output") != nullptr;
  Tensor tensor;
  tensor.record.set("operand", b.getI64IntegerAttr(isOutput ? int64_t(-1) : int64_t(number)));
  if (!type.getEncoding() || isOutput)
    tensor.record.set("dtype", b.getStringAttr(dtypeName(type.getElementType())));
  tensor.shaped = axes && !(isOutput && type.getEncoding());
  for (int64_t dim = 0; tensor.shaped && dim < type.getRank(); ++dim) {
    int size = letter(cast<StringAttr>(axes[dim]).getValue());
    if (classes)
      sizes[size].multiple = std::lcm(sizes[size].multiple, classes[dim]);
    if (!type.isDynamicDim(dim))
      sizes[size].value = type.getDimSize(dim);
    tensor.dims.push_back(SizeAttr::argument(b.getContext(), size));
  }
  tensors.push_back(std::move(tensor));
}

void TensorTable::addArray(const TensorSource &source, StringRef name, Type element,
                           std::optional<SmallVector<SizeAttr>> dims, bool optional, int64_t copies) {
  std::optional<NamedAttrList> record = arguments.arrayTaken(source, name);
  if (!record)
    return;
  record->set("dtype", b.getStringAttr(dtypeName(element)));
  for (const Tensor &known : tensors) // a part or a walk that the body names twice
    if (known.record == *record)
      return;
  Tensor tensor;
  tensor.record = *record;
  tensor.shaped = dims.has_value();
  tensor.optional = optional;
  tensor.copies = copies;
  if (dims)
    tensor.dims = std::move(*dims);
  tensors.push_back(std::move(tensor));
}

/// The sizes of a tensor's axes, by the letters of the argument that it shows, or is derived from; none without them.
SmallVector<SizeAttr> TensorTable::axesOf(Value tensor) {
  BlockArgument argument = argumentOf(tensor);
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  SmallVector<SizeAttr> axes;
  if (auto names = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "lacis.axes"))
    for (Attribute name : names)
      axes.push_back(SizeAttr::argument(b.getContext(), letter(cast<StringAttr>(name).getValue())));
  return axes;
}

/// The shared size of a number of `DerivedSizes`; what the pattern alone knows becomes one of its own when it is met.
SizeAttr TensorTable::known(SmallVectorImpl<SizeAttr> &sizes, int64_t number) {
  if (number >= static_cast<int64_t>(sizes.size()))
    sizes.resize(number + 1);
  if (!sizes[number])
    sizes[number] = unknown();
  return sizes[number];
}

SizeAttr TensorTable::translated(SmallVectorImpl<SizeAttr> &sizes, SizeAttr size) {
  return size.replaceArguments([&](int64_t number) { return known(sizes, number); });
}

void TensorTable::addArrays(const TensorSource &source, ArrayRef<DerivedArray> arrays, SmallVectorImpl<SizeAttr> &sizes) {
  for (const DerivedArray &array : arrays) {
    std::optional<SmallVector<SizeAttr>> dims;
    if (array.sizes)
      dims = llvm::map_to_vector(*array.sizes, [&](SizeAttr size) { return translated(sizes, size); });
    addArray(source, array.name, array.dtype, std::move(dims));
  }
}

/// The arrays of a format, level by level, and the values in slots of stored blocks.
void TensorTable::addStorage(Value tensor) {
  FormatAttr format = formatOf(tensor);
  SmallVector<SizeAttr> sizes = axesOf(tensor), values;
  TensorSource source = sourceOf(tensor, {});
  if (!format || sizes.empty() || source.kind == TensorSource::Output)
    return;
  unsigned batch = format.getNumBatchLevels();
  for (LevelAttr level : format.getLevels().take_front(batch)) {
    values.push_back(constant(1));
    for (const Digit &digit : level.getDigits())
      values.back() = values.back().times(sizes[digit.axis]);
  }
  FormatArrays arrays(format);
  addArrays(source, arrays.arrays, sizes);
  SizeAttr positions = translated(sizes, arrays.positions);
  slots.push_back({source, positions});
  SmallVector<SizeAttr> valid{positions};
  for (int64_t size : blockOf(format))
    valid.push_back(constant(size));
  llvm::append_range(values, valid);
  addArray(source, "values", cast<RankedTensorType>(tensor.getType()).getElementType(), values, /*optional=*/false,
           batch);
  addArray(source, "valid", b.getI1Type(), valid, /*optional=*/true);
}

/// The arrays of a companion, an execution layout or work lists.
void TensorTable::addDerived(Value tensor) {
  SmallVector<SizeAttr> sizes = axesOf(tensor);
  TensorSource source = sourceOf(tensor, {});
  if (sizes.empty() || source.kind != TensorSource::Derived)
    return;
  sizes.erase(sizes.begin(), sizes.begin() + source.batch);
  auto owner = llvm::find_if(slots, [&](const auto &entry) {
    return entry.first.number == source.number && entry.first.part == source.part;
  });
  sizes.push_back(owner == slots.end() ? unknown() : owner->second);
  sizes.push_back(workers ? workers : workers = unknown());
  addArrays(source, arraysOf(source.derived(), source.before()), sizes);
  auto index = dyn_cast<IndexAttr>(source.derived());
  if (!index || index.getLeast()) // a list of long rows has few entries
    return;
  FormatArrays arrays(index.getFormat());
  bool isLinked = llvm::any_of(index.getFormat().getLevels(), [](LevelAttr level) { return level.getExtent().isLink(); });
  if (!isLinked)
    arrays.linked.push_back(arrays.positions); // its positions are slots themselves
  for (SizeAttr linked : arrays.linked)
    if (auto number = translated(sizes, linked).getArgument())
      links.push_back({source, *number});
}

bool TensorTable::isTold(SizeAttr dimension) const {
  bool told = true;
  dimension.walkArguments([&](int64_t size) { told &= sizes[size].told; });
  return told;
}

/// A size with a part that no tensor tells becomes a size of its own, the same wherever the product is; what
/// does not tell it takes it from the one that does.
void TensorTable::settle(SizeAttr &dimension, bool tells) {
  dimension = dimension.replaceParts([&](SizeAttr part) { return untold.lookup(part); });
  if (tells && !isTold(dimension)) {
    SizeAttr product = dimension;
    dimension = unknown();
    sizes.back().told = true;
    untold[product] = dimension;
  }
}

/// A link names slots, so there are at least as many slots as links.
void TensorTable::limitLinks() {
  for (auto [source, size] : links)
    for (auto &[owner, dimension] : slots)
      if (auto limit = dimension.getArgument(); owner.number == source.number && owner.part == source.part && limit &&
                                                sizes[*limit].told)
        sizes[size].most = int(*limit);
}

int TensorTable::number(int size) {
  if (size >= 0 && sizes[size].number < 0) {
    sizes[size].number = int(mentioned.size());
    mentioned.push_back(size);
  }
  return size < 0 ? -1 : sizes[size].number;
}

DictionaryAttr TensorTable::toAttribute(const Size &size) {
  NamedAttrList record;
  record.set("name", b.getStringAttr(size.name));
  for (auto [name, value, absent] : {std::tuple<StringRef, int64_t, int64_t>("multiple", size.multiple, 1),
                                     {"value", size.value, -1},
                                     {"most", number(size.most), -1}})
    if (value != absent)
      record.set(name, b.getI64IntegerAttr(value));
  return record.getDictionary(b.getContext());
}

SizeAttr TensorTable::numbered(SizeAttr dimension) {
  return dimension.replaceArguments(
      [&](int64_t size) { return SizeAttr::argument(b.getContext(), number(int(size))); });
}

/// The size that a dimension tells, where it is `size * number + number`.
static std::optional<int64_t> toldBy(SizeAttr dimension) {
  if (dimension.getKind() == SizeKind::Sum && dimension.getOf().size() == 1)
    dimension = dimension.getOf()[0];
  std::optional<int64_t> told;
  for (SizeAttr factor : dimension.getFactors()) {
    if (factor.getConstant())
      continue;
    if (told || !factor.getArgument())
      return std::nullopt;
    told = factor.getArgument();
  }
  return told;
}

void TensorTable::addTo(NamedAttrList &artifact) {
  for (bool isSize : {true, false})
    for (const Tensor &tensor : tensors)
      for (SizeAttr dimension : tensor.dims)
        if (auto size = isSize ? dimension.getArgument() : toldBy(dimension); size && !tensor.optional)
          sizes[*size].told = true;
  for (bool isSum : {false, true}) // a sum is of what others tell, if they do
    for (Tensor &tensor : tensors)
      for (SizeAttr &dimension : tensor.dims)
        if ((dimension.getKind() == SizeKind::Sum) == isSum)
          settle(dimension, !tensor.optional);
  for (auto &[source, dimension] : slots)
    settle(dimension, /*tells=*/false);
  for (Tensor &tensor : tensors)
    for (SizeAttr &dimension : tensor.dims)
      if (!isTold(dimension)) { // no tensor tells what it should be
        tensor.shaped &= !tensor.optional;
        dimension = unknown();
      }
  limitLinks();
  SmallVector<Attribute> list, sizeList;
  for (Tensor &tensor : tensors) {
    if (tensor.optional)
      tensor.record.set("optional", b.getBoolAttr(true));
    if (tensor.shaped)
      tensor.record.set("dims", b.getArrayAttr(llvm::map_to_vector(
                                    tensor.dims, [&](SizeAttr dim) -> Attribute { return numbered(dim); })));
    if (tensor.copies)
      tensor.record.set("copies", b.getI64IntegerAttr(tensor.copies));
    list.push_back(tensor.record.getDictionary(b.getContext()));
  }
  for (size_t n = 0; n < mentioned.size(); ++n)
    sizeList.push_back(toAttribute(sizes[mentioned[n]]));
  artifact.set("sizes", b.getArrayAttr(sizeList));
  artifact.set("tensors", b.getArrayAttr(list));
}
