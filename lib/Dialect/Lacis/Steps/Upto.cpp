// SPDX-License-Identifier: Apache-2.0
/// \file
/// for b in n: s  -->  if n <= 8: for upto8.b in n: s  else: for b in n: s
#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> UptoStepAttr::namedLoops() const { return {getLoop()}; }

/// The function's argument and its axis that the bound of the loop is the size of.
static std::optional<std::pair<unsigned, unsigned>> sizeOf(LoopOp loop) {
  auto dim = loop.getUpper().getDefiningOp<tensor::DimOp>();
  auto argument = dim ? dyn_cast<BlockArgument>(dim.getSource()) : BlockArgument();
  std::optional<unsigned> axis = argument ? axisOf(dim) : std::nullopt;
  return axis ? std::optional(std::pair(argument.getArgNumber(), *axis)) : std::nullopt;
}

static void record(func::FuncOp function, StringRef name, std::pair<unsigned, unsigned> size, int64_t most) {
  Builder b(function.getContext());
  append(function, "lacis.cases",
         b.getDictionaryAttr({b.getNamedAttr("name", b.getStringAttr(name)),
                              b.getNamedAttr("argument", b.getI64IntegerAttr(size.first)),
                              b.getNamedAttr("axis", b.getI64IntegerAttr(size.second)),
                              b.getNamedAttr("upto", b.getI64IntegerAttr(most))}));
}

LogicalResult UptoStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> loop = nest.requireFree(getLoop(), "upto", loc);
  if (failed(loop))
    return failure();
  func::FuncOp function = nest.getFunction();
  auto size = sizeOf(*loop);
  LoopOp top = nest.mainChain().front();
  if (!size || outermostLoop(*loop) != top)
    return emitError(loc) << "upto: loop '" << getLoop() << "' is no whole letter of the main nest; its own size decides";
  std::optional<Case> rest = caseOf(top); // what the cases before leave
  if (rest && std::pair(rest->argument, rest->axis) != *size)
    return emitError(loc) << "upto: another letter than '" << getLoop() << "' has nests for small sizes already";
  if (int64_t last = rest ? rest->above : 0; getMost() <= last)
    return emitError(loc) << "upto: " << getMost() << " sizes are none that is left; " << last << " are taken";
  if (llvm::any_of(classNests(top), hasMarks))
    return emitError(loc) << "upto: loops of the nest are marked already; say it before other steps";
  bool isCopied = false;
  top->walk([&](Operation *op) {
    isCopied |= llvm::any_of(op->getOperands(), [](Value value) {
      auto workspace = value.getDefiningOp<WorkspaceOp>();
      // No tile of the nest's own, and no sum to which the nests of all sizes add.
      return workspace && !workspace.getPlace() && !workspace.getRunning();
    });
  });
  if (isCopied)
    return emitError(loc) << "upto: an operand is copied for all sizes already; say it before relayout";
  std::string name = caseName(getMost());
  SmallVector<LoopOp> nests = classNests(top); // and those of the parts that have rows to themselves
  record(function, name, *size, getMost());
  OpBuilder b(nests.front());
  PathAttr path = pathOf(getContext(), PathKind::Case, name);
  for (LoopOp from : nests)
    b.clone(*from)->walk([&](LoopOpInterface own) { own.setPathAttr(join(path, own.getPathAttr())); });
  return success();
}
