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
    if (isa<PartOp, WalkOp, RegroupOp>(op))
      addStorage(op->getResult(0));
    if (auto lists = dyn_cast<BalanceOp>(op))
      addLists(lists);
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

/// Words with a bit for each coordinate of the level, under `parents` positions; null where no product tells them.
SizeAttr TensorTable::wordsOf(LevelAttr level, ArrayRef<SizeAttr> axes, SizeAttr parents) {
  constexpr int64_t kWord = 32;
  ArrayRef<Digit> digits = level.getDigits();
  int64_t coordinates = 1;
  for (const Digit &digit : digits)
    coordinates *= digit.mod;
  if (coordinates != 0)
    return parents.times(llvm::divideCeil(coordinates, kWord));
  return digits.size() == 1 ? parents.times(axes[digits[0].axis].ceilDiv(digits[0].div * kWord)) : SizeAttr();
}

/// The arrays of one level under `parents` positions; answers the positions of the level.
SizeAttr TensorTable::addLevel(const TensorSource &source, LevelAttr level, unsigned number, ArrayRef<SizeAttr> axes,
                               SizeAttr parents) {
  ExtentInterface extent = level.getExtent();
  SizeAttr positions = parents, width;
  if (extent.coversDomain()) {
    for (const Digit &digit : level.getDigits())
      positions = positions.times(digit.mod ? constant(digit.mod) : axes[digit.axis].ceilDiv(digit.div));
  } else if (extent.hasCapacity()) {
    width = extent.getTrip() ? constant(*extent.getTrip()) : unknown();
    positions = positions.times(width);
  } else if (extent.isLink() && parents.getArgument()) {
    if (source.rule.empty()) // tiles of an execution layout link to parts of blocks, a list of long rows has few entries
      links.push_back({source, *parents.getArgument()});
  } else if (!extent.followsParent() && !extent.isLink()) {
    positions = unknown();
  }
  for (const BufferSpec &buffer : level.getBuffers()) {
    std::optional<SmallVector<SizeAttr>> dims;
    if (buffer.length == BufferSpec::Boundaries)
      dims = {parents.plus(1)};
    if (buffer.length == BufferSpec::Positions)
      dims = width ? SmallVector<SizeAttr>{parents, width} : SmallVector<SizeAttr>{positions};
    if (buffer.length == BufferSpec::Parents)
      dims = {parents};
    if (SizeAttr words = wordsOf(level, axes, parents); words && buffer.length == BufferSpec::Bits)
      dims = {words};
    addArray(source, buffer.name.str() + std::to_string(number), buffer.elementType, std::move(dims));
  }
  return positions;
}

/// The arrays of a format, level by level, and the values in slots of stored blocks.
void TensorTable::addStorage(Value tensor) {
  FormatAttr format = formatOf(tensor);
  BlockArgument argument = argumentOf(tensor);
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto names = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "lacis.axes");
  if (!format || !names)
    return;
  SmallVector<SizeAttr> axes;
  for (Attribute name : names)
    axes.push_back(SizeAttr::argument(b.getContext(), letter(cast<StringAttr>(name).getValue())));
  for (Attribute binding : format.getBindings()) {
    std::optional<unsigned> same = cast<BindingInterface>(binding).getSizeName();
    axes.push_back(same ? axes[*same] : unknown()); // else no product of axes
  }
  TensorSource source = sourceOf(tensor, {});
  if (source.kind == TensorSource::Output)
    return;
  for (auto [number, size] : llvm::enumerate(ArrayRef(axes).drop_front(format.getAxes().size())))
    if (std::string array = bindingArray(format, number); !array.empty())
      addArray(source, array, format.getIndexType(), SmallVector<SizeAttr>{size});
  SizeAttr positions = constant(1);
  SmallVector<SizeAttr> values;
  unsigned batch = format.getNumBatchLevels(), prefix = format.getLevels().size() - format.getNumTileLevels();
  for (LevelAttr level : format.getLevels().take_front(batch)) {
    values.push_back(constant(1));
    for (const Digit &digit : level.getDigits())
      values.back() = values.back().times(axes[digit.axis]);
  }
  for (unsigned n = batch; n < prefix; ++n)
    positions = addLevel(source, format.getLevels()[n], n, axes, positions);
  if (isa_and_nonnull<RegroupOp>(tensor.getDefiningOp()))
    addArray(source, "origin", b.getI32Type(), SmallVector<SizeAttr>{unknown()});
  bool isLinked = llvm::any_of(format.getLevels(), [](LevelAttr level) { return level.getExtent().isLink(); });
  if (isa_and_nonnull<WalkOp>(tensor.getDefiningOp()) && !isLinked && positions.getArgument())
    links.push_back({source, *positions.getArgument()}); // its positions are slots themselves
  if (source.kind == TensorSource::Derived)
    return;
  slots.push_back({source, positions});
  SmallVector<SizeAttr> valid{positions};
  for (int64_t size : blockOf(format))
    valid.push_back(constant(size));
  llvm::append_range(values, valid);
  addArray(source, "values", cast<RankedTensorType>(tensor.getType()).getElementType(), values, /*optional=*/false,
           batch);
  addArray(source, "valid", b.getI1Type(), valid, /*optional=*/true);
}

/// The arrays of work lists: how long they are, the pattern alone knows.
void TensorTable::addLists(BalanceOp lists) {
  TensorSource source = sourceOf(lists.getResult(), {});
  for (auto [number, level] : llvm::enumerate(formatOf(lists.getResult()).getLevels()))
    for (const BufferSpec &buffer : level.getBuffers())
      addArray(source, buffer.name.str() + std::to_string(number), buffer.elementType,
               SmallVector<SizeAttr>{unknown()});
}

bool TensorTable::isTold(SizeAttr dimension) const {
  bool told = true;
  dimension.walkArguments([&](int64_t size) { told &= sizes[size].told; });
  return told;
}

/// A product with a factor that no tensor tells becomes a size of its own, the same wherever the product is; what
/// does not tell it takes it from the one that does.
void TensorTable::settle(SizeAttr &dimension, bool tells) {
  if (dimension.getKind() == SizeKind::Sum || isTold(dimension))
    return;
  auto known = untold.find(dimension);
  if (known != untold.end()) {
    dimension = known->second;
  } else if (tells) {
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

void TensorTable::addTo(NamedAttrList &artifact) {
  for (const Tensor &tensor : tensors)
    for (SizeAttr dimension : tensor.dims)
      if (auto size = dimension.getArgument(); size && !tensor.optional)
        sizes[*size].told = true;
  for (Tensor &tensor : tensors)
    for (SizeAttr &dimension : tensor.dims)
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
