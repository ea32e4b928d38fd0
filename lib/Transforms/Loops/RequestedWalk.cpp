// SPDX-License-Identifier: Apache-2.0
/// \file
/// The order in which a step of the schedule wants an operand walked.
#include "RequestedWalk.h"

#include "Expression.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lacis;

static StringRef nameOf(Value tensor) {
  while (auto part = tensor.getDefiningOp<PartOp>())
    tensor = part.getSource();
  auto argument = dyn_cast<BlockArgument>(tensor);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : nullptr;
  auto name = function ? function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "lacis.name") : StringAttr();
  return name ? name.getValue() : "";
}

bool RequestedWalk::isOwnOrderOf(FormatAttr format) const {
  SmallVector<unsigned> order;
  for (LevelAttr level : format.getLevels())
    for (Digit digit : level.getDigits())
      if (!llvm::is_contained(order, digit.axis))
        order.push_back(digit.axis);
  return ArrayRef(order).take_front(axes.size()) == ArrayRef(axes);
}

FailureOr<RequestedWalk> lacis::requestedWalk(linalg::GenericOp generic, Value tensor, AffineMap map) {
  RequestedWalk walk{nameOf(tensor).str(), {}, std::nullopt, "", std::nullopt};
  FailureOr<SmallVector<RecordedStep>> steps = recordedSteps(generic->getParentOfType<func::FuncOp>());
  if (failed(steps))
    return failure();
  auto letters = generic->getAttrOfType<ArrayAttr>("lacis.loops");
  for (const RecordedStep &entry : *steps) {
    if (StringRef form = entry.step.getOwnerForm(walk.operand); !form.empty()) {
      walk.form = form.str();
      walk.formLocation = entry.loc;
    }
    ArrayAttr asked = entry.step.getWalk(walk.operand);
    if (!asked || !letters)
      continue;
    walk.axes.clear();
    walk.location = entry.loc;
    for (Attribute letter : asked) {
      auto axis = llvm::find_if(map.getResults(), [&](AffineExpr expr) {
        return letters[cast<AffineDimExpr>(expr).getPosition()] == letter;
      });
      if (axis == map.getResults().end())
        return emitError(entry.loc) << "walk: operand '" << walk.operand << "' has no axis " << letter;
      walk.axes.push_back(axis - map.getResults().begin());
    }
  }
  return walk;
}

std::string lacis::entriesName(linalg::GenericOp generic, AffineMap map) {
  std::string name;
  for (unsigned axis = 0; axis < map.getNumResults(); ++axis)
    name += (axis == 0 ? "" : "_") + letterName(generic, map.getDimPosition(axis));
  return name;
}

bool lacis::namesLoop(linalg::GenericOp generic, StringRef loop) {
  FailureOr<SmallVector<RecordedStep>> steps = recordedSteps(generic->getParentOfType<func::FuncOp>());
  return succeeded(steps) && llvm::any_of(*steps, [&](const RecordedStep &entry) {
           return llvm::any_of(entry.step.namedLoops(), [&](StringRef name) {
             return name.consume_front(loop) && llvm::all_of(name, llvm::isDigit);
           });
         });
}
