// SPDX-License-Identifier: Apache-2.0
/// \file
/// Memory functions and the half-precision conversions that LLVM calls on hosts without instructions for them.
///
/// The conversions are our own because system compiler libraries lack some of them or disagree on how they pass
/// a half. All round to nearest, ties to even.
#include "HostSymbols.h"
#include <cstdint>
#include <cstring>

using namespace lacis::runtime;

// Both 16-bit floats travel in the same register; compilers that lack a bfloat16 type carry its bits in a half.
using Half = _Float16;
using Brain = _Float16;

template <typename To, typename From> static To bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof(To));
  return result;
}

/// Rounds `value >> shift` to nearest, ties to even.
static uint64_t shiftRounded(uint64_t value, unsigned shift) {
  if (shift == 0)
    return value;
  if (shift > 63)
    return 0;
  uint64_t kept = value >> shift;
  uint64_t rest = value & ((uint64_t(1) << shift) - 1);
  uint64_t half = uint64_t(1) << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)));
}

/// The 16-bit float with `fraction` fraction bits nearest to a double.
static uint16_t narrow(double value, int fraction) {
  int bias = (1 << (14 - fraction)) - 1;
  int infinity = (1 << (15 - fraction)) - 1;
  uint64_t word = bits<uint64_t>(value);
  uint16_t sign = uint16_t(word >> 48) & 0x8000;
  int exponent = int(word >> 52) & 0x7ff;
  uint64_t mantissa = word & 0xfffffffffffff;
  if (exponent == 0x7ff)
    return sign | uint16_t(infinity << fraction) | (mantissa ? uint16_t(1 << (fraction - 1)) : 0);
  int target = exponent - 1023 + bias;
  if (target >= infinity)
    return sign | uint16_t(infinity << fraction);
  uint64_t significand = exponent ? mantissa | (uint64_t(1) << 52) : mantissa;
  if (target <= 0) // subnormal: the rounding may carry into the smallest normal number, whose bits come next
    return sign | uint16_t(shiftRounded(significand, unsigned(52 - fraction + 1 - target)));
  // A carry out of the fraction raises the exponent, up to infinity, by the same addition.
  return sign | uint16_t((uint64_t(target - 1) << fraction) + shiftRounded(significand, unsigned(52 - fraction)));
}

static float widen(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  uint32_t exponent = (half >> 10) & 0x1f;
  uint32_t mantissa = half & 0x3ff;
  if (exponent == 0x1f)
    return bits<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent != 0)
    return bits<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  float magnitude = float(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

static float extendHalf(Half value) { return widen(bits<uint16_t>(value)); }
static double extendHalfDouble(Half value) { return widen(bits<uint16_t>(value)); }
static Half truncateFloat(float value) { return bits<Half>(narrow(value, 10)); }
static Half truncateDouble(double value) { return bits<Half>(narrow(value, 10)); }
static Brain truncateFloatBrain(float value) { return bits<Brain>(narrow(value, 7)); }
static Brain truncateDoubleBrain(double value) { return bits<Brain>(narrow(value, 7)); }

llvm::ArrayRef<HostSymbol> lacis::runtime::hostSymbols() {
  static const HostSymbol table[] = {
      {"memcpy", reinterpret_cast<void *>(std::memcpy)},
      {"memmove", reinterpret_cast<void *>(std::memmove)},
      {"memset", reinterpret_cast<void *>(std::memset)},
      {"memcmp", reinterpret_cast<void *>(std::memcmp)},
      {"__extendhfsf2", reinterpret_cast<void *>(extendHalf)},
      {"__extendhfdf2", reinterpret_cast<void *>(extendHalfDouble)},
      {"__truncsfhf2", reinterpret_cast<void *>(truncateFloat)},
      {"__truncdfhf2", reinterpret_cast<void *>(truncateDouble)},
      {"__truncsfbf2", reinterpret_cast<void *>(truncateFloatBrain)},
      {"__truncdfbf2", reinterpret_cast<void *>(truncateDoubleBrain)},
  };
  return table;
}
