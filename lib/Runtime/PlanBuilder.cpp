// SPDX-License-Identifier: Apache-2.0
/// \file
/// Resolves an artifact's argument list to places in the tensor lists of a launch.
#include "lacis/Runtime/LaunchPlan.h"
#include "lacis/Target/Artifact.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <map>
#include <utility>

using namespace lacis;
using namespace lacis::runtime;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

namespace lacis::runtime {

class PlanBuilder {
public:
  explicit PlanBuilder(const Artifact &artifact) : artifact(artifact) {}
  Expected<LaunchPlan> build();

private:
  using Argument = LaunchPlan::Argument;
  using Source = LaunchPlan::Source;
  using Room = LaunchPlan::Room;
  using StorageKey = std::pair<int64_t, std::string>;

  static bool isStorage(const Artifact::Argument &arg) {
    return arg.kind == "storage" || arg.kind == "storage_dim" || arg.kind == "derived";
  }
  static StorageKey storageKey(const Artifact::Argument &arg) {
    return {arg.derived, arg.name};
  }

  Error findPacked();
  void numberStorage(bool derived);
  Error addArgument(const Artifact::Argument &arg);
  Error addOperand(const Artifact::Argument &arg, Source source);
  void addSizes();
  void addTensorMaps();
  LaunchPlan::Rule &operandRule(int64_t operand);
  Error addTensor(const Artifact::Tensor &tensor);
  Error addTensors();
  void bind(LaunchPlan::Rule &rule, Room room, unsigned index, bool solves);

  const Artifact &artifact;
  LaunchPlan plan;
  int packed = -1;
  std::map<StorageKey, unsigned> storageIndex;
};

} // namespace lacis::runtime

static Error malformed(const Twine &message) { return llvm::createStringError("malformed artifact: " + message); }

/// How messages call a step: by the part and the function, and by the format where it has one.
static std::string nameOf(const Artifact::Derived &step) {
  std::string name = (step.part.empty() ? "" : step.part + ".") + step.function;
  if (std::optional<llvm::StringRef> format = step.parameters.getString("format"))
    name += " " + format->str();
  return name;
}

Error PlanBuilder::findPacked() {
  packed = artifact.packed;
  for (const Artifact::Argument &arg : artifact.args) {
    if (!isStorage(arg))
      continue;
    if (packed >= 0 && packed != arg.operand)
      return malformed("storage of two operands");
    packed = arg.operand;
  }
  return Error::success();
}

/// The list begins with the operand's own storage; derived arrays follow, each in the order of first mention.
void PlanBuilder::numberStorage(bool derived) {
  for (const Artifact::Argument &arg : artifact.args) {
    if (!isStorage(arg) || (arg.derived >= 0) != derived)
      continue;
    auto [place, isNew] = storageIndex.try_emplace(storageKey(arg), unsigned(plan.storage.size()));
    if (!isNew)
      continue;
    LaunchPlan::Rule rule;
    rule.name = arg.name + (derived ? " of " + nameOf(artifact.derived[arg.derived]) : "");
    plan.storage.push_back(rule);
    bool isValues = arg.name == "values" || llvm::StringRef(arg.name).ends_with(".values");
    if (isValues && !derived)
      plan.valueArrays.push_back(place->second);
  }
}

/// What a size or a stride that is an argument demands.
static void requireRank(int32_t &minimum, unsigned dim) { minimum = std::max(minimum, int32_t(dim) + 1); }

/// The rule of a dense operand or of the output.
LaunchPlan::Rule &PlanBuilder::operandRule(int64_t operand) {
  if (operand == -1)
    return plan.output;
  if (operand == packed)
    return plan.packed;
  unsigned index = unsigned(operand) - (packed >= 0 && operand > packed ? 1 : 0);
  while (plan.operands.size() <= index) {
    LaunchPlan::Rule rule;
    rule.name = "operand " + std::to_string(plan.operands.size() + (int(plan.operands.size()) >= packed && packed >= 0));
    plan.operands.push_back(rule);
  }
  return plan.operands[index];
}

Error PlanBuilder::addOperand(const Artifact::Argument &arg, Source source) {
  unsigned dim = unsigned(arg.dim);
  LaunchPlan::Rule &rule = operandRule(arg.operand);
  if (source != Source::Pointer)
    requireRank(rule.minimumRank, dim);
  if (arg.operand == -1) {
    plan.arguments.push_back({source, Room::Output, 0, dim});
    return Error::success();
  }
  if (arg.operand == packed) {
    if (source != Source::Size)
      return malformed("only sizes of the packed operand exist");
    plan.arguments.push_back({source, Room::Packed, 0, dim});
    return Error::success();
  }
  rule.strided |= arg.strided;
  plan.arguments.push_back({source, Room::Operand, unsigned(&rule - plan.operands.data()), dim});
  return Error::success();
}

Error PlanBuilder::addArgument(const Artifact::Argument &arg) {
  if (isStorage(arg)) {
    unsigned index = storageIndex.at(storageKey(arg));
    Source source = arg.kind == "storage_dim" ? Source::Size : Source::Pointer;
    plan.arguments.push_back({source, Room::Storage, index, unsigned(arg.dim)});
    if (source == Source::Size)
      requireRank(plan.storage[index].minimumRank, unsigned(arg.dim));
    return Error::success();
  }
  if (arg.kind == "operand")
    return addOperand(arg, Source::Pointer);
  if (arg.kind == "dim")
    return addOperand(arg, Source::Size);
  if (arg.kind == "stride")
    return addOperand(arg, Source::Stride);
  if (arg.kind == "output") {
    plan.arguments.push_back({Source::Pointer, Room::Output, 0, 0});
    return Error::success();
  }
  if (arg.kind == "workspace") {
    plan.arguments.push_back({Source::Pointer, Room::Workspace, unsigned(arg.index), 0});
    return Error::success();
  }
  if (arg.kind == "tensor_map") {
    plan.arguments.push_back({Source::TensorMap, Room::Output, unsigned(arg.index), 0});
    return Error::success();
  }
  if (arg.kind == "bytes") {
    if (size_t(arg.index) >= plan.arguments.size() || plan.arguments[arg.index].source != Source::Pointer)
      return malformed("bytes of argument " + Twine(arg.index) + ", which is no array");
    plan.arguments.push_back(plan.arguments[arg.index]);
    plan.arguments.back().source = Source::Bytes;
    if (plan.arguments.back().room == Room::Workspace)
      plan.workspaceContents[plan.arguments.back().index] = {arg.name, std::max<int64_t>(arg.dim, 1)};
    return Error::success();
  }
  assert(arg.kind == "fault" && "an artifact is verified"); // one workspace more
  plan.faultArgument = int(plan.arguments.size());
  plan.arguments.push_back({Source::Pointer, Room::Workspace, unsigned(artifact.workspace.size()), 0});
  return Error::success();
}

Error PlanBuilder::addTensor(const Artifact::Tensor &tensor) {
  LaunchPlan::Rule *rule = nullptr;
  if (tensor.name.empty()) {
    rule = &operandRule(tensor.operand);
  } else {
    auto found = storageIndex.find({tensor.derived, tensor.name});
    if (found == storageIndex.end() || tensor.operand != packed)
      return malformed("an array '" + tensor.name + "' that no argument reads");
    rule = &plan.storage[found->second];
  }
  if (int32_t dtype = parseDtype(tensor.dtype); dtype != LACIS_DTYPE_NONE)
    rule->dtype = dtype;
  if (rule->dtype == LACIS_DTYPE_OTHER)
    return malformed("dtype '" + tensor.dtype + "'");
  rule->optional = tensor.optional;
  rule->copies = int32_t(tensor.copies);
  if (!tensor.shaped)
    return Error::success();
  rule->ndim = int32_t(tensor.dims.size());
  if (rule->ndim < rule->minimumRank)
    return malformed(rule->name + " of rank " + Twine(rule->ndim));
  for (const Size &dim : tensor.dims)
    rule->dims.push_back({dim.kind == Size::Kind::Argument ? dim.number : -1, dim});
  return Error::success();
}

/// The shared size of which `dimension` is a multiple, and more; `times` and `more` say how. -1 where it is not that.
static int64_t solve(const Size &dimension, int64_t &times, int64_t &more) {
  bool isSum = dimension.kind == Size::Kind::Sum && dimension.of.size() == 1;
  const Size &whole = isSum ? dimension.of[0] : dimension;
  more = isSum ? dimension.number : 0;
  times = 1;
  if (whole.kind == Size::Kind::Argument)
    return whole.number;
  int64_t found = -1;
  for (const Size &factor : whole.of) {
    if (factor.kind == Size::Kind::Constant)
      times *= factor.number;
    else if (factor.kind != Size::Kind::Argument || found >= 0)
      return -1;
    else
      found = factor.number;
  }
  return whole.kind == Size::Kind::Product && times > 0 ? found : -1;
}

/// A shared size is read from the first dimension that is nothing else, or if none is from one that it can be solved of.
void PlanBuilder::bind(LaunchPlan::Rule &rule, Room room, unsigned index, bool solves) {
  if (rule.optional)
    return;
  for (size_t dim = 0; dim < rule.dims.size(); ++dim) {
    int64_t times = 1, more = 0, number = rule.dims[dim].shared;
    if (number < 0 && solves)
      number = solve(rule.dims[dim].size, times, more);
    if (number < 0)
      continue;
    LaunchPlan::SharedSize &size = plan.sharedSizes[number];
    if (size.bound)
      continue;
    size.bound = true;
    size.times = times;
    size.more = more;
    size.room = room;
    size.index = index;
    size.dim = unsigned(dim);
  }
}

Error PlanBuilder::addTensors() {
  for (const Artifact::Tensor &tensor : artifact.tensors)
    if (Error error = addTensor(tensor))
      return error;
  for (const Artifact::SharedSize &size : artifact.sizes) {
    LaunchPlan::SharedSize entry;
    entry.name = size.name;
    entry.multiple = size.multiple;
    entry.value = size.value;
    entry.most = size.most;
    plan.sharedSizes.push_back(entry);
  }
  for (bool solves : {false, true}) {
    bind(plan.packed, Room::Packed, 0, solves);
    for (size_t i = 0; i < plan.operands.size(); ++i)
      bind(plan.operands[i], Room::Operand, unsigned(i), solves);
    for (size_t i = 0; i < plan.storage.size(); ++i)
      bind(plan.storage[i], Room::Storage, unsigned(i), solves);
    bind(plan.output, Room::Output, 0, solves);
  }
  for (const LaunchPlan::SharedSize &size : plan.sharedSizes)
    if (!size.bound)
      return malformed("no dimension tells the size '" + size.name + "'");
  return Error::success();
}

void PlanBuilder::addTensorMaps() {
  for (auto [number, argument] : llvm::enumerate(plan.arguments)) {
    if (argument.source != Source::TensorMap)
      continue;
    const Artifact::TensorMap &from = artifact.tensorMaps[argument.index];
    LaunchPlan::TensorMap map;
    map.pointer = from.pointer;
    bool isTf32 = from.dtype == "tf32"; // float32 in memory, rounded by the copy
    int32_t dtype = parseDtype(isTf32 ? "f32" : from.dtype);
    map.value = {number, 0, {}, llvm::SmallVector<int64_t, 3>(from.box.begin(), from.box.end()), from.swizzle, dtype, isTf32};
    map.shape = from.shape;
    const LaunchPlan::Argument &pointer = plan.arguments[from.pointer];
    if (pointer.room == Room::Operand && plan.operands[pointer.index].strided)
      map.strided = pointer.index;
    plan.maps.push_back(std::move(map));
  }
}

void PlanBuilder::addSizes() {
  plan.outputShape = artifact.output.shape;
  plan.workspaces = artifact.workspace;
  if (plan.faultArgument >= 0)
    plan.workspaces.push_back(Size::constant(sizeof(uint64_t)));
  for (const Artifact::Launch &launch : artifact.launches) {
    LaunchPlan::Launch entry;
    entry.hasGrid = !launch.grid.empty();
    entry.units = entry.hasGrid ? launch.grid[0] : launch.units.value_or(Size());
    llvm::copy(launch.grid, entry.grid);
    entry.beside = launch.beside;
    plan.launches.push_back(std::move(entry));
  }
}

Expected<LaunchPlan> PlanBuilder::build() {
  plan.indexBits = int(artifact.indexBits);
  plan.outputZero = artifact.output.zero;
  plan.output.name = "output";
  plan.output.dtype = parseDtype(artifact.output.dtype);
  plan.output.ndim = int32_t(artifact.output.shape.size());
  if (plan.output.dtype == LACIS_DTYPE_NONE || plan.output.dtype == LACIS_DTYPE_OTHER)
    return malformed("output dtype '" + artifact.output.dtype + "'");
  if (Error error = findPacked())
    return error;
  plan.packed.name = "operand " + std::to_string(packed);
  numberStorage(/*derived=*/false);
  numberStorage(/*derived=*/true);
  for (const Artifact::Argument &arg : artifact.args)
    if (Error error = addArgument(arg))
      return error;
  if (Error error = addTensors())
    return error;
  addSizes();
  addTensorMaps();
  return std::move(plan);
}

Expected<LaunchPlan> LaunchPlan::create(const Artifact &artifact) { return PlanBuilder(artifact).build(); }
