// SPDX-License-Identifier: Apache-2.0
/// \file
/// Numbers of 16 bits, two neighbours in a register.
#include "Halves.h"

#include "WarpInstructions.h"

using namespace mlir;
using namespace lacis;

Value lacis::twiceInWord(OpBuilder &b, Location loc, Value number) {
  Value half = arith::BitcastOp::create(b, loc, b.getI16Type(), number);
  Value word = arith::ExtUIOp::create(b, loc, b.getI32Type(), half);
  return arith::OrIOp::create(b, loc, word, arith::ShLIOp::create(b, loc, word, WarpInstructions(b, loc).constant(16)));
}

Value lacis::halfOf(OpBuilder &b, Location loc, Value word, Type type, bool isHigh) {
  Value both = LLVM::BitcastOp::create(b, loc, VectorType::get(2, type), word);
  return LLVM::ExtractElementOp::create(b, loc, both, WarpInstructions(b, loc).constant(isHigh));
}

SmallVector<Value> lacis::widened(OpBuilder &b, Location loc, ValueRange words, Type type) {
  SmallVector<Value> values;
  for (Value word : words) {
    Value both = LLVM::BitcastOp::create(b, loc, VectorType::get(2, type), word);
    for (int64_t half : {0, 1}) {
      Value value = LLVM::ExtractElementOp::create(b, loc, both, WarpInstructions(b, loc).constant(half));
      values.push_back(arith::ExtFOp::create(b, loc, b.getF32Type(), value));
    }
  }
  return values;
}

arith::TruncFOp lacis::roundingOf(MapOp map) {
  Value made = map.getBody().front().getTerminator()->getOperand(0);
  auto rounding = made.getDefiningOp<arith::TruncFOp>();
  return rounding && rounding.getIn().getType().isF32() && isHalf(made.getType()) ? rounding : arith::TruncFOp();
}
