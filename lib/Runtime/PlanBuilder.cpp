// SPDX-License-Identifier: Apache-2.0
/// \file
/// Resolves an artifact's argument list to places in the tensor lists of a launch.
#include "lacis/Runtime/LaunchPlan.h"
#include "lacis/Target/Artifact.h"
#include "llvm/ADT/Twine.h"
#include <map>
#include <tuple>

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
  using StorageKey = std::tuple<std::string, std::string, std::string>;

  static bool isStorage(const Artifact::Argument &arg) {
    return arg.kind == "storage" || arg.kind == "storage_dim" || arg.kind == "derived";
  }
  static StorageKey storageKey(const Artifact::Argument &arg) { return {arg.part, arg.format, arg.name}; }

  Error findPacked();
  void numberStorage(bool derived);
  Error addArgument(const Artifact::Argument &arg);
  Error addOperand(const Artifact::Argument &arg, Source source);
  Error addSizes();
  Expected<LaunchPlan::Size> convert(const Artifact::Size &size) const;
  Error describe(LaunchPlan::Rule &rule, const Artifact::Argument &arg, Source source);

  const Artifact &artifact;
  LaunchPlan plan;
  int packed = -1;
  std::map<StorageKey, unsigned> storageIndex;
};

} // namespace lacis::runtime

static Error malformed(const Twine &message) { return llvm::createStringError("malformed artifact: " + message); }

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
    if (!isStorage(arg) || arg.format.empty() == derived)
      continue;
    auto [place, isNew] = storageIndex.try_emplace(storageKey(arg), unsigned(plan.storage.size()));
    if (!isNew)
      continue;
    LaunchPlan::Rule rule;
    rule.name = (arg.part.empty() ? "" : arg.part + ".") + arg.name + (derived ? " of " + arg.format : "");
    plan.storage.push_back(rule);
    bool isValues = arg.name == "values" || llvm::StringRef(arg.name).ends_with(".values");
    if (isValues && !derived && plan.valuesIndex < 0)
      plan.valuesIndex = int(place->second);
  }
}

Error PlanBuilder::describe(LaunchPlan::Rule &rule, const Artifact::Argument &arg, Source source) {
  if (source != Source::Pointer) {
    rule.minimumRank = std::max(rule.minimumRank, int32_t(arg.dim) + 1);
    return Error::success();
  }
  rule.dtype = parseDtype(arg.dtype);
  rule.ndim = arg.ndim;
  if (rule.dtype == LACIS_DTYPE_OTHER)
    return malformed("dtype '" + arg.dtype + "'");
  return Error::success();
}

Error PlanBuilder::addOperand(const Artifact::Argument &arg, Source source) {
  unsigned dim = unsigned(arg.dim);
  if (arg.operand == -1) {
    plan.outputRank = std::max(plan.outputRank, dim + 1);
    plan.arguments.push_back({source, Room::Output, 0, dim});
    return Error::success();
  }
  if (arg.operand == packed) {
    if (source != Source::Size)
      return malformed("only sizes of the packed operand exist");
    plan.packedRank = std::max(plan.packedRank, dim + 1);
    plan.arguments.push_back({source, Room::Packed, 0, dim});
    return Error::success();
  }
  unsigned index = unsigned(arg.operand) - (packed >= 0 && arg.operand > packed ? 1 : 0);
  while (plan.operands.size() <= index) {
    LaunchPlan::Rule rule;
    rule.name = "operand " + std::to_string(plan.operands.size() + (int(plan.operands.size()) >= packed && packed >= 0));
    plan.operands.push_back(rule);
  }
  plan.arguments.push_back({source, Room::Operand, index, dim});
  return describe(plan.operands[index], arg, source);
}

Error PlanBuilder::addArgument(const Artifact::Argument &arg) {
  if (isStorage(arg)) {
    unsigned index = storageIndex.at(storageKey(arg));
    Source source = arg.kind == "storage_dim" ? Source::Size : Source::Pointer;
    plan.arguments.push_back({source, Room::Storage, index, unsigned(arg.dim)});
    return describe(plan.storage[index], arg, source);
  }
  if (arg.operand < -1 || arg.dim < 0)
    return malformed("operand " + Twine(arg.operand) + ", dimension " + Twine(arg.dim));
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
    if (size_t(arg.index) >= artifact.workspace.size())
      return malformed("workspace " + Twine(arg.index));
    plan.arguments.push_back({Source::Pointer, Room::Workspace, unsigned(arg.index), 0});
    return Error::success();
  }
  return malformed("argument of kind '" + arg.kind + "'");
}

Expected<LaunchPlan::Size> PlanBuilder::convert(const Artifact::Size &size) const {
  LaunchPlan::Size result;
  for (const Artifact::Factor &factor : size) {
    if (factor.arg >= int64_t(plan.arguments.size()) || factor.div <= 0)
      return malformed("size of argument " + Twine(factor.arg) + " divided by " + Twine(factor.div));
    if (factor.arg >= 0 && plan.arguments[factor.arg].source != Source::Size)
      return malformed("argument " + Twine(factor.arg) + " is no dimension");
    Expected<LaunchPlan::Size> of = convert(factor.of);
    if (!of)
      return of.takeError();
    result.push_back({factor.arg, factor.div, factor.mul, {of->begin(), of->end()}});
  }
  return result;
}

Error PlanBuilder::addSizes() {
  auto append = [&](const Artifact::Size &size, std::vector<LaunchPlan::Size> &list) -> Error {
    Expected<LaunchPlan::Size> converted = convert(size);
    if (!converted)
      return converted.takeError();
    list.push_back(*converted);
    return Error::success();
  };
  for (const Artifact::Size &size : artifact.output.shape)
    if (Error error = append(size, plan.outputShape))
      return error;
  for (const Artifact::Size &size : artifact.workspace)
    if (Error error = append(size, plan.workspaces))
      return error;
  for (const Artifact::Launch &launch : artifact.launches) {
    std::vector<LaunchPlan::Size> sizes;
    for (const Artifact::Size &size : launch.grid)
      if (Error error = append(size, sizes))
        return error;
    LaunchPlan::Launch entry;
    entry.hasGrid = !sizes.empty();
    if (!entry.hasGrid)
      if (Error error = append(launch.units, sizes))
        return error;
    if (entry.hasGrid && sizes.size() > 3)
      return malformed("a grid of " + Twine(sizes.size()) + " axes");
    entry.units = sizes[0];
    entry.grain = launch.grain;
    for (size_t axis = 0; entry.hasGrid && axis < sizes.size(); ++axis)
      entry.grid[axis] = sizes[axis];
    plan.launches.push_back(std::move(entry));
  }
  return Error::success();
}

Expected<LaunchPlan> PlanBuilder::build() {
  plan.indexBits = int(artifact.indexBits);
  plan.outputType = parseDtype(artifact.output.dtype);
  plan.outputZero = artifact.output.zero;
  if (plan.outputType == LACIS_DTYPE_NONE || plan.outputType == LACIS_DTYPE_OTHER)
    return malformed("output dtype '" + artifact.output.dtype + "'");
  if (Error error = findPacked())
    return error;
  numberStorage(/*derived=*/false);
  numberStorage(/*derived=*/true);
  for (const Artifact::Argument &arg : artifact.args)
    if (Error error = addArgument(arg))
      return error;
  if (Error error = addSizes())
    return error;
  return std::move(plan);
}

Expected<LaunchPlan> LaunchPlan::create(const Artifact &artifact) { return PlanBuilder(artifact).build(); }
