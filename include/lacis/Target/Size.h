// SPDX-License-Identifier: Apache-2.0
/// \file
/// A size that a launch computes, as an artifact holds it: the twin of the attribute `#lacis.size`, without MLIR.
#ifndef LACIS_TARGET_SIZE_H
#define LACIS_TARGET_SIZE_H

#include "llvm/ADT/ArrayRef.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lacis {

struct Size {
  enum class Kind { Constant, Argument, Product, Sum, Min, CeilDiv, Within };

  Kind kind = Kind::Constant;
  int64_t number = 1;   // the constant; which argument; what is added; the divisor; what a condition is above
  int64_t upto = -1;    // what a condition is not above; -1: no limit
  std::vector<Size> of; // the factors; what is added up, compared, divided or looked at

  static Size constant(int64_t number) { return {Kind::Constant, number, -1, {}}; }
  static Size argument(int64_t number) { return {Kind::Argument, number, -1, {}}; }
  static Size product(std::vector<Size> factors) { return {Kind::Product, 1, -1, std::move(factors)}; }
  static Size sum(Size whole, int64_t more) { return {Kind::Sum, more, -1, {std::move(whole)}}; }
  static Size sum(std::vector<Size> parts, int64_t more) { return {Kind::Sum, more, -1, std::move(parts)}; }
  static Size min(std::vector<Size> parts) { return {Kind::Min, 1, -1, std::move(parts)}; }
  static Size ceilDiv(Size whole, int64_t by) { return {Kind::CeilDiv, by, -1, {std::move(whole)}}; }
  static Size within(Size whole, int64_t above, int64_t upto) { return {Kind::Within, above, upto, {std::move(whole)}}; }

  /// The size where argument n is `values[n]`. A condition is 1 where it holds, else 0.
  int64_t evaluate(llvm::ArrayRef<uint64_t> values) const {
    switch (kind) {
    case Kind::Constant:
      return number;
    case Kind::Argument:
      return int64_t(values[number]);
    case Kind::Sum: {
      int64_t sum = number;
      for (const Size &part : of)
        sum += part.evaluate(values);
      return sum;
    }
    case Kind::Min: {
      int64_t least = of[0].evaluate(values);
      for (const Size &part : of)
        least = std::min(least, part.evaluate(values));
      return least;
    }
    case Kind::CeilDiv:
      return (of[0].evaluate(values) + number - 1) / number;
    case Kind::Within: {
      int64_t whole = of[0].evaluate(values);
      return whole > number && (upto < 0 || whole <= upto);
    }
    case Kind::Product:
      break;
    }
    int64_t product = 1;
    for (const Size &factor : of) {
      product *= factor.evaluate(values);
      if (product == 0) // conditions come first
        return 0;
    }
    return product;
  }
};

} // namespace lacis

#endif // LACIS_TARGET_SIZE_H
