// SPDX-License-Identifier: Apache-2.0
/// \file
/// Bindings: coordinates that a format computes from its axes.
#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

using namespace mlir;
using namespace lacis;

static Attribute parseSlot(AsmParser &parser, StringAttr name, Names names) {
  FailureOr<unsigned> axis = failure();
  SmallVector<Digit> within;
  if (parser.parseLParen() || failed(axis = parseName(parser, names)) || parser.parseKeyword("in") ||
      parseDigits(parser, names, within) || parser.parseRParen())
    return {};
  return SlotBindingAttr::get(parser.getContext(), name, *axis, within);
}

static Attribute parseRank(AsmParser &parser, StringAttr name, Names names) {
  FailureOr<unsigned> axis = failure();
  int64_t within = 0;
  if (parser.parseLParen() || failed(axis = parseName(parser, names)) || parser.parseKeyword("by") ||
      parser.parseKeyword("nnz"))
    return {};
  if (succeeded(parser.parseOptionalKeyword("within")) && parsePositive(parser, "a number of rows", within))
    return {};
  if (parser.parseRParen())
    return {};
  return RankBindingAttr::get(parser.getContext(), name, *axis, within);
}

static Attribute parseUser(AsmParser &parser, StringAttr name, StringAttr symbol, Names names) {
  SMLoc location = parser.getCurrentLocation();
  SmallVector<unsigned> operands;
  auto parseOperand = [&]() -> ParseResult {
    FailureOr<unsigned> operand = parseName(parser, names);
    if (failed(operand))
      return failure();
    if (llvm::is_contained(operands, *operand))
      return parser.emitError(location) << "'@" << symbol.getValue() << "' has the axis '" << names[*operand].getValue()
                                        << "' twice";
    operands.push_back(*operand);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOperand))
    return {};
  if (operands.empty()) {
    parser.emitError(location) << "'@" << symbol.getValue() << "' needs an axis";
    return {};
  }
  return UserBindingAttr::get(parser.getContext(), name, FlatSymbolRefAttr::get(symbol), operands, DictionaryAttr());
}

static Attribute parseAffine(AsmParser &parser, StringAttr name, Names names) {
  FailureOr<unsigned> left = parseName(parser, names);
  if (failed(left))
    return {};
  bool plus = succeeded(parser.parseOptionalPlus());
  if (!plus && failed(parser.parseOptionalMinus())) {
    parser.emitError(parser.getCurrentLocation(), "expected '+' or '-'");
    return {};
  }
  FailureOr<unsigned> right = parseName(parser, names);
  if (failed(right))
    return {};
  return AffineBindingAttr::get(parser.getContext(), name, *left, !plus, *right);
}

Attribute lacis::parseBinding(AsmParser &parser, Names names) {
  SMLoc location = parser.getCurrentLocation();
  StringRef word;
  if (parser.parseKeyword(&word) || parser.parseEqual())
    return {};
  auto name = StringAttr::get(parser.getContext(), word);
  if (llvm::is_contained(names, name)) {
    parser.emitError(location) << "the name '" << word << "' is taken: call the binding something else";
    return {};
  }
  if (succeeded(parser.parseOptionalKeyword("slot")))
    return parseSlot(parser, name, names);
  if (succeeded(parser.parseOptionalKeyword("rank")))
    return parseRank(parser, name, names);
  if (StringAttr symbol; succeeded(parser.parseOptionalSymbolName(symbol)))
    return parseUser(parser, name, symbol, names);
  return parseAffine(parser, name, names);
}

//===- What they say ------------------------------------------------------===//

void AffineBindingAttr::printValue(AsmPrinter &printer, Names names) const {
  printer << names[getLeft()].getValue() << (getMinus() ? " - " : " + ") << names[getRight()].getValue();
}

SmallVector<unsigned> AffineBindingAttr::getOperands() const { return {getLeft(), getRight()}; }

SmallVector<unsigned> AffineBindingAttr::determines(ArrayRef<bool> known) const {
  if (known[getLeft()] == known[getRight()])
    return {};
  return {known[getLeft()] ? getRight() : getLeft()};
}

void SlotBindingAttr::printValue(AsmPrinter &printer, Names names) const {
  printer << "slot(" << names[getAxis()].getValue() << " in ";
  llvm::interleaveComma(getWithin(), printer, [&](const Digit &digit) { printer << toString(digit, names); });
  printer << ')';
}

SmallVector<unsigned> SlotBindingAttr::getOperands() const { return {getAxis()}; }

void RankBindingAttr::printValue(AsmPrinter &printer, Names names) const {
  printer << "rank(" << names[getAxis()].getValue() << " by nnz";
  if (getWithin())
    printer << " within " << getWithin();
  printer << ')';
}

SmallVector<unsigned> RankBindingAttr::getOperands() const { return {getAxis()}; }

SmallVector<unsigned> RankBindingAttr::determines(ArrayRef<bool> known) const { return {getAxis()}; }

void UserBindingAttr::printValue(AsmPrinter &printer, Names names) const {
  printer << getSymbol() << '(';
  llvm::interleaveComma(getNames(), printer, [&](unsigned name) { printer << names[name].getValue(); });
  printer << ')';
}

SmallVector<unsigned> UserBindingAttr::getOperands() const { return SmallVector<unsigned>(getNames()); }

SmallVector<unsigned> UserBindingAttr::determines(ArrayRef<bool> known) const { return getOperands(); }
