// SPDX-License-Identifier: Apache-2.0
/// \file
/// How levels are written: digits, a colon, a kind from the registry.
#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

using namespace mlir;
using namespace lacis;

namespace {
/// The words of a kind before its arguments: `var*crd`, whichever way they were written.
struct KindWords {
  std::string extent, coordinate, written;
};
} // namespace

static const KindRegistry &registryOf(MLIRContext *context) {
  return context->getOrLoadDialect<LacisDialect>()->getKinds();
}

static FailureOr<KindWords> parseKindWords(AsmParser &parser, KindArguments &arguments) {
  const KindRegistry &registry = registryOf(parser.getContext());
  StringAttr symbol;
  if (succeeded(parser.parseOptionalSymbolName(symbol))) {
    arguments.addSymbol(FlatSymbolRefAttr::get(symbol));
    return KindWords{"kind", "kind", "@" + symbol.str()};
  }
  SMLoc location = parser.getCurrentLocation();
  StringRef word, other;
  if (failed(parser.parseOptionalKeyword(&word)))
    return parser.emitError(location, "expected a level kind");
  if (succeeded(parser.parseOptionalStar())) {
    if (parser.parseKeyword(&other))
      return failure();
    return KindWords{word.str(), other.str(), (word + "*" + other).str()};
  }
  if (const KindAlias *alias = registry.findAlias(word))
    return KindWords{alias->extent.str(), alias->coordinate.str(), word.str()};
  const Kind *kind = registry.find(word);
  bool both = kind && kind->isExtent && kind->isCoordinate;
  return KindWords{word.str(), both ? word.str() : "implicit", word.str()};
}

/// The attributes that the words name.
static LevelAttr makeLevel(MLIRContext *context, ArrayRef<Digit> digits, const KindWords &words,
                           KindArguments &arguments, EmitError emitError) {
  const KindRegistry &registry = registryOf(context);
  const Kind *extentKind = registry.find(words.extent), *coordinateKind = registry.find(words.coordinate);
  if (!extentKind || !extentKind->isExtent) {
    emitError() << "unknown level kind '" << words.extent << "'; nearest: " << registry.nearest(words.extent, false);
    return {};
  }
  if (!coordinateKind || !coordinateKind->isCoordinate) {
    emitError() << "unknown coordinate '" << words.coordinate
                << "'; nearest: " << registry.nearest(words.coordinate, true);
    return {};
  }
  auto extent = cast_or_null<ExtentInterface>(extentKind->fromArguments(context, arguments, emitError));
  if (!extent)
    return {};
  arguments.padByDefault = extent.isPadded();
  auto coordinate = words.extent == words.coordinate
                        ? cast<CoordinateInterface>(Attribute(extent))
                        : cast_or_null<CoordinateInterface>(coordinateKind->fromArguments(context, arguments, emitError));
  if (!coordinate || failed(arguments.verifyAllTaken(words.written, emitError)))
    return {};
  return LevelAttr::getChecked(emitError, context, digits, extent, coordinate);
}

LevelAttr LevelAttr::parseWith(AsmParser &parser, Names names) {
  SMLoc location = parser.getCurrentLocation();
  auto emitError = [&] { return parser.emitError(location); };
  KindArguments arguments(parser.getContext());
  if (succeeded(parser.parseOptionalKeyword("link")))
    return arguments.parse(parser)
               ? LevelAttr()
               : makeLevel(parser.getContext(), {}, {"link", "link", "link"}, arguments, emitError);
  SmallVector<Digit> digits;
  if (succeeded(parser.parseOptionalLParen())) {
    if (parseDigits(parser, names, digits) || parser.parseRParen())
      return {};
  } else {
    FailureOr<Digit> digit = parseDigit(parser, names);
    if (failed(digit))
      return {};
    digits.push_back(*digit);
  }
  if (parser.parseColon())
    return {};
  location = parser.getCurrentLocation();
  FailureOr<KindWords> words = parseKindWords(parser, arguments);
  if (failed(words) || arguments.parse(parser))
    return {};
  return makeLevel(parser.getContext(), digits, *words, arguments, emitError);
}

LevelAttr LevelAttr::getByName(MLIRContext *context, ArrayRef<Digit> digits, StringRef extent, StringRef coordinate,
                               KindArguments arguments) {
  auto emitError = [&] { return mlir::emitError(UnknownLoc::get(context)); };
  return makeLevel(context, digits, {extent.str(), coordinate.str(), extent.str()}, arguments, emitError);
}

static KindArguments argumentsOf(LevelAttr level) {
  KindArguments arguments(level.getContext());
  level.getExtent().printArguments(arguments);
  arguments.padByDefault = level.getExtent().isPadded();
  if (Attribute(level.getExtent()) != Attribute(level.getCoordinate()))
    level.getCoordinate().printArguments(arguments);
  return arguments;
}

std::string LevelAttr::getKindName() const {
  if (FlatSymbolRefAttr symbol = argumentsOf(*this).takeSymbol())
    return "@" + symbol.getValue().str();
  std::string extent = getExtent().getMnemonic(), coordinate = getCoordinate().getMnemonic();
  if (Attribute(getExtent()) == Attribute(getCoordinate()))
    return extent;
  if (const KindAlias *alias = registryOf(getContext()).findAlias(extent, coordinate))
    return alias->name.str();
  return getCoordinate().isImplicit() ? extent : extent + "*" + coordinate;
}

void LevelAttr::printWith(AsmPrinter &printer, Names names) const {
  if (!getDigits().empty())
    printer << toString(getDigits(), names) << " : ";
  printer << getKindName();
  KindArguments arguments = argumentsOf(*this);
  arguments.takeSymbol();
  arguments.print(printer);
}

Attribute LevelAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  LevelAttr level = parseWith(parser, positionalNames(parser.getContext()));
  return level && succeeded(parser.parseGreater()) ? level : LevelAttr();
}

void LevelAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printWith(printer, positionalNames(getContext()));
  printer << '>';
}
