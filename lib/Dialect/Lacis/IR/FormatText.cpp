// SPDX-License-Identifier: Apache-2.0
/// \file
/// How formats are written: axes, bindings, levels, flags.
#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

using namespace mlir;
using namespace lacis;

static ParseResult parseAxes(AsmParser &parser, SmallVectorImpl<StringAttr> &axes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&]() -> ParseResult {
    StringRef name;
    if (parser.parseKeyword(&name))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  });
}

static ParseResult parseBindings(AsmParser &parser, SmallVectorImpl<StringAttr> &names,
                                 SmallVectorImpl<Attribute> &bindings) {
  if (failed(parser.parseOptionalKeyword("let")))
    return success();
  do {
    Attribute binding = parseBinding(parser, names);
    if (!binding)
      return failure();
    bindings.push_back(binding);
    names.push_back(cast<BindingInterface>(binding).getName());
  } while (succeeded(parser.parseOptionalComma()));
  return success();
}

static ParseResult parseFlags(AsmParser &parser, bool &multiset, Attribute &layout) {
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("multiset"))) {
      multiset = true;
      continue;
    }
    if (failed(parser.parseOptionalKeyword("layout")))
      return parser.emitError(parser.getCurrentLocation(), "expected 'layout = ...' or 'multiset'");
    if (parser.parseEqual() || parser.parseAttribute(layout))
      return failure();
  }
  return success();
}

Attribute FormatAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> axes;
  SmallVector<Attribute> bindings;
  SmallVector<LevelAttr> levels;
  bool multiset = false;
  Attribute layout;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parseAxes(parser, axes))
    return {};
  SmallVector<StringAttr> names(axes);
  auto parseLevel = [&]() -> ParseResult {
    LevelAttr level = LevelAttr::parseWith(parser, names);
    if (level)
      levels.push_back(level);
    return success(static_cast<bool>(level));
  };
  if (parseBindings(parser, names, bindings) || parser.parseArrow() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseLevel) ||
      parseFlags(parser, multiset, layout) || parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(location); };
  return FormatAttr::getChecked(EmitError(emitError), parser.getContext(), ArrayRef(axes), ArrayRef(bindings),
                                ArrayRef(levels), multiset, layout);
}

void FormatAttr::print(AsmPrinter &printer) const {
  SmallVector<StringAttr> names = getNames();
  printer << "<(";
  llvm::interleaveComma(getAxes(), printer, [&](StringAttr axis) { printer << axis.getValue(); });
  printer << ')';
  if (!getBindings().empty())
    printer << " let ";
  llvm::interleaveComma(getBindings(), printer, [&](Attribute attr) {
    auto binding = cast<BindingInterface>(attr);
    printer << binding.getName().getValue() << " = ";
    binding.printValue(printer, names);
  });
  printer << " -> (";
  llvm::interleaveComma(getLevels(), printer, [&](LevelAttr level) { level.printWith(printer, names); });
  printer << ')';
  if (getLayout())
    printer << ", layout = " << getLayout();
  if (getMultiset())
    printer << ", multiset";
  printer << '>';
}
