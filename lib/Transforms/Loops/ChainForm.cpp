// SPDX-License-Identifier: Apache-2.0
/// \file
/// What steps say of the statements of a chain, and what is best where they say nothing.
#include "ChainForm.h"

#include "Expression.h"
#include "RolledTiles.h"
#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Dialect/Lacis/IR/StepInterface.h"

#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace lacis;

/// The name of the pattern that the statements are on.
static std::string patternOf(ArrayRef<linalg::GenericOp> statements) {
  for (linalg::GenericOp each : statements)
    if (ZerosOp zeros = zerosOf(each.getOutputs()[0])) {
      BlockArgument argument = argumentOf(zeros.getSource());
      auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
      auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "lacis.name");
      return name ? name.str() : "";
    }
  return "";
}

void lacis::recordForm(func::FuncOp function, ArrayRef<std::string> steps) {
  for (const std::string &step : steps)
    append(function, "lacis.owners", parseAttribute(step, function.getContext()));
}

/// A step names a statement whose result it keeps.
static LogicalResult checkKept(const RecordedStep &entry, StringRef name, ArrayRef<linalg::GenericOp> roots,
                               ArrayRef<linalg::GenericOp> statements) {
  std::string others;
  for (linalg::GenericOp each : llvm::reverse(statements)) {
    bool isRoot = llvm::is_contained(roots, each);
    if (nameOfStatement(each) == name && isRoot)
      return emitError(entry.loc) << "keep: '" << name << "' is a result of the kernel, which has a nest anyway";
    if (nameOfStatement(each) == name)
      return success();
    if (!isRoot)
      others += (others.empty() ? "'" : ", '") + nameOfStatement(each) + "'";
  }
  return emitError(entry.loc) << "keep: no statement named '" << name << "'; those with a result to keep are " << others;
}

/// A step names the loop, and may say how many columns its rounds take.
static LogicalResult applyRolled(const RecordedStep &entry, StringRef loop, FailureOr<Rescaled> &found,
                                 StringRef objection) {
  if (failed(found))
    return emitError(entry.loc) << "roll: the statements are no one loop '" << loop << "': " << objection;
  if (found->loop != loop)
    return emitError(entry.loc) << "roll: no loop named '" << loop << "'; the statements become loop '" << found->loop << "'";
  std::optional<int64_t> columns = entry.step.getRoundColumns();
  if (columns && !found->isOfTiles)
    return emitError(entry.loc) << "roll: no round of '" << loop << "' takes tiles, which alone have 'columns'";
  if (columns)
    if (std::string why = objectionToColumns(*found, *columns); !why.empty())
      return emitError(entry.loc) << "roll: " << why;
  found->columns = columns.value_or(kTileSide);
  return success();
}

FailureOr<ChainForm> lacis::chooseForm(ArrayRef<linalg::GenericOp> roots, ArrayRef<linalg::GenericOp> statements) {
  auto function = roots[0]->getParentOfType<func::FuncOp>();
  FailureOr<SmallVector<RecordedStep>> steps = recordedSteps(function);
  if (failed(steps))
    return failure();
  ChainForm form;
  std::string objection, operand = patternOf(statements);
  FailureOr<Rescaled> found = findRescaled(roots, statements, objection);
  bool isOfTiles = rollsOnTiles(function);
  if (isOfTiles && succeeded(found)) {
    objection = objectionToTiles(*found, statements);
    if (objection.empty())
      keepArithmetic(*found, statements);
    else
      found = failure();
  }
  auto isOfLoop = [&](const RecordedStep &entry) {
    return entry.step.getRolledLoop().empty() && llvm::is_contained(entry.step.namedLoops(), found->loop);
  };
  auto formsTiles = [&](const RecordedStep &entry) {
    return entry.step.getAbstractAttribute().getName() == "lacis.tensorize" && isOfLoop(entry);
  };
  if (succeeded(found)) { // what a step makes of the loop itself are tiles
    found->readsInPlace = isOfTiles || llvm::any_of(*steps, isOfLoop);
    found->isOfTiles = isOfTiles || llvm::any_of(*steps, formsTiles);
  }
  if (succeeded(found) && found->readsInPlace)
    found->layout = layoutOfTiles(*found);
  bool isAsked = false;
  for (const RecordedStep &entry : *steps) {
    StringRef loop = entry.step.getRolledLoop(), tensor = entry.step.getKeptTensor();
    if (!entry.step.getOwnerForm(operand).empty())
      return emitError(entry.loc) << "own: '" << operand
                                  << "' is the pattern of a chain, which has no such form; roll and keep say how it runs";
    if (!loop.empty() && failed(applyRolled(entry, loop, found, objection)))
      return failure();
    if (!tensor.empty() && failed(checkKept(entry, tensor, roots, statements)))
      return failure();
    if (!tensor.empty())
      form.kept.push_back(tensor.str());
    isAsked |= !loop.empty();
    if (isAsked && !form.kept.empty())
      return emitError(entry.loc) << "keep: the loop '" << found->loop << "' that roll makes keeps no '" << form.kept[0]
                                  << "'; give one of the two steps";
  }
  if (isAsked) {
    form.rolled = *found;
  } else if (function->hasAttr("lacis.rolls") && form.kept.empty() && succeeded(found)) {
    bool isWide = function->getAttrOfType<StringAttr>("lacis.rolls").getValue() == "wide tiles";
    found->columns = isWide ? columnsOfRound(*found, statements) : kTileSide;
    form.rolled = *found;
    std::string said = found->columns == kTileSide ? "" : ", columns = " + std::to_string(found->columns);
    recordForm(function, {"#lacis.roll<loop = \"" + found->loop + "\"" + said + ">"});
  } else if (function->hasAttr("lacis.rolls") && form.kept.empty()) {
    Nest(function).remark("roll", "the statements are no one loop: " + objection);
  }
  return form;
}
