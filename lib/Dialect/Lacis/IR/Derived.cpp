// SPDX-License-Identifier: Apache-2.0
/// \file
/// Derived arrays: names, dtypes and sizes of what follows from a pattern.
#include "lacis/Dialect/Lacis/IR/BindingCode.h"
#include "lacis/Dialect/Lacis/IR/Lacis.h"

using namespace mlir;
using namespace lacis;

//===- Parameters ---------------------------------------------------------===//

/// Named parameters for an artifact, in which an attribute says itself as text.
namespace {
struct Parameters {
  Builder b;
  NamedAttrList list;

  Parameters &add(StringRef name, std::optional<int64_t> number) {
    if (number)
      list.set(name, b.getI64IntegerAttr(*number));
    return *this;
  }
  Parameters &add(FormatAttr format) {
    std::string text;
    llvm::raw_string_ostream(text) << format;
    list.set("format", b.getStringAttr(text));
    return *this;
  }
  Parameters &add(CostAttr cost) {
    list.set("cost", cost.getParameters());
    return *this;
  }
  DictionaryAttr get() { return list.getDictionary(b.getContext()); }
};
} // namespace

CostAttr CostAttr::of(MLIRContext *context, StringRef target) {
#define LACIS_DEVICE(prefix, ...)                                                                                      \
  if (target.starts_with(prefix))                                                                                      \
    return get(context, __VA_ARGS__);
#include "lacis/Dialect/Lacis/IR/Devices.inc"
#undef LACIS_DEVICE
  llvm_unreachable("the last device is any");
}

DictionaryAttr CostAttr::getParameters() const {
  Parameters parameters{Builder(getContext()), {}};
  parameters.add("bytes", getBytes()).add("products", getProducts()).add("clock", getClock()).add("panel", getPanel());
  parameters.add("start", getStart()).add("part", getPart()).add("move", getMove());
  return parameters.add("segment", getSegment()).add("kept", getKept()).get();
}

DictionaryAttr IndexAttr::getParameters() const {
  return Parameters{Builder(getContext()), {}}.add(getFormat()).add("least", getLeast()).get();
}

DictionaryAttr LayoutAttr::getParameters() const {
  auto swizzle = getSwizzle() ? std::optional(getSwizzle()) : std::nullopt;
  return Parameters{Builder(getContext()), {}}
      .add(getFormat())
      .add("capacity", getCapacity())
      .add("swizzle", swizzle)
      .get();
}

DictionaryAttr TileScheduleAttr::getParameters() const {
  Parameters parameters{Builder(getContext()), {}};
  parameters.add("columns", getColumns()).add("swizzle_group", getSwizzleGroup()).add("period", getPeriod());
  return parameters.add("split", getSplit()).add(getCost()).get();
}

DictionaryAttr SegmentScheduleAttr::getParameters() const {
  Parameters parameters{Builder(getContext()), {}};
  return parameters.add("length", getLength()).add("span", getSpan()).add("split", getSplit()).add(getCost()).get();
}

LogicalResult CostAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t bytes, int64_t products,
                               int64_t clock, int64_t panel, int64_t start, int64_t part, int64_t move, int64_t segment,
                               int64_t kept) {
  if (bytes < 1 || products < 1 || clock < 1 || kept < 1)
    return emitError() << "cost: bytes, products, clock and kept are at least 1";
  if (panel < 0 || start < 0 || part < 0 || move < 0 || segment < 0)
    return emitError() << "cost: no time is below 0";
  return success();
}

LogicalResult IndexAttr::verify(function_ref<InFlightDiagnostic()> emitError, FormatAttr format,
                                std::optional<int64_t> least) {
  return least.value_or(1) < 1 ? emitError() << "index: rows with at least " << *least << " entries; from 1 on"
                               : success();
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, FormatAttr format,
                                 std::optional<int64_t> capacity, int64_t swizzle) {
  if (capacity.value_or(1) < 1)
    return emitError() << "layout: a capacity is at least 1";
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return emitError() << "layout: lines of 32, 64 or 128 bytes are exchanged, or 0 for none, not " << swizzle;
  return success();
}

LogicalResult TileScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t columns, int64_t group,
                                       std::optional<int64_t> period, std::optional<int64_t> split,
                                       CostAttr cost) {
  if (columns < 1 || group < 1 || period.value_or(1) < 1 || split.value_or(1) < 1)
    return emitError() << "tile_schedule: columns, swizzle_group, period and split are at least 1";
  if (split && !period)
    return emitError() << "tile_schedule: long panels are split in lists with a period";
  return success();
}

LogicalResult SegmentScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t length,
                                          std::optional<int64_t> span, std::optional<int64_t> split, CostAttr cost) {
  if (length < 1 || span.value_or(1) < 1)
    return emitError() << "segment_schedule: length and span are at least 1";
  if (split.value_or(2) < 2)
    return emitError() << "segment_schedule: sums are split into up to so many parts, at least 2";
  return success();
}

//===- Arrays -------------------------------------------------------------===//

/// Words with a bit for each coordinate of the level, under `parents` positions; null where no product tells them.
static SizeAttr wordsOf(LevelAttr level, ArrayRef<SizeAttr> axes, SizeAttr parents) {
  constexpr int64_t kWord = 32;
  ArrayRef<Digit> digits = level.getDigits();
  int64_t coordinates = 1;
  for (const Digit &digit : digits)
    coordinates *= digit.mod;
  if (coordinates != 0)
    return parents.times(llvm::divideCeil(coordinates, kWord));
  return digits.size() == 1 ? parents.times(axes[digits[0].axis].ceilDiv(digits[0].div * kWord)) : SizeAttr();
}

FormatArrays::FormatArrays(FormatAttr format) {
  DerivedSizes sizes(format);
  unsigned counts = 0, batch = format.getNumBatchLevels();
  SmallVector<SizeAttr> axes;
  for (unsigned axis = 0; axis < format.getAxes().size(); ++axis)
    axes.push_back(sizes.axis(axis));
  for (auto [number, binding] : llvm::enumerate(format.getBindings())) {
    std::optional<unsigned> same = cast<BindingInterface>(binding).getSizeName();
    axes.push_back(same ? axes[*same] : sizes.count(counts++)); // else no product of axes
    if (std::string name = bindingArray(format, number); !name.empty())
      arrays.push_back({name, format.getIndexType(), SmallVector<SizeAttr>{axes.back()}});
  }
  positions = sizes.constant(1);
  for (unsigned n = batch; n < format.getLevels().size() - format.getNumTileLevels(); ++n) {
    LevelAttr level = format.getLevels()[n];
    ExtentInterface extent = level.getExtent();
    SizeAttr parents = positions, width;
    if (extent.coversDomain()) {
      for (const Digit &digit : level.getDigits())
        positions = positions.times(digit.mod ? sizes.constant(digit.mod) : axes[digit.axis].ceilDiv(digit.div));
    } else if (extent.hasCapacity()) {
      width = extent.getTrip() ? sizes.constant(*extent.getTrip()) : sizes.count(counts++);
      positions = positions.times(width);
    } else if (extent.isLink()) {
      linked.push_back(parents);
    } else if (!extent.followsParent()) {
      positions = sizes.count(counts++);
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
      arrays.push_back({buffer.name.str() + std::to_string(n), buffer.elementType, std::move(dims)});
    }
  }
}

SmallVector<DerivedArray> lacis::arraysOf(DerivedInterface step, const DerivedSource &source) {
  SmallVector<DerivedArray> arrays;
  step.listArrays(source, arrays);
  return arrays;
}

void IndexAttr::listArrays(const DerivedSource &, SmallVectorImpl<DerivedArray> &arrays) const {
  llvm::append_range(arrays, FormatArrays(getFormat()).arrays);
}
