// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest over the coordinates of bindings that have the coordinates of an output's axis in another order: each once.
#include "PermutedRows.h"

#include "OwnerForm.h"

using namespace mlir;
using namespace lacis;

void PermutedRows::openLoops(OpBuilder &b, StringRef name, ArrayRef<Digit> digits, Letter &letter) {
  for (auto [rank, digit] : llvm::enumerate(digits)) {
    LoopOp loop = openLoop(b, digitName(name, rank, digits.size()), sizeOf(b, digit, letter));
    letter.digits.push_back({Digit{0, digit.div, digit.mod}, loop.getCoordinate()});
  }
}

LogicalResult PermutedRows::build(OpBuilder &b) {
  // Rows are written one by one, in no order of the output.
  cast<func::FuncOp>(output.getOwner()->getParentOp())
      .setArgAttr(output.getArgNumber(), "lacis.listed", b.getBoolAttr(false));
  for (unsigned number = 0; number < format.getBindings().size(); ++number)
    if (std::optional<unsigned> axis = permutedAxis(format, owned, number))
      orders.push_back({number, axes[*axis], Letter{axes[*axis]->name, axes[*axis]->size, {}, {}}});
  OpBuilder before = b;
  for (Letter &letter : letters) {
    Order *order = llvm::find_if(orders, [&](const Order &each) { return each.of == &letter; });
    if (order == orders.end())
      openLoops(before, letter.name, digitsOf(letter), letter);
    else
      openLoops(before, letter.name, digitsOf(format.getAxes().size() + order->number), order->own);
  }
  auto isOrdered = [&](const Letter &letter) {
    return llvm::any_of(orders, [&](const Order &each) { return each.of == &letter; });
  };
  OpBuilder inner = OpBuilder::atBlockEnd(loops.back().getBlock());
  inner = compose(inner, [&](const Letter &letter) { return !isOrdered(letter); });
  Expression expression(sizes);
  for (Order &order : orders) {
    inner = compose(inner, order.own);
    unsigned axis = std::distance(axes.begin(), llvm::find(axes, order.of));
    BoundName bound{tensor, order.number, axis, order.own.coordinate};
    order.of->coordinate = cast<BindingInterface>(format.getBindings()[order.number]).emitSolve(inner, loc, bound, {}, {});
    order.of->digits = {{Digit{0, 1, 0}, order.of->coordinate}};
    expression.setBound(tensor, order.number, order.own);
  }
  FailureOr<Value> written = write(inner, expression);
  closeLoops();
  return written;
}
