// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads and writes a sum that several nests make.
#include "RunningSum.h"

#include "OutputLoops.h"
#include "SharedRows.h"

#include "lacis/Dialect/Lacis/IR/Workspace.h"

using namespace mlir;
using namespace lacis;

RunningSum::RunningSum(linalg::GenericOp root, linalg::GenericOp first, linalg::GenericOp last, BlockArgument output)
    : root(root), first(first), last(last), output(output), tensor(output) {}

Type RunningSum::element() { return cast<RankedTensorType>(last.getResult(0).getType()).getElementType(); }

void RunningSum::prepare(OpBuilder &b, ArrayRef<Letter> letters) {
  if (element() == cast<RankedTensorType>(output.getType()).getElementType())
    return;
  SmallVector<Value> extents = llvm::map_to_vector(letters, [](const Letter &letter) { return letter.size; });
  WorkspaceOp made = makeWorkspace(b, root.getLoc(), element(), extents);
  made.setRunning(true);
  tensor = made;
}

/// The coordinates of the letters, in the order that a product's result has them.
static SmallVector<Value> inOrderOf(linalg::GenericOp product, ArrayRef<Letter> letters) {
  SmallVector<Value> place;
  for (AffineExpr expr : product.getIndexingMapsArray().back().getResults()) {
    std::string name = letterName(product, cast<AffineDimExpr>(expr).getPosition());
    place.push_back(llvm::find_if(letters, [&](const Letter &letter) { return letter.name == name; })->coordinate);
  }
  return place;
}

static SmallVector<Value> coordinatesOf(ArrayRef<Letter> letters) {
  return llvm::map_to_vector(letters, [](const Letter &letter) { return letter.coordinate; });
}

/// What a product begins with is known to add nothing.
static bool beginsNeutral(linalg::GenericOp product, Reduction kind) {
  auto fill = product.getOutputs()[0].getDefiningOp<linalg::FillOp>();
  return fill && isNeutral(kind, fill.getInputs()[0]);
}

FailureOr<Value> RunningSum::write(OpBuilder &b, Expression &expression, ArrayRef<Letter> letters, bool adds) {
  Location loc = root.getLoc();
  SmallVector<Value> place = coordinatesOf(letters);
  Reduction kind = *reductionOf(last);
  if (adds && !beginsNeutral(first, kind))
    expression.setSummed(first.getOutputs()[0], arith::ConstantOp::create(b, loc, neutralOf(kind, element())));
  FailureOr<Value> value = expression.element(b, last.getResult(0), inOrderOf(last, letters));
  if (failed(value))
    return failure();
  if (adds) {
    Value before = ReadOp::create(b, loc, element(), tensor, place, Value(), IntegerAttr());
    *value = combine(b, loc, kind, before, *value);
  }
  WriteOp::create(b, loc, *value, tensor, place, Value(), IntegerAttr());
  return value;
}

LogicalResult RunningSum::finish(OpBuilder &b, ArrayRef<Letter> letters, const llvm::StringMap<Value> &sizes) {
  Location loc = root.getLoc();
  SmallVector<Letter> own(letters);
  Expression expression(sizes);
  OpBuilder inner = b;
  SmallVector<LoopOp> loops;
  for (Letter &letter : own) {
    loops.push_back(LoopOp::create(inner, loc, {letter.name, pathOf(b.getContext(), PathKind::Phase, "finished")}, letter.size));
    loops.back().setFinishes(true);
    inner = OpBuilder::atBlockEnd(loops.back().getBlock());
    letter.coordinate = loops.back().getCoordinate();
    letter.digits = {{Digit{0, 1, 0}, letter.coordinate}};
    expression.noteDigits(letter);
  }
  SmallVector<Value> place = coordinatesOf(own);
  Value sum = ReadOp::create(inner, loc, element(), tensor, place, Value(), IntegerAttr());
  expression.setSummed(last.getResult(0), sum);
  FailureOr<Value> value = expression.element(inner, root.getResult(0), place);
  if (failed(value))
    return failure();
  WriteOp::create(inner, loc, *value, output, place, Value(), IntegerAttr());
  closeLoops(loc, loops);
  return success();
}
