// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads and prints digits of axes.
#include "lacis/Dialect/Lacis/IR/Digit.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringAttr> lacis::positionalNames(MLIRContext *context) {
  SmallVector<StringAttr> names;
  for (unsigned n = 0; n < 64; ++n)
    names.push_back(StringAttr::get(context, "d" + Twine(n)));
  return names;
}

std::string lacis::toString(const Digit &digit, Names names) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (digit.axis < names.size())
    os << names[digit.axis].getValue();
  else
    os << 'd' << digit.axis;
  if (digit.div != 1)
    os << " floordiv " << digit.div;
  if (digit.mod != 0)
    os << " mod " << digit.mod;
  return text;
}

std::string lacis::toString(ArrayRef<Digit> digits, Names names) {
  std::string text;
  for (const Digit &digit : digits)
    text += (text.empty() ? "" : ", ") + toString(digit, names);
  return digits.size() == 1 ? text : "(" + text + ")";
}

FailureOr<unsigned> lacis::parseName(AsmParser &parser, Names names) {
  SMLoc location = parser.getCurrentLocation();
  StringRef name;
  if (failed(parser.parseOptionalKeyword(&name)))
    return parser.emitError(location, "expected the name of an axis");
  for (auto [n, known] : llvm::enumerate(names))
    if (known.getValue() == name)
      return static_cast<unsigned>(n);
  auto diagnostic = parser.emitError(location) << "no axis named '" << name << "'; the names here are ";
  llvm::interleaveComma(names, diagnostic, [&](StringAttr known) { diagnostic << "'" << known.getValue() << "'"; });
  return diagnostic;
}

ParseResult lacis::parsePositive(AsmParser &parser, StringRef what, int64_t &value) {
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseInteger(value))
    return failure();
  if (value <= 0)
    return parser.emitError(location) << what << " must be positive, not " << value;
  return success();
}

/// `(x div d) mod m` divided by `size`: the digit above, when the block divides the one around it.
static ParseResult divide(AsmParser &parser, SMLoc location, Digit &digit, int64_t size) {
  if (digit.mod % size != 0)
    return parser.emitError(location) << "a block of " << size << " does not divide the block of " << digit.mod
                                      << " around it";
  if (digit.div > std::numeric_limits<int64_t>::max() / size)
    return parser.emitError(location, "block sizes multiply beyond 64 bits");
  digit.div *= size;
  digit.mod /= size;
  return success();
}

FailureOr<Digit> lacis::parseDigit(AsmParser &parser, Names names) {
  FailureOr<unsigned> axis = parseName(parser, names);
  if (failed(axis))
    return failure();
  Digit digit{*axis, 1, 0};
  while (true) {
    bool floordiv = succeeded(parser.parseOptionalKeyword("floordiv"));
    if (!floordiv && failed(parser.parseOptionalKeyword("mod")))
      return digit;
    SMLoc location = parser.getCurrentLocation();
    int64_t size = 0;
    if (parsePositive(parser, "a block size", size))
      return failure();
    if (floordiv && divide(parser, location, digit, size))
      return failure();
    if (!floordiv && digit.mod % size != 0)
      return parser.emitError(location) << "a block of " << size << " does not divide the block of " << digit.mod
                                        << " around it";
    if (!floordiv)
      digit.mod = size;
  }
}

ParseResult lacis::parseDigits(AsmParser &parser, Names names, SmallVectorImpl<Digit> &digits) {
  do {
    FailureOr<Digit> digit = parseDigit(parser, names);
    if (failed(digit))
      return failure();
    digits.push_back(*digit);
  } while (succeeded(parser.parseOptionalComma()));
  return success();
}
