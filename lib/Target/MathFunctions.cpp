// SPDX-License-Identifier: Apache-2.0
/// \file
/// Transcendental functions as straight-line arithmetic on scalars or vectors of f32 or f64.
#include "MathFunctions.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace lacis;
using namespace mlir;
using arith::CmpFPredicate;

/// Coefficients, lowest power first. The series are Taylor's; those of erf and tanh interpolate at Chebyshev nodes.
static constexpr double log2e = 1.4426950408889634074;
static constexpr double ln2 = 0.69314718055994530942;
static constexpr double log10Of2 = 0.30102999566398119521;
static constexpr double log10e = 0.43429448190325182765;

// (exp(r) - 1 - r) / r^2
static constexpr double expSeries[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                                       1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                                       1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
// (atanh(s) / s - 1) / s^2 in s^2
static constexpr double atanhSeries[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                                         1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
// (tanh(x) / x - 1) / x^2 in x^2, |x| <= 1/2, within 2^-18
static constexpr double tanhSmall[] = {-0.33332411016108267, 0.13266552698486825, -0.0466142106079689012};
// erf(x) / x in x^2, |x| <= 1
static constexpr double erfSmallSingle[] = {1.12837916584835095,     -0.37612626666720331,   0.112835947151602177,
                                            -0.0268542120106264124,  0.00518908742343397399, -0.000801686428716586953,
                                            0.0000787587506268548834};
static constexpr double erfSmallDouble[] = {
    1.12837916709551257,    -0.376126389031835404,    0.112837916709450063,    -0.0268661706432377704,
    0.00522397760711642273, -0.000854832597538969208, 0.000120552949048397079, -0.0000149247369074196603,
    1.64474247033173624e-6, -1.62084838018717059e-7,  1.37200645467776856e-8,  -7.79589882700214224e-10};
// log(1 - erf(x)) in x - 2.5, 1 <= x <= 4
static constexpr double erfLargeSingle[] = {
    -7.80681527272726436,     -5.35268067422448718,      -0.943893703610650721,
    -0.0108585416428968249,   0.00216530354916251969,    -0.000420122523541289456,
    0.0000772913761538461934, -0.0000133150143973169079, 1.63715141459364356e-6};
// log(1 - erf(x)) in x - 3.5, 1 <= x <= 6
static constexpr double erfLargeDouble[] = {
    -14.1124374021481738,     -7.26609958836519067,     -0.966753054742230149,    -0.00522565822194286061,
    0.000873687323640823716,  -0.000147297774887817438, 0.000024386373538371928,  -3.8895571774332908e-6,
    5.85614342021468573e-7,   -8.0693009210598874e-8,   9.53166232456755978e-9,   -7.7490982160991445e-10,
    -2.47979619273135327e-11, 3.06579974706522549e-11,  -9.18163254922417323e-12, 2.05374382433180993e-12,
    -3.93655553611787059e-13, 6.73265894390408242e-14,  -8.93331293903663731e-15, 5.18112696321671019e-16,
    -2.37276178676315808e-17, 2.07184957445762539e-17,  7.95415950552728652e-18,  -5.09527760266909521e-18,
    6.32552058871849272e-19};

MathFunctions::MathFunctions(OpBuilder &builder, Location location, Type type, ApproximateExp2 native)
    : builder(builder), location(location), type(type), native(native) {
  isDouble = getElementTypeOrSelf(type).isF64();
  mantissa = isDouble ? 52 : 23;
  bias = isDouble ? 1023 : 127;
  Type element = builder.getIntegerType(isDouble ? 64 : 32);
  auto vector = dyn_cast<VectorType>(type);
  integerType = vector ? Type(vector.clone(element)) : element;
}

//===- words --------------------------------------------------------------===//

Value MathFunctions::constant(double value) {
  TypedAttr scalar = builder.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    scalar = DenseElementsAttr::get(vector, Attribute(scalar));
  return arith::ConstantOp::create(builder, location, scalar);
}

Value MathFunctions::integer(int64_t value) {
  TypedAttr scalar = builder.getIntegerAttr(getElementTypeOrSelf(integerType), value);
  if (auto vector = dyn_cast<VectorType>(integerType))
    scalar = DenseElementsAttr::get(vector, Attribute(scalar));
  return arith::ConstantOp::create(builder, location, scalar);
}

Value MathFunctions::compare(CmpFPredicate predicate, Value a, double b) {
  return arith::CmpFOp::create(builder, location, predicate, a, constant(b));
}

Value MathFunctions::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(builder, location, condition, a, b);
}

/// NaN passes through both limits.
Value MathFunctions::atMost(Value x, double limit) {
  return select(compare(CmpFPredicate::OGT, x, limit), constant(limit), x);
}

Value MathFunctions::atLeast(Value x, double limit) {
  return select(compare(CmpFPredicate::OLT, x, limit), constant(limit), x);
}

Value MathFunctions::polynomial(Value x, ArrayRef<double> coefficients) {
  Value result = constant(coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    result = add(mul(result, x), constant(coefficient));
  return result;
}

Value MathFunctions::powerOfTwo(Value exponent) {
  Value biased = arith::AddIOp::create(builder, location, exponent, integer(bias));
  return number(arith::ShLIOp::create(builder, location, biased, integer(mantissa)));
}

//===- exponentials -------------------------------------------------------===//

/// The high part of ln 2 has so few bits that n times it is exact.
MathFunctions::Reduced MathFunctions::reduceByLog2(Value x) {
  Value magic = constant(1.5 * std::ldexp(1.0, mantissa)); // adding it rounds to an integer, found in the low bits
  Value shifted = add(mul(x, constant(log2e)), magic);
  Value n = sub(shifted, magic);
  double high = isDouble ? 0.6931471803691238 : 0.693115234375;
  double low = isDouble ? 1.9082149292705878e-10 : 3.1946184945309417e-05;
  Value rest = sub(sub(x, mul(n, constant(high))), mul(n, constant(low)));
  return {arith::SubIOp::create(builder, location, bits(shifted), bits(magic)), rest};
}

Value MathFunctions::expm1OfRest(Value rest) {
  ArrayRef<double> series(expSeries);
  Value tail = polynomial(rest, isDouble ? series : series.take_front(6));
  return add(rest, mul(mul(rest, rest), tail));
}

/// In two factors, so that results below the smallest normal number round once and overflow is infinity.
Value MathFunctions::scaleExp(const Reduced &reduced) {
  Value half = arith::ShRSIOp::create(builder, location, reduced.integer, integer(1));
  Value other = arith::SubIOp::create(builder, location, reduced.integer, half);
  Value power = add(constant(1), expm1OfRest(reduced.rest));
  return mul(mul(power, powerOfTwo(half)), powerOfTwo(other));
}

Value MathFunctions::exp(Value x) {
  return scaleExp(reduceByLog2(atLeast(atMost(x, isDouble ? 710 : 89), isDouble ? -746 : -104)));
}

Value MathFunctions::exp2(Value x) {
  x = atLeast(atMost(x, isDouble ? 1025 : 129), isDouble ? -1080 : -155);
  Value magic = constant(1.5 * std::ldexp(1.0, mantissa));
  Value shifted = add(x, magic);
  Value rest = mul(sub(x, sub(shifted, magic)), constant(ln2));
  return scaleExp({arith::SubIOp::create(builder, location, bits(shifted), bits(magic)), rest});
}

/// 2 * (h * p + (h - 1/2)) with h = 2^(n-1): exact around zero, no early overflow.
Value MathFunctions::expm1(Value x) {
  Reduced reduced = reduceByLog2(atLeast(atMost(x, isDouble ? 710 : 89), isDouble ? -60 : -40));
  Value p = expm1OfRest(reduced.rest);
  Value h = powerOfTwo(arith::SubIOp::create(builder, location, reduced.integer, integer(1)));
  Value result = mul(add(mul(h, p), sub(h, constant(0.5))), constant(2));
  return select(compare(CmpFPredicate::OEQ, x, 0), x, result); // keeps -0
}

/// expm1(2|x|) / (expm1(2|x|) + 2), with the sign of x.
Value MathFunctions::tanh(Value x) {
  Value magnitude = atMost(math::AbsFOp::create(builder, location, x), isDouble ? 20 : 10);
  Value e = expm1(add(magnitude, magnitude));
  return math::CopySignOp::create(builder, location, div(e, add(e, constant(2))), x);
}

/// A polynomial up to 1, beyond it 1 - exp(polynomial).
Value MathFunctions::erf(Value x) {
  Value magnitude = atMost(math::AbsFOp::create(builder, location, x), isDouble ? 6 : 4);
  ArrayRef<double> smallSeries = isDouble ? ArrayRef<double>(erfSmallDouble) : ArrayRef<double>(erfSmallSingle);
  ArrayRef<double> largeSeries = isDouble ? ArrayRef<double>(erfLargeDouble) : ArrayRef<double>(erfLargeSingle);
  Value small = mul(magnitude, polynomial(mul(magnitude, magnitude), smallSeries));
  Value centred = sub(magnitude, constant(isDouble ? 3.5 : 2.5));
  Value large = sub(constant(1), exp(polynomial(centred, largeSeries)));
  Value isSmall = compare(CmpFPredicate::OLE, magnitude, 1);
  return math::CopySignOp::create(builder, location, select(isSmall, small, large), x);
}

Value MathFunctions::erfc(Value x) { return sub(constant(1), erf(x)); }

//===- approximations -----------------------------------------------------===//

Value MathFunctions::approximateExp2(Value x) {
  if (native == ApproximateExp2::Expanded)
    return exp2(x);
  return math::Exp2Op::create(builder, location, x, arith::FastMathFlags::afn);
}

/// A polynomial up to 1/2, beyond it (1 - e) / (1 + e) of e = exp(-2|x|).
Value MathFunctions::approximateTanh(Value x) {
  Value square = mul(x, x), magnitude = math::AbsFOp::create(builder, location, x);
  Value small = add(x, mul(mul(x, square), polynomial(square, tanhSmall)));
  Value e = approximateExp2(mul(magnitude, constant(-2 * log2e)));
  Value quotient = arith::DivFOp::create(builder, location, sub(constant(1), e), add(constant(1), e),
                                         arith::FastMathFlags::afn);
  Value large = math::CopySignOp::create(builder, location, quotient, x);
  return select(compare(CmpFPredicate::OLE, magnitude, 0.5), small, large);
}

//===- logarithms ---------------------------------------------------------===//

MathFunctions::Split MathFunctions::split(Value x) {
  int lift = isDouble ? 54 : 25; // makes subnormal numbers normal
  double smallest = std::ldexp(1.0, 1 - bias);
  Value isTiny = compare(CmpFPredicate::OLT, x, smallest);
  Value lifted = select(isTiny, mul(x, constant(std::ldexp(1.0, lift))), x);
  double root = std::sqrt(0.5);
  int64_t rootBits = isDouble ? llvm::bit_cast<int64_t>(root) : llvm::bit_cast<int32_t>(float(root));
  Value offset = arith::SubIOp::create(builder, location, bits(lifted), integer(rootBits));
  Value exponent = arith::ShRSIOp::create(builder, location, offset, integer(mantissa));
  Value low = arith::AndIOp::create(builder, location, offset, integer((int64_t(1) << mantissa) - 1));
  Value fraction = sub(number(arith::AddIOp::create(builder, location, low, integer(rootBits))), constant(1));
  Value asNumber = arith::SIToFPOp::create(builder, location, type, exponent);
  return {sub(asNumber, select(isTiny, constant(lift), constant(0))), fraction};
}

/// log(1 + f) = 2 atanh(f / (2 + f)) = f - f^2/2 + s (f^2/2 + 2 s^2 R(s^2)), which keeps f exact.
Value MathFunctions::logOfFraction(Value f) {
  Value s = div(f, add(constant(2), f));
  Value z = mul(s, s);
  ArrayRef<double> series(atanhSeries);
  Value tail = mul(add(z, z), polynomial(z, isDouble ? series : series.take_front(4)));
  Value halfSquare = mul(mul(f, f), constant(0.5));
  return sub(f, sub(halfSquare, mul(s, add(halfSquare, tail))));
}

Value MathFunctions::logSpecials(Value x, Value result) {
  double infinity = std::numeric_limits<double>::infinity();
  result = select(compare(CmpFPredicate::OEQ, x, 0), constant(-infinity), result);
  result = select(compare(CmpFPredicate::OLT, x, 0), constant(std::numeric_limits<double>::quiet_NaN()), result);
  result = select(compare(CmpFPredicate::OEQ, x, infinity), x, result);
  return select(compare(CmpFPredicate::UNO, x, 0), x, result);
}

Value MathFunctions::log(Value x) {
  Split parts = split(x);
  double high = isDouble ? 0.6931471803691238 : 0.693115234375;
  double low = isDouble ? 1.9082149292705878e-10 : 3.1946184945309417e-05;
  Value small = add(logOfFraction(parts.fraction), mul(parts.exponent, constant(low)));
  return logSpecials(x, add(mul(parts.exponent, constant(high)), small));
}

Value MathFunctions::log2(Value x) {
  Split parts = split(x);
  return logSpecials(x, add(parts.exponent, mul(logOfFraction(parts.fraction), constant(log2e))));
}

Value MathFunctions::log10(Value x) {
  Split parts = split(x);
  Value scaled = mul(logOfFraction(parts.fraction), constant(log10e));
  return logSpecials(x, add(mul(parts.exponent, constant(log10Of2)), scaled));
}

/// log(u) with u = 1 + x, and the part of x that the sum lost.
Value MathFunctions::log1p(Value x) {
  Value u = add(constant(1), x);
  Value lost = div(sub(x, sub(u, constant(1))), u);
  Value isNumber = arith::CmpFOp::create(builder, location, CmpFPredicate::ORD, lost, lost);
  Value result = add(log(u), select(isNumber, lost, constant(0)));
  return select(compare(CmpFPredicate::OEQ, x, 0), x, result); // keeps -0
}
