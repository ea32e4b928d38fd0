// SPDX-License-Identifier: Apache-2.0
/// \file
/// The half-precision conversions agree with the compiler's own, for every half and for floats at each edge.
#include "Runtime/CPU/HostCall.h"
#include "Runtime/CPU/HostSymbols.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace lacis::runtime;

namespace {

template <typename Function> Function symbol(const char *name) {
  for (const HostSymbol &entry : hostSymbols())
    if (std::strcmp(entry.name, name) == 0)
      return reinterpret_cast<Function>(entry.address);
  return nullptr;
}

/// Half bits to the value, by definition.
double valueOf(uint16_t bits, int fraction) {
  int bias = (1 << (14 - fraction)) - 1, exponent = (bits & 0x7fff) >> fraction;
  double mantissa = bits & ((1 << fraction) - 1), sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << (15 - fraction)) - 1)
    return mantissa == 0 ? sign * INFINITY : NAN;
  return exponent == 0 ? sign * std::ldexp(mantissa, 1 - bias - fraction)
                       : sign * std::ldexp(mantissa + (1 << fraction), exponent - bias - fraction);
}

template <typename To, typename From> To bits(From value) {
  To result;
  std::memcpy(&result, &value, sizeof(To));
  return result;
}

template <typename Narrow, typename Wide> void checkRounding(Narrow (*truncate)(Wide), int fraction) {
  int infinity = ((1 << (15 - fraction)) - 1) << fraction;
  for (int i = 0; i < infinity; ++i) {
    double low = valueOf(uint16_t(i), fraction);
    double high = i + 1 == infinity ? 2 * low - valueOf(uint16_t(i - 1), fraction) : valueOf(uint16_t(i + 1), fraction);
    auto middle = Wide(low + (high - low) / 2);
    EXPECT_EQ(bits<uint16_t>(truncate(Wide(low))), i);
    EXPECT_EQ(bits<uint16_t>(truncate(middle)), i + (i & 1)) << i;
    EXPECT_EQ(bits<uint16_t>(truncate(std::nextafter(middle, Wide(0)))), i) << i;
    EXPECT_EQ(bits<uint16_t>(truncate(std::nextafter(middle, std::numeric_limits<Wide>::infinity()))), i + 1) << i;
    EXPECT_EQ(bits<uint16_t>(truncate(Wide(-low))), i | 0x8000);
  }
  EXPECT_TRUE(std::isnan(valueOf(bits<uint16_t>(truncate(std::numeric_limits<Wide>::quiet_NaN())), fraction)));
  EXPECT_EQ(bits<uint16_t>(truncate(std::numeric_limits<Wide>::infinity())), infinity);
}

TEST(HostSymbols, TruncateRoundsToNearestEven) {
  checkRounding(symbol<_Float16 (*)(float)>("__truncsfhf2"), 10);
  checkRounding(symbol<_Float16 (*)(double)>("__truncdfhf2"), 10);
  checkRounding(symbol<_Float16 (*)(double)>("__truncdfbf2"), 7);
}

TEST(HostSymbols, TruncateFloatToBrain) {
  auto truncate = symbol<_Float16 (*)(float)>("__truncsfbf2");
  for (uint32_t high = 0; high < 0x7f80; ++high)
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      uint32_t word = high << 16 | low;
      uint32_t expected = (word + 0x7fff + (high & 1)) >> 16;
      EXPECT_EQ(bits<uint16_t>(truncate(bits<float>(word))), expected) << word;
    }
}

TEST(HostSymbols, ExtendIsExact) {
  auto extend = symbol<float (*)(_Float16)>("__extendhfsf2");
  for (uint32_t i = 0; i < 0x10000; ++i) {
    double expected = valueOf(uint16_t(i), 10);
    float actual = extend(bits<_Float16>(uint16_t(i)));
    EXPECT_TRUE(std::isnan(expected) ? std::isnan(actual) : actual == expected) << i;
  }
}

TEST(HostCall, PassesEveryWordInOrder) {
  static uint64_t seen[6];
  auto function = [](uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, int64_t lo,
                     int64_t hi) {
    uint64_t words[] = {a, f, g, uint64_t(lo), uint64_t(hi), b + c + d + e};
    std::memcpy(seen, words, sizeof(words));
  };
  void (*pointer)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, int64_t, int64_t) = function;
  ArgumentValues values = {1, 2, 3, 4, 5, 6, 7};
  HostRange(reinterpret_cast<HostFunction>(pointer), values).call(8, 9);
  EXPECT_EQ(std::vector<uint64_t>(seen, seen + 6), (std::vector<uint64_t>{1, 6, 7, 8, 9, 14}));
}

} // namespace
