// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks and evaluates the arguments of a launch.
#include "lacis/Runtime/LaunchPlan.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <limits>

using namespace lacis::runtime;
using llvm::ArrayRef;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

/// A piece smaller than this much arithmetic is not worth another thread.
static constexpr int64_t workPerThread = 32768;

static Error refuse(const Twine &message) { return llvm::createStringError(message); }

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

static int64_t numElements(const lacis_tensor_view &view) {
  int64_t count = 1;
  for (int32_t d = 0; d < view.ndim; ++d)
    count *= view.sizes[d];
  return count;
}

Error LaunchPlan::checkTensor(const Rule &rule, const lacis_tensor_view &view, int32_t device,
                              bool contiguous) const {
  if (view.device != device)
    return refuse(rule.name + ": the tensors of a launch lie on different devices");
  if (rule.dtype != LACIS_DTYPE_NONE && view.dtype != rule.dtype)
    return refuse(rule.name + ": expected dtype " + dtypeName(rule.dtype) + ", got " + dtypeName(view.dtype));
  if (rule.ndim >= 0 && view.ndim != rule.ndim)
    return refuse(rule.name + ": expected " + Twine(rule.ndim) + " dimensions, got " + Twine(view.ndim));
  if (view.ndim < rule.minimumRank)
    return refuse(rule.name + ": expected at least " + Twine(rule.minimumRank) + " dimensions, got " +
                  Twine(view.ndim));
  if (contiguous && !isContiguous(view))
    return refuse(rule.name + ": expected a contiguous tensor");
  return Error::success();
}

Error LaunchPlan::check(const lacis_launch_args &args) const {
  if (args.num_operands < operands.size())
    return refuse("expected " + Twine(operands.size()) + " dense operands, got " + Twine(args.num_operands));
  if (args.num_storage != storage.size()) {
    std::string names;
    for (const Rule &rule : storage)
      names += (names.empty() ? "" : ", ") + rule.name;
    return refuse("expected " + Twine(storage.size()) + " storage tensors (" + names + "), got " +
                  Twine(args.num_storage));
  }
  if (args.num_packed_sizes < packedRank)
    return refuse("expected the " + Twine(packedRank) + " sizes of the packed operand, got " +
                  Twine(args.num_packed_sizes));
  Rule output{"output", outputType, int32_t(outputShape.size()), int32_t(outputRank)};
  if (Error error = checkTensor(output, *args.output, args.output->device, /*contiguous=*/false))
    return error;
  for (size_t i = 0; i < operands.size(); ++i)
    if (Error error = checkTensor(operands[i], args.operands[i], args.output->device, /*contiguous=*/true))
      return error;
  for (size_t i = 0; i < storage.size(); ++i)
    if (Error error = checkTensor(storage[i], args.storage[i], args.output->device, /*contiguous=*/true))
      return error;
  return Error::success();
}

void LaunchPlan::evaluate(const lacis_launch_args &args, ArgumentValues &values) const {
  values.reserve(arguments.size() + 2);
  for (const Argument &argument : arguments) {
    if (argument.room == Room::Packed) {
      values.push_back(args.packed_sizes[argument.dim]);
      continue;
    }
    if (argument.room == Room::Workspace) {
      values.push_back(args.workspace ? reinterpret_cast<uint64_t>(args.workspace[argument.index]) : 0);
      continue;
    }
    const lacis_tensor_view &view = argument.room == Room::Output    ? *args.output
                                    : argument.room == Room::Storage ? args.storage[argument.index]
                                                                     : args.operands[argument.index];
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
    int64_t slots = view.dtype == LACIS_I32 || view.ndim == 0 ? numElements(view) : view.sizes[0];
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
    expected.push_back(evaluateSize(size, values));
  if (!std::equal(expected.begin(), expected.end(), args.output->sizes))
    return refuse("output: expected shape " + shapeText(expected.data(), expected.size()) + ", got " +
                  shapeText(args.output->sizes, args.output->ndim));
  return Error::success();
}

int64_t LaunchPlan::evaluateSize(ArrayRef<Factor> size, ArrayRef<uint64_t> values) {
  int64_t product = 1;
  for (const Factor &factor : size) {
    int64_t whole = factor.arg >= 0 ? int64_t(values[factor.arg]) : evaluateSize(factor.of, values);
    product *= (whole + factor.div - 1) / factor.div * factor.mul;
  }
  return product;
}

int64_t LaunchPlan::workspaceBytes(size_t index, ArrayRef<uint64_t> values) const {
  return evaluateSize(workspaces[index], values);
}

LaunchExtent LaunchPlan::extent(size_t index, const lacis_launch_args &args, ArrayRef<uint64_t> values) const {
  const Launch &launch = launches[index];
  LaunchExtent extent;
  if (launch.hasGrid) {
    extent.units = 1;
    for (int axis = 0; axis < 3; ++axis)
      extent.grid[axis] = evaluateSize(launch.grid[axis], values);
    return extent;
  }
  extent.units = evaluateSize(launch.units, values);
  if (extent.units == 0)
    return extent;
  // Each stored value meets the outputs that one unit owns: the best guess without knowing the loops.
  int64_t outputs = numElements(*args.output);
  int64_t stored = valuesIndex < 0 ? 0 : numElements(args.storage[valuesIndex]);
  double work = double(stored) * std::max<double>(1.0, double(outputs) / extent.units) + outputs;
  double grain = work <= 0 ? extent.units : double(workPerThread) * extent.units / work;
  extent.grain = std::clamp<int64_t>(std::max<int64_t>(int64_t(grain), launch.grain), 1, extent.units);
  return extent;
}
