// SPDX-License-Identifier: Apache-2.0
/// \file
/// The flat arguments of a kernel: each is made when first needed, with its source on record.
#include "KernelArguments.h"

using namespace mlir;
using namespace lacis;

/// The pattern that values in copies share: the format without the levels of the batch, which its first axes have.
static FormatAttr belowBatch(FormatAttr format) {
  unsigned copies = format.getNumBatchLevels();
  auto levels = llvm::map_to_vector(format.getPatternLevels(), [&](LevelAttr level) {
    SmallVector<Digit> digits(level.getDigits());
    for (Digit &digit : digits)
      digit.axis -= copies;
    return LevelAttr::get(level.getContext(), digits, level.getExtent(), level.getCoordinate());
  });
  return FormatAttr::get(format.getContext(), format.getAxes().drop_front(copies), levels);
}

/// What `step` makes of `source`, which is a tensor of type `type`. Execution layouts are of the pattern alone.
static TensorSource derive(TensorSource source, Type type, DerivedInterface step) {
  auto tensor = cast<RankedTensorType>(type);
  if (source.kind != TensorSource::Derived) {
    source.format = cast<FormatAttr>(tensor.getEncoding());
    if (isa<LayoutAttr>(step) && source.format.getNumBatchLevels() != 0) {
      source.batch = source.format.getNumBatchLevels();
      source.format = belowBatch(source.format);
    }
    source.element = tensor.getElementType();
  }
  source.kind = TensorSource::Derived;
  source.steps.push_back(step);
  return source;
}

SmallVector<int64_t> lacis::blockOf(FormatAttr format) {
  SmallVector<int64_t> sizes;
  for (LevelAttr level : format.getLevels().take_back(format.getNumTileLevels())) {
    sizes.push_back(1);
    for (const Digit &digit : level.getDigits())
      sizes.back() *= digit.mod;
  }
  return sizes;
}

TensorSource lacis::sourceOf(Value tensor, ArrayRef<WorkspaceOp> workspaces) {
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    unsigned number = argument.getArgNumber();
    if (function.getArgAttr(number, "lacis.output"))
      return {TensorSource::Output, -1, ""};
    bool encoded = static_cast<bool>(cast<RankedTensorType>(argument.getType()).getEncoding());
    return {encoded ? TensorSource::Storage : TensorSource::Operand, number, ""};
  }
  if (auto part = tensor.getDefiningOp<PartOp>()) {
    TensorSource source = sourceOf(part.getSource(), workspaces);
    source.part = part.getName().str();
    return source;
  }
  if (auto walk = tensor.getDefiningOp<WalkOp>()) {
    auto index = IndexAttr::get(walk.getContext(), formatOf(walk.getResult()), walk.getLeast());
    return derive(sourceOf(walk.getSource(), workspaces), walk.getSource().getType(), index);
  }
  if (auto regroup = tensor.getDefiningOp<RegroupOp>())
    return derive(sourceOf(regroup.getSource(), workspaces), regroup.getSource().getType(), regroup.getLayout());
  if (auto lists = tensor.getDefiningOp<BalanceOp>())
    return derive(sourceOf(lists.getSource(), workspaces), lists.getSource().getType(), lists.getSchedule());
  auto found = llvm::find(workspaces, tensor.getDefiningOp<WorkspaceOp>());
  return {TensorSource::Workspace, found - workspaces.begin(), ""};
}

static NamedAttribute text(Builder &b, StringRef name, StringRef value) {
  return b.getNamedAttr(name, b.getStringAttr(value));
}

static NamedAttribute number(Builder &b, StringRef name, int64_t value) {
  return b.getNamedAttr(name, b.getI64IntegerAttr(value));
}

unsigned KernelArguments::indexOf(DictionaryAttr record) const {
  return llvm::find(records, record) - records.begin();
}

Value KernelArguments::argument(DictionaryAttr record, Type type, bool readonly) {
  unsigned index = indexOf(record);
  if (index < records.size())
    return kernel.getArgument(index);
  records.push_back(record);
  NamedAttrList attributes;
  if (isa<LLVM::LLVMPointerType>(type)) {
    attributes.set("llvm.noalias", b.getUnitAttr());
    if (readonly)
      attributes.set("llvm.readonly", b.getUnitAttr());
  }
  (void)kernel.insertArgument(index, type, attributes.getDictionary(kernel.getContext()), kernel.getLoc());
  return kernel.getArgument(index);
}

/// Sizes arrive as i64 and are used as indices of the kernel's width.
Value KernelArguments::integer(DictionaryAttr record) {
  if (Value known = values.lookup(record))
    return known;
  Value wide = argument(record, b.getI64Type(), /*readonly=*/false);
  Value value = wide;
  if (indexType != wide.getType()) {
    OpBuilder entry(kernel.getBody());
    value = arith::TruncIOp::create(entry, kernel.getLoc(), indexType, wide);
  }
  values[record] = value;
  return value;
}

Value KernelArguments::pointer(const TensorSource &source) {
  Type type = LLVM::LLVMPointerType::get(kernel.getContext());
  switch (source.kind) {
  case TensorSource::Output:
    return argument(b.getDictionaryAttr(text(b, "kind", "output")), type, false);
  case TensorSource::Workspace:
    return argument(b.getDictionaryAttr({text(b, "kind", "workspace"), number(b, "index", source.number)}), type,
                    false);
  default:
    return argument(b.getDictionaryAttr({text(b, "kind", "operand"), number(b, "operand", source.number)}), type,
                    /*readonly=*/!before.getArgAttr(source.number, "lacis.written"));
  }
}

static std::string typeName(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

DictionaryAttr KernelArguments::stepRecord(const TensorSource &source, Attribute from) const {
  return b.getDictionaryAttr({b.getNamedAttr("source", from), b.getNamedAttr("step", source.derived())});
}

/// The source without its last step.
static TensorSource sourceBefore(const TensorSource &source) {
  TensorSource before = source;
  before.steps.pop_back();
  return before;
}

static Attribute partRecord(Builder &b, const TensorSource &source) {
  return b.getDictionaryAttr({number(b, "operand", source.number), text(b, "part", source.part)});
}

unsigned KernelArguments::stepOf(const TensorSource &source) const {
  Attribute from = partRecord(b, source);
  if (source.steps.size() > 1) {
    unsigned before = stepOf(sourceBefore(source));
    if (before == derived.size())
      return before;
    from = b.getI64IntegerAttr(before);
  }
  return llvm::find(derived, stepRecord(source, from)) - derived.begin();
}

unsigned KernelArguments::addStep(const TensorSource &source) {
  unsigned known = stepOf(source);
  if (known < derived.size())
    return known;
  Attribute from = partRecord(b, source);
  if (source.steps.size() > 1)
    from = b.getI64IntegerAttr(addStep(sourceBefore(source)));
  derived.push_back(stepRecord(source, from));
  SmallVector<Attribute> arrays;
  for (const DerivedArray &array : arraysOf(source.derived(), source.before())) {
    SmallVector<NamedAttribute> entry{text(b, "name", array.name), text(b, "dtype", typeName(array.dtype))};
    if (array.sizes) {
      SmallVector<Attribute> sizes(array.sizes->begin(), array.sizes->end());
      entry.push_back(b.getNamedAttr("sizes", b.getArrayAttr(sizes)));
    }
    arrays.push_back(b.getDictionaryAttr(entry));
  }
  derivedArrays.push_back(b.getArrayAttr(arrays));
  return derived.size() - 1;
}

ArrayAttr KernelArguments::getDerived() const {
  SmallVector<Attribute> steps;
  for (auto [step, arrays] : llvm::zip(derived, derivedArrays)) {
    NamedAttrList record(cast<DictionaryAttr>(step));
    record.set("arrays", arrays);
    steps.push_back(record.getDictionary(b.getContext()));
  }
  return b.getArrayAttr(steps);
}

/// The record of a named array: storage of the operand, or an array of a step, which is known.
SmallVector<NamedAttribute> KernelArguments::arrayRecord(const TensorSource &source, StringRef name) const {
  SmallVector<NamedAttribute> record{number(b, "operand", source.number)};
  if (source.kind == TensorSource::Derived)
    record.push_back(number(b, "derived", stepOf(source)));
  bool isOwn = source.kind != TensorSource::Derived && !source.part.empty();
  record.push_back(text(b, "name", isOwn ? source.part + "." + name.str() : name.str()));
  return record;
}

Value KernelArguments::array(const TensorSource &source, StringRef name) {
  if (source.kind == TensorSource::Derived)
    addStep(source);
  SmallVector<NamedAttribute> record = arrayRecord(source, name);
  record.push_back(text(b, "kind", source.kind == TensorSource::Derived ? "derived" : "storage"));
  return argument(b.getDictionaryAttr(record), LLVM::LLVMPointerType::get(kernel.getContext()), true);
}

DictionaryAttr KernelArguments::arrayDimRecord(const TensorSource &source, StringRef name, int64_t dim) {
  if (source.kind == TensorSource::Derived)
    addStep(source);
  SmallVector<NamedAttribute> record = arrayRecord(source, name);
  record.push_back(text(b, "kind", "storage_dim"));
  record.push_back(number(b, "dim", dim));
  return b.getDictionaryAttr(record);
}

Value KernelArguments::arrayDim(const TensorSource &source, StringRef name, int64_t dim) {
  return integer(arrayDimRecord(source, name, dim));
}

/// The array sizes whose product is the room of a level that has an array with an element for each position.
SmallVector<DictionaryAttr> KernelArguments::roomOf(const TensorSource &source, LevelAttr level, unsigned number) {
  std::string name = (level.getPositionsArray() + Twine(number)).str();
  SmallVector<DictionaryAttr> records{arrayDimRecord(source, name, 0)};
  if (level.getExtent().hasCapacity()) // one row of the array for each parent
    records.push_back(arrayDimRecord(source, name, 1));
  return records;
}

std::optional<NamedAttrList> KernelArguments::arrayTaken(const TensorSource &source, StringRef name) const {
  if (source.kind == TensorSource::Derived && stepOf(source) == derived.size())
    return std::nullopt;
  NamedAttrList wanted(arrayRecord(source, name));
  for (Attribute record : records) {
    NamedAttrList found(cast<DictionaryAttr>(record));
    found.erase("kind");
    found.erase("dim");
    if (found.getDictionary(b.getContext()) == wanted.getDictionary(b.getContext()))
      return wanted;
  }
  return std::nullopt;
}

DictionaryAttr KernelArguments::dimRecord(const TensorSource &source, int64_t dim) {
  return b.getDictionaryAttr(
      {text(b, "kind", "dim"), number(b, "operand", source.number), number(b, "dim", source.batch + dim)});
}

std::optional<int64_t> KernelArguments::constantDim(const TensorSource &source, int64_t dim) {
  unsigned number = source.kind == TensorSource::Output ? before.getNumArguments() - 1 : source.number;
  auto type = cast<RankedTensorType>(before.getArgument(number).getType());
  int64_t axis = source.batch + dim;
  return type.isDynamicDim(axis) ? std::nullopt : std::optional(type.getDimSize(axis));
}

/// Work lists have one position more than workers times the lists of each.
static std::string listPositions(const TensorSource &source) { return arraysOf(source.derived(), source.before())[0].name; }

Value KernelArguments::dim(const TensorSource &source, int64_t dim) {
  OpBuilder entry(kernel.getBody());
  if (source.lists() == 0) {
    std::optional<int64_t> known = constantDim(source, dim);
    if (!known)
      return integer(dimRecord(source, dim));
    return arith::ConstantOp::create(entry, kernel.getLoc(), b.getIntegerAttr(indexType, *known));
  }
  Value positions = arrayDim(source, listPositions(source), 0);
  entry.setInsertionPointAfterValue(positions);
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(entry, kernel.getLoc(), b.getIntegerAttr(indexType, value));
  };
  Value lists = arith::SubIOp::create(entry, kernel.getLoc(), positions, constant(1));
  return source.lists() == 1 ? lists : arith::DivUIOp::create(entry, kernel.getLoc(), lists, constant(source.lists()));
}

SizeAttr KernelArguments::sizeOf(DictionaryAttr record) {
  integer(record);
  return SizeAttr::argument(b.getContext(), indexOf(record));
}

SizeAttr KernelArguments::sizeOfArray(const TensorSource &source, StringRef name, int64_t dim) {
  return sizeOf(arrayDimRecord(source, name, dim));
}

SizeAttr KernelArguments::sizeOfDim(const TensorSource &source, int64_t dim, int64_t div) {
  if (source.lists())
    return sizeOfArray(source, listPositions(source), 0).plus(-1).ceilDiv(div * source.lists());
  if (std::optional<int64_t> known = constantDim(source, dim))
    return constantSize(llvm::divideCeil(*known, div));
  return sizeOf(dimRecord(source, dim)).ceilDiv(div);
}

SizeAttr KernelArguments::condition(const TensorSource &source, int64_t dim, int64_t above, int64_t upto) {
  return sizeOfDim(source, dim).within(above, upto);
}

Value KernelArguments::positions(OpBuilder &at, PositionsOp op, ArrayRef<WorkspaceOp> workspaces) {
  TensorSource source = sourceOf(op.getTensor(), workspaces);
  LevelAttr level = formatOf(op.getTensor()).getLevels()[op.getLevel()];
  Value product;
  for (DictionaryAttr record : roomOf(source, level, op.getLevel())) {
    Value size = integer(record);
    product = product ? arith::MulIOp::create(at, op.getLoc(), product, size).getResult() : size;
  }
  return product;
}

Value KernelArguments::slots(Value tensor, ArrayRef<WorkspaceOp> workspaces) {
  TensorSource source = sourceOf(tensor, workspaces);
  unsigned axis = formatOf(tensor).getNumBatchLevels();
  if (source.kind == TensorSource::Output)
    return integer(dimRecord(source, axis));
  source.kind = TensorSource::Storage; // the values of a walk are those of its source
  return arrayDim(source, "values", axis);
}

SizeAttr KernelArguments::constantSize(int64_t size) { return SizeAttr::get(b.getContext(), size); }

SizeAttr KernelArguments::slots(const TensorSource &source, FormatAttr format) {
  SizeAttr slots = constantSize(1);
  bool isKnown = format.getBindings().empty();
  unsigned batch = format.getNumBatchLevels();
  for (auto [below, level] : llvm::enumerate(format.getPatternLevels().drop_back(format.getNumTileLevels()))) {
    unsigned number = batch + below;
    ExtentInterface extent = level.getExtent();
    if (!level.getPositionsArray().empty()) {
      slots = constantSize(1); // its array has one element a position, under all parents together
      isKnown = true;
      for (DictionaryAttr record : roomOf(source, level, number))
        slots = slots.times(sizeOf(record));
      continue;
    }
    if (extent.hasCapacity() && extent.getTrip()) {
      slots = slots.times(*extent.getTrip());
      continue;
    }
    isKnown &= extent.coversDomain() || extent.followsParent() || extent.isLink();
    isKnown &= llvm::none_of(level.getDigits(), [&](Digit d) { return d.axis >= format.getAxes().size() && d.mod == 0; });
    if (!isKnown || !extent.coversDomain())
      continue;
    for (const Digit &digit : level.getDigits())
      slots = slots.times(digit.mod ? constantSize(digit.mod)
                                    : sizeOf(dimRecord(source, digit.axis)).ceilDiv(digit.div));
  }
  // By the arrays where that is all: whoever allocates the output knows the pattern.
  return isKnown ? slots : sizeOf(dimRecord({TensorSource::Output, -1, ""}, batch));
}

SizeAttr KernelArguments::sizeOf(Value size, ArrayRef<WorkspaceOp> workspaces) {
  if (auto op = size.getDefiningOp<arith::CeilDivUIOp>()) {
    auto by = getConstantIntValue(op.getRhs());
    SizeAttr whole = by ? sizeOf(op.getLhs(), workspaces) : SizeAttr();
    return whole ? whole.ceilDiv(*by) : whole;
  }
  if (auto constant = getConstantIntValue(size))
    return constantSize(*constant);
  if (auto product = size.getDefiningOp<arith::MulIOp>()) {
    SizeAttr lhs = sizeOf(product.getLhs(), workspaces), rhs = sizeOf(product.getRhs(), workspaces);
    return lhs && rhs ? lhs.times(rhs) : SizeAttr();
  }
  if (auto sum = size.getDefiningOp<arith::AddIOp>()) {
    SizeAttr lhs = sizeOf(sum.getLhs(), workspaces), rhs = sizeOf(sum.getRhs(), workspaces);
    return lhs && rhs ? lhs.plus(rhs) : SizeAttr();
  }
  if (auto room = size.getDefiningOp<PositionsOp>()) {
    LevelAttr level = formatOf(room.getTensor()).getLevels()[room.getLevel()];
    SizeAttr positions = constantSize(1);
    for (DictionaryAttr record : roomOf(sourceOf(room.getTensor(), workspaces), level, room.getLevel()))
      positions = positions.times(sizeOf(record));
    return positions;
  }
  auto op = size.getDefiningOp<tensor::DimOp>();
  if (!op || !op.getConstantIndex())
    return {};
  return sizeOfDim(sourceOf(op.getSource(), workspaces), *op.getConstantIndex());
}
