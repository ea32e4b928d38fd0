// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads and prints the arguments of a level kind.
#include "lacis/Dialect/Lacis/IR/KindArguments.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace lacis;

ParseResult KindArguments::parse(AsmParser &parser) {
  if (failed(parser.parseOptionalLess()))
    return success();
  do {
    if (parseOne(parser))
      return failure();
  } while (succeeded(parser.parseOptionalComma()));
  return parser.parseGreater();
}

ParseResult KindArguments::parseOne(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  if (StringAttr name; succeeded(parser.parseOptionalSymbolName(name))) {
    symbol = FlatSymbolRefAttr::get(name);
    return success();
  }
  if (succeeded(parser.parseOptionalQuestion())) {
    arguments.push_back({"", parser.getBuilder().getI64IntegerAttr(ShapedType::kDynamic)});
    return success();
  }
  int64_t integer = 0;
  if (OptionalParseResult result = parser.parseOptionalInteger(integer); result.has_value()) {
    arguments.push_back({"", parser.getBuilder().getI64IntegerAttr(integer)});
    return *result;
  }
  StringRef name;
  Attribute value;
  if (failed(parser.parseOptionalKeyword(&name)))
    return parser.emitError(location, "expected an integer, '?', or 'name=value' as argument of a level kind");
  if (parser.parseEqual() || parser.parseAttribute(value))
    return failure();
  if (find(name))
    return parser.emitError(location) << "argument '" << name << "' is given twice";
  arguments.push_back({name.str(), value});
  return success();
}

KindArguments::Argument *KindArguments::find(StringRef name) {
  for (Argument &argument : arguments)
    if (argument.name == name)
      return &argument;
  return nullptr;
}

bool KindArguments::has(StringRef name) const { return const_cast<KindArguments *>(this)->find(name); }

std::optional<int64_t> KindArguments::takeInteger() {
  for (Argument &argument : arguments) {
    if (!argument.name.empty() || argument.taken)
      continue;
    argument.taken = true;
    return cast<IntegerAttr>(argument.value).getInt();
  }
  return std::nullopt;
}

bool KindArguments::takeFlag(StringRef name, bool otherwise) {
  Argument *argument = find(name);
  auto flag = argument ? dyn_cast<BoolAttr>(argument->value) : nullptr;
  if (!flag)
    return otherwise;
  argument->taken = true;
  return flag.getValue();
}

FlatSymbolRefAttr KindArguments::takeSymbol() { return std::exchange(symbol, {}); }

IntegerType KindArguments::takeWidth(StringRef name) {
  Argument *argument = find(name);
  auto type = argument ? dyn_cast<TypeAttr>(argument->value) : nullptr;
  auto width = type ? dyn_cast<IntegerType>(type.getValue()) : nullptr;
  if (!width)
    return IntegerType::get(context, 32);
  argument->taken = true;
  return width;
}

LogicalResult KindArguments::verifyAllTaken(StringRef kind, EmitError emitError) const {
  if (symbol)
    return emitError() << "level kind '" << kind << "' takes no argument '" << symbol << "'";
  for (const Argument &argument : arguments) {
    if (argument.taken)
      continue;
    if (!argument.name.empty())
      return emitError() << "level kind '" << kind << "' takes no argument '" << argument.name << "="
                         << argument.value << "'";
    int64_t value = cast<IntegerAttr>(argument.value).getInt();
    std::string text = ShapedType::isDynamic(value) ? "?" : std::to_string(value);
    return emitError() << "level kind '" << kind << "' takes no argument '" << text << "'";
  }
  return success();
}

void KindArguments::addInteger(int64_t value) {
  arguments.push_back({"", IntegerAttr::get(IntegerType::get(context, 64), value)});
}

void KindArguments::addFlag(StringRef name, bool value, bool otherwise) {
  if (value != otherwise)
    arguments.push_back({name.str(), BoolAttr::get(context, value)});
}

void KindArguments::addWidth(StringRef name, IntegerType type) {
  if (!type.isSignlessInteger(32))
    arguments.push_back({name.str(), TypeAttr::get(type)});
}

/// Integers first, then flags, then widths with `pos` before the others.
static unsigned rankOf(StringRef name, Attribute value) {
  if (name.empty())
    return 0;
  return isa<BoolAttr>(value) ? 1 : name == "pos" ? 2 : 3;
}

void KindArguments::print(AsmPrinter &printer) const {
  if (symbol)
    printer << '<' << symbol << '>';
  if (arguments.empty())
    return;
  SmallVector<Argument> ordered(arguments);
  llvm::stable_sort(ordered, [](const Argument &a, const Argument &b) {
    return rankOf(a.name, a.value) < rankOf(b.name, b.value);
  });
  printer << '<';
  llvm::interleaveComma(ordered, printer, [&](const Argument &argument) {
    if (!argument.name.empty())
      printer << argument.name << '=';
    auto integer = dyn_cast<IntegerAttr>(argument.value);
    if (argument.name.empty() && ShapedType::isDynamic(integer.getInt()))
      printer << '?';
    else
      printer.printAttributeWithoutType(argument.value);
  });
  printer << '>';
}

Attribute lacis::parseKindAttribute(AsmParser &parser, StringRef kind, KindFactory factory) {
  SMLoc location = parser.getCurrentLocation();
  auto emitError = [&] { return parser.emitError(location); };
  KindArguments arguments(parser.getContext());
  if (arguments.parse(parser))
    return {};
  Attribute attr = factory(parser.getContext(), arguments, emitError);
  if (!attr || failed(arguments.verifyAllTaken(kind, emitError)))
    return {};
  return attr;
}

LogicalResult lacis::verifyWidth(StringRef name, IntegerType type, EmitError emitError) {
  if (type.isSignless() && llvm::is_contained({8u, 16u, 32u, 64u}, type.getWidth()))
    return success();
  return emitError() << "'" << name << "' cannot be " << type << ": use i8, i16, i32 or i64";
}
