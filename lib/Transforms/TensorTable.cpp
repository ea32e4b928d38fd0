// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a launch must be given: the dtype of every tensor, and the sizes that tensors share.
#include "TensorTable.h"

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

TensorTable::Product TensorTable::unknown() {
  sizes.emplace_back();
  return {Factor{int(sizes.size()) - 1}};
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
    tensor.dims.push_back({{Factor{size}}, 0});
  }
  tensors.push_back(std::move(tensor));
}

void TensorTable::addArray(const TensorSource &source, StringRef name, Type element,
                           std::optional<SmallVector<Dimension>> dims, bool optional) {
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
  if (dims)
    tensor.dims = std::move(*dims);
  tensors.push_back(std::move(tensor));
}

/// Words with a bit for each coordinate of the level, under `parents` positions; nothing where no product tells them.
std::optional<TensorTable::Product> TensorTable::wordsOf(LevelAttr level, ArrayRef<int> axes, Product parents) {
  constexpr int64_t kWord = 32;
  ArrayRef<Digit> digits = level.getDigits();
  int64_t coordinates = 1;
  for (const Digit &digit : digits)
    coordinates *= digit.mod;
  if (int64_t words = llvm::divideCeil(coordinates, kWord); words > 1)
    parents.push_back(Factor{-1, 1, words});
  else if (coordinates == 0 && digits.size() == 1)
    parents.push_back(Factor{axes[digits[0].axis], digits[0].div * kWord, 1});
  else if (coordinates == 0)
    return std::nullopt;
  return parents;
}

/// The arrays of one level under `parents` positions; answers the positions of the level.
TensorTable::Product TensorTable::addLevel(const TensorSource &source, LevelAttr level, unsigned number,
                                           ArrayRef<int> axes, Product parents) {
  ExtentInterface extent = level.getExtent();
  Product positions = parents;
  Product width;
  if (extent.coversDomain()) {
    for (const Digit &digit : level.getDigits())
      positions.push_back(digit.mod ? Factor{-1, 1, digit.mod} : Factor{axes[digit.axis], digit.div, 1});
  } else if (extent.hasCapacity()) {
    width = extent.getTrip() ? Product{Factor{-1, 1, *extent.getTrip()}} : unknown();
    llvm::append_range(positions, width);
  } else if (extent.isLink() && parents.size() == 1) {
    if (source.rule.empty()) // tiles of an execution layout link to parts of blocks: one slot has several
      links.push_back({source, parents[0].size});
  } else if (!extent.followsParent() && !extent.isLink()) {
    positions = unknown();
  }
  for (const BufferSpec &buffer : level.getBuffers()) {
    std::optional<SmallVector<Dimension>> dims;
    if (buffer.length == BufferSpec::Boundaries)
      dims = SmallVector<Dimension>{{parents, 1}};
    if (buffer.length == BufferSpec::Positions)
      dims = width.empty() ? SmallVector<Dimension>{{positions, 0}} : SmallVector<Dimension>{{parents, 0}, {width, 0}};
    if (buffer.length == BufferSpec::Parents)
      dims = SmallVector<Dimension>{{parents, 0}};
    if (std::optional<Product> words = wordsOf(level, axes, parents); words && buffer.length == BufferSpec::Bits)
      dims = SmallVector<Dimension>{{*words, 0}};
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
  if (!format.getBindings().empty()) // how many positions there are follows from more than its axes
    return addArray(sourceOf(tensor, {}), "values", cast<RankedTensorType>(tensor.getType()).getElementType(),
                    SmallVector<Dimension>{{unknown(), 0}});
  SmallVector<int> axes;
  for (Attribute name : names)
    axes.push_back(letter(cast<StringAttr>(name).getValue()));
  TensorSource source = sourceOf(tensor, {});
  if (source.kind == TensorSource::Output)
    return;
  Product positions;
  unsigned prefix = format.getLevels().size() - format.getNumTileLevels();
  for (unsigned n = 0; n < prefix; ++n)
    positions = addLevel(source, format.getLevels()[n], n, axes, std::move(positions));
  if (isa_and_nonnull<RegroupOp>(tensor.getDefiningOp()))
    addArray(source, "origin", b.getI32Type(), SmallVector<Dimension>{{unknown(), 0}});
  bool isLinked = llvm::any_of(format.getLevels(), [](LevelAttr level) { return level.getExtent().isLink(); });
  if (isa_and_nonnull<WalkOp>(tensor.getDefiningOp()) && !isLinked && positions.size() == 1)
    links.push_back({source, positions[0].size}); // its positions are slots themselves
  if (source.kind == TensorSource::Derived)
    return;
  SmallVector<Dimension> values{{positions, 0}};
  slots.push_back({source, values[0]});
  for (LevelAttr level : format.getLevels().drop_front(prefix)) {
    int64_t extent = 1;
    for (const Digit &digit : level.getDigits())
      extent *= digit.mod;
    values.push_back({{Factor{-1, 1, extent}}, 0});
  }
  addArray(source, "values", cast<RankedTensorType>(tensor.getType()).getElementType(), values);
  addArray(source, "valid", b.getI1Type(), values, /*optional=*/true);
}

/// The arrays of work lists: how long they are, the pattern alone knows.
void TensorTable::addLists(BalanceOp lists) {
  TensorSource source = sourceOf(lists.getResult(), {});
  for (auto [number, level] : llvm::enumerate(formatOf(lists.getResult()).getLevels()))
    for (const BufferSpec &buffer : level.getBuffers())
      addArray(source, buffer.name.str() + std::to_string(number), buffer.elementType,
               SmallVector<Dimension>{{unknown(), 0}});
}

/// A product with a factor that no tensor tells becomes a size of its own, the same wherever the product is; what
/// does not tell it takes it from the one that does.
void TensorTable::settle(Dimension &dimension, bool tells) {
  auto isTold = [&](const Factor &factor) { return factor.size < 0 || sizes[factor.size].told; };
  if (dimension.plus != 0 || llvm::all_of(dimension.factors, isTold))
    return;
  auto known = llvm::find_if(untold, [&](auto &entry) { return entry.first == dimension.factors; });
  if (known != untold.end()) {
    dimension.factors = {Factor{known->second}};
  } else if (tells) {
    Product product = dimension.factors;
    dimension.factors = unknown();
    int size = dimension.factors[0].size;
    sizes[size].told = true;
    untold.push_back({std::move(product), size});
  }
}

/// A link names slots, so there are at least as many slots as links.
void TensorTable::limitLinks() {
  for (auto [source, size] : links)
    for (auto &[owner, dimension] : slots)
      if (size >= 0 && owner.number == source.number && owner.part == source.part && dimension.isPlain() &&
          sizes[dimension.factors[0].size].told)
        sizes[size].most = dimension.factors[0].size;
}

int TensorTable::number(int size) {
  if (size >= 0 && sizes[size].number < 0) {
    sizes[size].number = int(numbered.size());
    numbered.push_back(size);
  }
  return size < 0 ? -1 : sizes[size].number;
}

/// A record without the entries that a reader fills in.
static DictionaryAttr compact(Builder &b, ArrayRef<std::tuple<StringRef, int64_t, int64_t>> entries,
                              NamedAttrList record = {}) {
  for (auto [name, value, absent] : entries)
    if (value != absent)
      record.set(name, b.getI64IntegerAttr(value));
  return record.getDictionary(b.getContext());
}

DictionaryAttr TensorTable::toAttribute(const Size &size) {
  NamedAttrList record;
  record.set("name", b.getStringAttr(size.name));
  return compact(b, {{"multiple", size.multiple, 1}, {"value", size.value, -1}, {"most", number(size.most), -1}},
                 record);
}

DictionaryAttr TensorTable::toAttribute(const Dimension &dimension) {
  SmallVector<Attribute> factors;
  for (const Factor &factor : dimension.factors) {
    NamedAttrList record;
    record.set("arg", b.getI64IntegerAttr(number(factor.size)));
    factors.push_back(compact(b, {{"div", factor.div, 1}, {"mul", factor.mul, 1}}, record));
  }
  NamedAttrList record;
  record.set("size", b.getArrayAttr(factors));
  return compact(b, {{"plus", dimension.plus, 0}}, record);
}

void TensorTable::addTo(NamedAttrList &artifact) {
  for (const Tensor &tensor : tensors)
    for (const Dimension &dimension : tensor.dims)
      if (dimension.isPlain() && !tensor.optional)
        sizes[dimension.factors[0].size].told = true;
  auto isTold = [&](const Factor &factor) { return factor.size < 0 || sizes[factor.size].told; };
  for (Tensor &tensor : tensors)
    for (Dimension &dimension : tensor.dims)
      settle(dimension, !tensor.optional);
  for (auto &[source, dimension] : slots)
    settle(dimension, /*tells=*/false);
  for (Tensor &tensor : tensors)
    for (Dimension &dimension : tensor.dims)
      if (!llvm::all_of(dimension.factors, isTold)) { // no tensor tells what it should be
        tensor.shaped &= !tensor.optional;
        dimension = {unknown(), 0};
      }
  limitLinks();
  SmallVector<Attribute> list, sizeList;
  for (Tensor &tensor : tensors) {
    if (tensor.optional)
      tensor.record.set("optional", b.getBoolAttr(true));
    if (tensor.shaped)
      tensor.record.set("dims", b.getArrayAttr(llvm::map_to_vector(
                                    tensor.dims, [&](Dimension &dim) -> Attribute { return toAttribute(dim); })));
    list.push_back(tensor.record.getDictionary(b.getContext()));
  }
  for (size_t n = 0; n < numbered.size(); ++n)
    sizeList.push_back(toAttribute(sizes[numbered[n]]));
  artifact.set("sizes", b.getArrayAttr(sizeList));
  artifact.set("tensors", b.getArrayAttr(list));
}
