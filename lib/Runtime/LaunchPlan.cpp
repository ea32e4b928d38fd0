// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks and evaluates the arguments of a launch.
#include "lacis/Runtime/LaunchPlan.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>

using namespace lacis::runtime;
using llvm::ArrayRef;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

/// Elements of a vector: a step is an entry of the packed operand times so many of a dense one, about a nanosecond.
static constexpr int64_t vectorElements = 16;
/// A launch is cut into pieces of so many steps.
static constexpr int64_t stepsOfPiece = 2048;
/// A kernel of fewer steps is done before a second thread would have saved what waking it takes.
static constexpr int64_t stepsAlone = 20000;
/// What torch's allocators give, too.
static constexpr uint64_t workspaceAlignment = 256;

char DataRefusal::ID = 0;

static Error refuse(const Twine &message) { return llvm::make_error<DataRefusal>(message); }

int32_t lacis::runtime::parseDtype(StringRef text) {
  return llvm::StringSwitch<int32_t>(text)
      .Case("", LACIS_DTYPE_NONE)
      .Case("f16", LACIS_F16)
      .Case("bf16", LACIS_BF16)
      .Case("f32", LACIS_F32)
      .Case("f64", LACIS_F64)
      .Case("i1", LACIS_I1)
      .Case("i8", LACIS_I8)
      .Case("i16", LACIS_I16)
      .Case("i32", LACIS_I32)
      .Case("i64", LACIS_I64)
      .Default(LACIS_DTYPE_OTHER);
}

const char *lacis::runtime::dtypeName(int32_t dtype) {
  static const char *const names[] = {"none", "f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64"};
  return dtype >= 0 && dtype < LACIS_DTYPE_OTHER ? names[dtype] : "a dtype that lacis has no kernels for";
}

int64_t lacis::runtime::dtypeBytes(int32_t dtype) {
  static const int64_t bytes[] = {0, 2, 2, 4, 8, 1, 1, 2, 4, 8};
  return dtype >= 0 && dtype < LACIS_DTYPE_OTHER ? bytes[dtype] : 0;
}

static std::string shapeText(const int64_t *sizes, size_t rank) {
  std::string text = "[";
  for (size_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

static bool isContiguous(const lacis_tensor_view &view) {
  int64_t expected = 1;
  for (int32_t d = view.ndim - 1; d >= 0; --d) {
    if (view.sizes[d] == 0)
      return true;
    if (view.sizes[d] != 1 && view.strides[d] != expected)
      return false;
    expected *= view.sizes[d];
  }
  return true;
}

/// Rows have neighbours, and begin at multiples of 16 bytes, so many as kernels read at once.
static bool hasRows(const lacis_tensor_view &view) {
  constexpr int64_t alignment = 16;
  for (int32_t d = 0; d < view.ndim; ++d) {
    int64_t bytes = view.strides[d] * dtypeBytes(view.dtype);
    bool fits = d + 1 == view.ndim ? view.strides[d] == 1 : bytes > 0 && bytes % alignment == 0;
    if (view.sizes[d] > 1 && !fits)
      return false;
  }
  return true;
}

/// Elements from the first to the last.
static int64_t spanOf(const lacis_tensor_view &view) {
  int64_t span = 1;
  for (int32_t d = 0; d < view.ndim; ++d) {
    if (view.sizes[d] == 0)
      return 0;
    span += (view.sizes[d] - 1) * view.strides[d];
  }
  return span;
}

static int64_t numElements(const lacis_tensor_view &view, int32_t first = 0) {
  int64_t count = 1;
  for (int32_t d = first; d < view.ndim; ++d)
    count *= view.sizes[d];
  return count;
}

static bool isEmptyList(const int64_t *sizes, int32_t rank) { return rank == 1 && sizes[0] == 0; }

Error LaunchPlan::checkTensor(const Rule &rule, const lacis_tensor_view &view, int32_t device,
                              bool contiguous) const {
  if (view.device != device)
    return refuse(rule.name + ": the tensors of a launch lie on different devices");
  if (rule.dtype != LACIS_DTYPE_NONE && view.dtype != rule.dtype)
    return refuse(rule.name + ": expected dtype " + dtypeName(rule.dtype) + ", got " + dtypeName(view.dtype));
  if (rule.ndim >= 0 && view.ndim != rule.ndim && !(rule.optional && isEmptyList(view.sizes, view.ndim)))
    return refuse(rule.name + ": expected " + Twine(rule.ndim) + " dimensions, got " + Twine(view.ndim));
  if (view.ndim < rule.minimumRank)
    return refuse(rule.name + ": expected at least " + Twine(rule.minimumRank) + " dimensions, got " +
                  Twine(view.ndim));
  if (LLVM_UNLIKELY(!view.data) && numElements(view) > 0)
    return refuse(rule.name + ": the tensor has " + Twine(numElements(view)) +
                  " elements and no memory for them, its storage was freed or made smaller; gather or load it first");
  if (rule.strided && !isContiguous(view) && !hasRows(view))
    return refuse(rule.name + ": expected rows of neighbours that begin at multiples of 16 bytes");
  if (contiguous && !rule.strided && !isContiguous(view))
    return refuse(rule.name + ": expected a contiguous tensor");
  return Error::success();
}

Error LaunchPlan::checkCounts(const lacis_launch_args &args) const {
  if (args.num_operands < operands.size())
    return refuse("expected " + Twine(operands.size()) + " dense operands, got " + Twine(args.num_operands));
  if (args.num_storage != storage.size()) {
    std::string names;
    for (const Rule &rule : storage)
      names += (names.empty() ? "" : ", ") + rule.name;
    return refuse("expected " + Twine(storage.size()) + " storage tensors (" + names + "), got " +
                  Twine(args.num_storage));
  }
  size_t rank = packed.ndim >= 0 ? packed.ndim : packed.minimumRank;
  if (args.num_packed_sizes < rank || (packed.ndim >= 0 && args.num_packed_sizes != rank))
    return refuse("expected the " + Twine(rank) + " sizes of the packed operand, got " + Twine(args.num_packed_sizes));
  for (size_t dim = 0; dim < args.num_packed_sizes; ++dim)
    if (args.packed_sizes[dim] < 0)
      return refuse("a negative size of the packed operand: " + Twine(args.packed_sizes[dim]));
  return Error::success();
}

const LaunchPlan::Rule &LaunchPlan::ruleOf(Room room, unsigned index) const {
  switch (room) {
  case Room::Operand:
    return operands[index];
  case Room::Storage:
    return storage[index];
  case Room::Packed:
    return packed;
  default:
    return output;
  }
}

const lacis_tensor_view &LaunchPlan::viewOf(Room room, unsigned index, const lacis_launch_args &args) {
  return room == Room::Output ? *args.output : room == Room::Storage ? args.storage[index] : args.operands[index];
}

/// Reads every shared size where it is told.
Error LaunchPlan::bindSizes(const lacis_launch_args &args, SharedSizes &shared) const {
  for (const SharedSize &size : sharedSizes) {
    const int64_t *sizes = size.room == Room::Operand   ? args.operands[size.index].sizes
                           : size.room == Room::Storage ? args.storage[size.index].sizes
                           : size.room == Room::Packed  ? args.packed_sizes
                                                        : args.output->sizes;
    int64_t value = sizes[size.dim];
    if (size.times != 1 || size.more != 0) // what it does not come to is found where the dimension is checked
      value = std::max<int64_t>(value - size.more, 0) / size.times;
    shared.push_back(value);
    bool fits = (size.value < 0 || value == size.value) && (size.multiple == 1 || value % size.multiple == 0);
    if (LLVM_UNLIKELY(!fits))
      return refuse(ruleOf(size.room, size.index).name + ": expected " +
                    (size.value < 0 ? "a multiple of " + Twine(size.multiple) : Twine(size.value)).str() +
                    " in dimension " + Twine(size.dim) + " ('" + size.name + "'), got " + Twine(value));
  }
  for (size_t i = 0; i < sharedSizes.size(); ++i) {
    const SharedSize &size = sharedSizes[i];
    if (LLVM_LIKELY(size.most < 0 || shared[i] <= shared[size.most]))
      continue;
    const SharedSize &limit = sharedSizes[size.most];
    return refuse(ruleOf(limit.room, limit.index).name + ": expected at least size " + Twine(shared[i]) +
                  " in dimension " + Twine(limit.dim) + " (as " + ruleOf(size.room, size.index).name +
                  " has entries), got " + Twine(shared[size.most]));
  }
  return Error::success();
}

Error LaunchPlan::checkDims(const Rule &rule, const int64_t *sizes, int32_t rank, ArrayRef<uint64_t> shared) const {
  if (rule.optional && isEmptyList(sizes, rank))
    return Error::success();
  for (size_t dim = 0; dim < rule.dims.size(); ++dim) {
    const Dimension &wanted = rule.dims[dim];
    int64_t expected = wanted.shared >= 0 ? shared[wanted.shared] : wanted.size.evaluate(shared);
    if (LLVM_LIKELY(sizes[dim] == expected))
      continue;
    std::string why;
    if (wanted.shared >= 0) {
      const SharedSize &size = sharedSizes[wanted.shared];
      why = (size.name.empty() ? "" : "'" + size.name + "', ") + "as in dimension " + std::to_string(size.dim) +
            " of " + ruleOf(size.room, size.index).name;
    }
    return refuse(rule.name + ": expected size " + Twine(expected) + " in dimension " + Twine(dim) +
                  (why.empty() ? "" : " (" + why + ")") + ", got " + Twine(sizes[dim]));
  }
  return Error::success();
}

Error LaunchPlan::check(const lacis_launch_args &args) const {
  if (Error error = checkCounts(args))
    return error;
  int32_t device = args.output->device;
  if (Error error = checkTensor(output, *args.output, device, /*contiguous=*/true))
    return error;
  for (size_t i = 0; i < operands.size(); ++i)
    if (Error error = checkTensor(operands[i], args.operands[i], device, /*contiguous=*/true))
      return error;
  for (size_t i = 0; i < storage.size(); ++i)
    if (Error error = checkTensor(storage[i], args.storage[i], device, /*contiguous=*/true))
      return error;
  SharedSizes shared;
  if (Error error = bindSizes(args, shared))
    return error;
  if (Error error = checkDims(packed, args.packed_sizes, int32_t(args.num_packed_sizes), shared))
    return error;
  for (size_t i = 0; i < operands.size(); ++i)
    if (Error error = checkDims(operands[i], args.operands[i].sizes, args.operands[i].ndim, shared))
      return error;
  for (size_t i = 0; i < storage.size(); ++i)
    if (Error error = checkDims(storage[i], args.storage[i].sizes, args.storage[i].ndim, shared))
      return error;
  return checkDims(output, args.output->sizes, args.output->ndim, shared);
}

void LaunchPlan::evaluate(const lacis_launch_args &args, ArgumentValues &values) const {
  values.reserve(arguments.size() + 2);
  for (const Argument &argument : arguments) {
    if (argument.room == Room::Packed) {
      values.push_back(args.packed_sizes[argument.dim]);
      continue;
    }
    if (argument.room == Room::Workspace) {
      values.push_back(argument.source == Source::Bytes ? workspaces[argument.index].evaluate(values) : 0);
      continue;
    }
    const lacis_tensor_view &view = viewOf(argument.room, argument.index, args);
    switch (argument.source) {
    case Source::Pointer:
      values.push_back(reinterpret_cast<uint64_t>(view.data));
      break;
    case Source::Size:
      values.push_back(view.sizes[argument.dim]);
      break;
    case Source::Stride:
      values.push_back(view.strides[argument.dim]);
      break;
    case Source::TensorMap:
      values.push_back(0);
      break;
    case Source::Bytes:
      values.push_back(spanOf(view) * dtypeBytes(view.dtype));
      break;
    }
  }
}

Error LaunchPlan::checkIndexWidth(const lacis_launch_args &args, ArrayRef<uint64_t> values) const {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].source == Source::Size && int64_t(values[i]) > limit)
      return refuse("a dimension of " + Twine(values[i]) + " needs a kernel with 64-bit indices");
  for (size_t i = 0; i < storage.size(); ++i) {
    const lacis_tensor_view &view = args.storage[i];
    int64_t slots = numElements(view, storage[i].copies); // positions run through stored blocks too
    if (slots > limit)
      return refuse(storage[i].name + ": " + Twine(slots) + " slots need a kernel with 64-bit indices");
  }
  return Error::success();
}

Error LaunchPlan::checkValues(const lacis_launch_args &args, ArrayRef<uint64_t> values) const {
  if (indexBits == 32)
    if (Error error = checkIndexWidth(args, values))
      return error;
  llvm::SmallVector<int64_t, 6> expected;
  for (const Size &size : outputShape)
    expected.push_back(size.evaluate(values));
  if (!std::equal(expected.begin(), expected.end(), args.output->sizes))
    return refuse("output: expected shape " + shapeText(expected.data(), expected.size()) + ", got " +
                  shapeText(args.output->sizes, args.output->ndim));
  return Error::success();
}

llvm::SmallVector<TensorMapValue, 4> LaunchPlan::tensorMaps(const lacis_launch_args &args, ArrayRef<uint64_t> values) const {
  llvm::SmallVector<TensorMapValue, 4> result;
  for (const TensorMap &map : maps) {
    TensorMapValue value = map.value;
    value.pointer = values[map.pointer];
    for (const Size &size : map.shape)
      value.shape.push_back(size.evaluate(values));
    if (map.strided >= 0 && !isContiguous(args.operands[map.strided]))
      for (int32_t d = args.operands[map.strided].ndim - 1; d > 0; --d)
        value.strides.push_back(args.operands[map.strided].strides[d - 1]);
    result.push_back(value);
  }
  return result;
}

WorkspaceLayout LaunchPlan::workspaceLayout(ArrayRef<uint64_t> values) const {
  WorkspaceLayout layout;
  for (const Size &bytes : workspaces) {
    layout.offsets.push_back(layout.bytes);
    layout.bytes += int64_t(llvm::alignTo(uint64_t(bytes.evaluate(values)), workspaceAlignment));
  }
  return layout;
}

void LaunchPlan::placeWorkspaces(void *memory, const WorkspaceLayout &layout, ArgumentValues &values) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].room == Room::Workspace && arguments[i].source == Source::Pointer)
      values[i] = reinterpret_cast<uint64_t>(memory) + layout.offsets[arguments[i].index];
}

int64_t LaunchPlan::steps(const lacis_launch_args &args) const {
  int64_t reach = 1, entries = 0, elements = numElements(*args.output);
  for (const SharedSize &size : sharedSizes)
    if (size.room == Room::Operand && !size.name.empty())
      reach *= args.operands[size.index].sizes[size.dim];
  for (unsigned index : valueArrays)
    entries += numElements(args.storage[index]);
  if (valueArrays.empty()) // sampled at a pattern
    entries = elements;
  for (size_t i = 0; i < operands.size(); ++i)
    elements += numElements(args.operands[i]);
  return entries * int64_t(llvm::divideCeil(uint64_t(reach), uint64_t(vectorElements))) + elements / vectorElements;
}

LaunchExtent LaunchPlan::extent(size_t index, int64_t steps, ArrayRef<uint64_t> values) const {
  const Launch &launch = launches[index];
  LaunchExtent extent;
  int64_t beside = 0;
  for (const Size &size : launch.beside)
    beside += size.evaluate(values);
  if (launch.hasGrid) {
    extent.units = 1;
    extent.grid[0] = launch.grid[0].evaluate(values) + beside;
    for (int axis = 1; axis < 3 && !extent.empty(); ++axis)
      extent.grid[axis] = launch.grid[axis].evaluate(values);
    return extent;
  }
  extent.units = launch.units.evaluate(values) + beside;
  if (extent.units == 0)
    return extent;
  double grain = steps < stepsAlone ? extent.units : double(stepsOfPiece) * extent.units / steps;
  extent.grain = std::clamp<int64_t>(int64_t(grain), 1, extent.units);
  return extent;
}
