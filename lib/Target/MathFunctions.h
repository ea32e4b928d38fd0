// SPDX-License-Identifier: Apache-2.0
/// \file
/// Transcendental functions as straight-line arithmetic on scalars or vectors of f32 or f64.
///
/// Errors against the exact result, in units in the last place, over all finite inputs (measured, see the tests):
/// exp, exp2, expm1, log, log2, log10, log1p, tanh below 3; erf below 4.
/// NaN stays NaN, infinities and signed zeros give what IEC 60559 asks for.
#ifndef LACIS_LIB_TARGET_MATHFUNCTIONS_H
#define LACIS_LIB_TARGET_MATHFUNCTIONS_H

#include "ConvertToLLVM.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace lacis {

/// Writes the arithmetic at a builder's place; all values have one type.
class MathFunctions {
public:
  MathFunctions(mlir::OpBuilder &builder, mlir::Location location, mlir::Type type, ApproximateExp2 native);

  mlir::Value exp(mlir::Value x);
  mlir::Value exp2(mlir::Value x);
  mlir::Value expm1(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value log2(mlir::Value x);
  mlir::Value log10(mlir::Value x);
  mlir::Value log1p(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value erfc(mlir::Value x); // 1 - erf(x), with the absolute error of erf

  /// f32 within 2^-13 of the result, as `fastmath<afn>` asks for: half types keep 11 bits.
  mlir::Value approximateExp(mlir::Value x) { return approximateExp2(mul(x, constant(1.4426950408889634))); }
  mlir::Value approximateExp2(mlir::Value x);
  mlir::Value approximateTanh(mlir::Value x);

private:
  using Value = mlir::Value;

  /// x = n * step + rest, |rest| at most half a step; n as an integer and as a number.
  struct Reduced {
    Value integer;
    Value rest;
  };
  /// x = 2^exponent * (1 + fraction), 1 + fraction between sqrt(1/2) and sqrt(2).
  struct Split {
    Value exponent;
    Value fraction;
  };

  Value constant(double value);
  Value integer(int64_t value);
  Value add(Value a, Value b) { return mlir::arith::AddFOp::create(builder, location, a, b); }
  Value sub(Value a, Value b) { return mlir::arith::SubFOp::create(builder, location, a, b); }
  Value mul(Value a, Value b) { return mlir::arith::MulFOp::create(builder, location, a, b); }
  Value div(Value a, Value b) { return mlir::arith::DivFOp::create(builder, location, a, b); }
  Value bits(Value x) { return mlir::arith::BitcastOp::create(builder, location, integerType, x); }
  Value number(Value x) { return mlir::arith::BitcastOp::create(builder, location, type, x); }
  Value compare(mlir::arith::CmpFPredicate predicate, Value a, double b);
  Value select(Value condition, Value a, Value b);
  Value atMost(Value x, double limit);
  Value atLeast(Value x, double limit);

  Value polynomial(Value x, llvm::ArrayRef<double> coefficients);
  Value powerOfTwo(Value exponent);
  Reduced reduceByLog2(Value x);
  Value expm1OfRest(Value rest);
  Value scaleExp(const Reduced &reduced);
  Split split(Value x);
  Value logOfFraction(Value fraction);
  Value logSpecials(Value x, Value result);

  mlir::OpBuilder &builder;
  mlir::Location location;
  mlir::Type type;
  mlir::Type integerType;
  ApproximateExp2 native;
  bool isDouble;
  int mantissa; // stored bits
  int bias;
};

} // namespace lacis

#endif // LACIS_LIB_TARGET_MATHFUNCTIONS_H
