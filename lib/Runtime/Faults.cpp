// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the fault word of a checked kernel tells, in words.
#include "lacis/Runtime/LaunchPlan.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

using namespace lacis::runtime;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Twine;

/// As `lacis-check-accesses` packs it: the element below, the argument above.
static constexpr unsigned elementBits = 48;

std::optional<uint64_t> LaunchPlan::faultAddress(ArrayRef<uint64_t> values) const {
  return faultArgument < 0 ? std::nullopt : std::optional(values[faultArgument]);
}

/// "shape [5, 40]"
static std::string shapeOf(const lacis_tensor_view &view) {
  std::string text = "shape [";
  for (int32_t dim = 0; dim < view.ndim; ++dim)
    text += (dim ? ", " : "") + std::to_string(view.sizes[dim]);
  return text + "]";
}

Error LaunchPlan::explainFault(uint64_t word, const lacis_launch_args &args, ArrayRef<uint64_t> values) const {
  if (word == noFault)
    return Error::success();
  size_t number = size_t(word >> elementBits);
  int64_t element = llvm::SignExtend64(word, elementBits), count = 1;
  if (number >= arguments.size() || arguments[number].source != Source::Pointer)
    return llvm::createStringError("the fault word of a checked kernel holds what no kernel writes");
  const Argument &array = arguments[number];
  std::string name, what;
  if (array.room == Room::Workspace) {
    const auto &[content, bytes] = workspaceContents.at(array.index);
    name = content;
    what = "in workspace " + std::to_string(array.index);
    count = workspaces[array.index].evaluate(values) / bytes;
  } else {
    const lacis_tensor_view &view = viewOf(array.room, array.index, args);
    name = ruleOf(array.room, array.index).name;
    what = shapeOf(view);
    for (int32_t dim = 0; dim < view.ndim; ++dim)
      count *= view.sizes[dim];
  }
  return llvm::make_error<DataRefusal>(name + ": a checked kernel asked for element " + Twine(element) + " of " +
                                       Twine(count) + " (" + what +
                                       "); a position or coordinate of the packed operand, or of what was derived "
                                       "from it, does not fit, see its '.validate()'");
}
