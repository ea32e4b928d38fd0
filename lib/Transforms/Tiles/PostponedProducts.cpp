// SPDX-License-Identifier: Apache-2.0
/// \file
/// Statements of a round whose products wait for the next: they begin beside its first ones, and are complete behind them.
#include "TileStatements.h"

using namespace mlir;
using namespace lacis;

void TileStatements::postpone(const CarriedSum &own) {
  LoopOp statement = own.statement;
  row = statement.getCoordinate();
  std::optional<Product> product = productOf(own.sum);
  if (product && product->right->uses == 1)
    later[own.tensor] = {statement, own.sum, Value(), Value(), Value()};
}

PostponedSum *TileStatements::postponedBy(LoopOp loop) {
  for (auto &[tensor, sum] : later)
    if (sum.sum == loop)
      return &sum;
  return nullptr;
}

bool TileStatements::isPostponed(LoopOp statement) {
  return llvm::any_of(later, [&](auto &each) { return each.second.statement == statement; });
}

void TileStatements::beginPostponed(OpBuilder &b) {
  for (auto &[tensor, sum] : later)
    if (sum.left && !sum.begun) {
      row = sum.statement.getCoordinate();
      sum.begun = makeMma(b, sum.sum, *productOf(sum.sum), sum.left, sum.onto);
    }
}

void TileStatements::finishPostponed(OpBuilder &b) {
  beginPostponed(b);
  for (auto &[tensor, sum] : later)
    if (sum.begun) {
      row = sum.statement.getCoordinate();
      states[tensor] =
          CompleteOp::create(b, sum.sum.getLoc(), TypeRange(sum.begun.getType()), sum.begun).getResult(0);
      release(b, *productOf(sum.sum)->right);
      sum.left = sum.onto = sum.begun = {};
    }
}
