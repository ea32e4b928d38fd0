// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sizes of a launch as code of the kernel.
#include "EmitSize.h"
#include "Addressing.h"

using namespace mlir;
using namespace lacis;

Value lacis::emitSize(OpBuilder &b, Location loc, func::FuncOp kernel, SizeAttr size) {
  auto constant = [&](int64_t value) -> Value { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value)); };
  auto parts = llvm::map_to_vector(size.getOf(), [&](SizeAttr part) { return emitSize(b, loc, kernel, part); });
  switch (size.getKind()) {
  case SizeKind::Constant:
    return constant(size.getNumber());
  case SizeKind::Argument:
    return castInteger(b, loc, kernel.getArgument(size.getNumber()), b.getI64Type());
  case SizeKind::Product: {
    Value product = parts[0];
    for (Value factor : ArrayRef(parts).drop_front())
      product = arith::MulIOp::create(b, loc, product, factor);
    return product;
  }
  case SizeKind::Sum: {
    Value sum = parts[0];
    for (Value part : ArrayRef(parts).drop_front())
      sum = arith::AddIOp::create(b, loc, sum, part);
    return arith::AddIOp::create(b, loc, sum, constant(size.getNumber()));
  }
  case SizeKind::Min:
    return arith::MinUIOp::create(b, loc, parts[0], parts[1]);
  case SizeKind::CeilDiv:
    return arith::CeilDivUIOp::create(b, loc, parts[0], constant(size.getNumber()));
  case SizeKind::Within: {
    auto compare = [&](arith::CmpIPredicate predicate, int64_t limit) {
      return arith::CmpIOp::create(b, loc, predicate, parts[0], constant(limit)).getResult();
    };
    Value holds = compare(arith::CmpIPredicate::sgt, size.getNumber());
    if (size.getUpto() >= 0)
      holds = arith::AndIOp::create(b, loc, holds, compare(arith::CmpIPredicate::sle, size.getUpto()));
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), holds);
  }
  }
  llvm_unreachable("every kind is above");
}

Value lacis::emitMatrixNumber(OpBuilder &b, Location loc, func::FuncOp kernel, ArrayAttr shape, ValueRange indices) {
  Value number = castInteger(b, loc, indices[0], b.getI64Type());
  for (size_t axis = 1; axis + 2 < shape.size(); ++axis) {
    number = arith::MulIOp::create(b, loc, number, emitSize(b, loc, kernel, cast<SizeAttr>(shape[axis])));
    number = arith::AddIOp::create(b, loc, number, castInteger(b, loc, indices[axis], b.getI64Type()));
  }
  return number;
}

Value lacis::emitOffset(OpBuilder &b, Location loc, func::FuncOp kernel, ArrayAttr strides, ValueRange indices) {
  Value offset;
  for (auto [index, stride] : llvm::zip(indices.drop_back(2), strides.getAsRange<SizeAttr>())) {
    Value wide = castInteger(b, loc, index, b.getI64Type());
    Value own = arith::MulIOp::create(b, loc, wide, emitSize(b, loc, kernel, stride));
    offset = offset ? arith::AddIOp::create(b, loc, offset, own).getResult() : own;
  }
  return offset;
}
