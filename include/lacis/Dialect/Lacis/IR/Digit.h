// SPDX-License-Identifier: Apache-2.0
/// \file
/// One digit of an axis, the unit that levels are made of.
#ifndef LACIS_DIALECT_LACIS_IR_DIGIT_H
#define LACIS_DIALECT_LACIS_IR_DIGIT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"

namespace lacis {

/// `(axis floordiv div) mod mod`; `mod == 0` means unbounded. An `axis` beyond the axes is a binding.
struct Digit {
  unsigned axis = 0;
  int64_t div = 1;
  int64_t mod = 0;

  bool operator==(const Digit &other) const {
    return axis == other.axis && div == other.div && mod == other.mod;
  }
  bool operator!=(const Digit &other) const { return !(*this == other); }
};

inline llvm::hash_code hash_value(const Digit &digit) {
  return llvm::hash_combine(digit.axis, digit.div, digit.mod);
}

using Names = llvm::ArrayRef<mlir::StringAttr>;

/// d0, d1, …: what axes are called where no format names them.
llvm::SmallVector<mlir::StringAttr> positionalNames(mlir::MLIRContext *context);
/// `i floordiv 16 mod 4`.
std::string toString(const Digit &digit, Names names);
/// `i`, or `(i, j)` for several.
std::string toString(llvm::ArrayRef<Digit> digits, Names names);

/// Reads a digit of one of `names`.
mlir::FailureOr<Digit> parseDigit(mlir::AsmParser &parser, Names names);
/// Reads digits separated by commas.
mlir::ParseResult parseDigits(mlir::AsmParser &parser, Names names, llvm::SmallVectorImpl<Digit> &digits);
/// Reads one of `names` and answers its place.
mlir::FailureOr<unsigned> parseName(mlir::AsmParser &parser, Names names);
/// Reads an integer that must be positive; `what` names it in messages.
mlir::ParseResult parsePositive(mlir::AsmParser &parser, llvm::StringRef what, int64_t &value);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_DIGIT_H
