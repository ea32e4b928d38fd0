// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums of formats, and the rules that say which entry goes where.
#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

using namespace mlir;
using namespace lacis;

//===- One test -----------------------------------------------------------===//

static ParseResult parseTerm(AsmParser &parser, Names names, StringRef &term, SmallVectorImpl<Digit> &digits) {
  if (succeeded(parser.parseOptionalKeyword("nnz"))) {
    term = "nnz";
    return failure(parser.parseLParen() || parseDigits(parser, names, digits) || parser.parseRParen());
  }
  bool slot = succeeded(parser.parseOptionalKeyword("slot"));
  term = slot ? "slot" : "digit";
  if (slot && parser.parseLParen())
    return failure();
  FailureOr<Digit> digit = parseDigit(parser, names);
  if (failed(digit))
    return failure();
  digits.push_back(*digit);
  if (!slot)
    return success();
  if (parser.parseKeyword("in") || failed(digit = parseDigit(parser, names)))
    return failure();
  digits.push_back(*digit);
  return parser.parseRParen();
}

CompareAttr CompareAttr::parseWith(AsmParser &parser, Names names) {
  Builder b(parser.getContext());
  if (succeeded(parser.parseOptionalKeyword("fits")))
    return get(b.getContext(), b.getStringAttr("fits"), {}, b.getStringAttr(""), 0);
  StringRef term, comparison;
  SmallVector<Digit> digits;
  int64_t value = 0;
  if (parseTerm(parser, names, term, digits))
    return {};
  if (failed(parser.parseOptionalKeyword(&comparison, {"lt", "ge", "eq"}))) {
    parser.emitError(parser.getCurrentLocation(), "expected 'lt', 'ge' or 'eq'");
    return {};
  }
  if (parser.parseInteger(value))
    return {};
  return get(b.getContext(), b.getStringAttr(term), digits, b.getStringAttr(comparison), value);
}

void CompareAttr::printWith(AsmPrinter &printer, Names names) const {
  StringRef term = getTerm().getValue();
  ArrayRef<Digit> digits = getDigits();
  if (isFits()) {
    printer << "fits";
    return;
  }
  if (term == "slot") {
    printer << "slot(" << toString(digits[0], names) << " in " << toString(digits[1], names) << ')';
  } else if (term == "nnz") {
    printer << "nnz(";
    llvm::interleaveComma(digits, printer, [&](const Digit &digit) { printer << toString(digit, names); });
    printer << ')';
  } else {
    printer << toString(digits[0], names);
  }
  printer << ' ' << getComparison().getValue() << ' ' << getValue();
}

Attribute CompareAttr::parse(AsmParser &parser, Type) {
  parser.emitError(parser.getCurrentLocation(), "a rule is written inside '#lacis.sum'");
  return {};
}

void CompareAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printWith(printer, {});
  printer << '>';
}

//===- The sum ------------------------------------------------------------===//

/// `fits and nnz(i) lt 8`
static ArrayAttr parseRule(AsmParser &parser, Names names) {
  SmallVector<Attribute> tests;
  do {
    CompareAttr test = CompareAttr::parseWith(parser, names);
    if (!test)
      return {};
    tests.push_back(test);
  } while (succeeded(parser.parseOptionalKeyword("and")));
  return ArrayAttr::get(parser.getContext(), tests);
}

Attribute SumAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<FormatAttr> formats;
  SmallVector<Attribute> predicates;
  SMLoc location = parser.getCurrentLocation();
  auto parsePart = [&]() -> ParseResult {
    StringRef name;
    FormatAttr format;
    ArrayAttr predicate = parser.getBuilder().getArrayAttr({}); // no test: what is left
    if (parser.parseKeyword(&name) || parser.parseEqual() || parser.parseAttribute(format))
      return failure();
    if (succeeded(parser.parseOptionalKeyword("when")) && !(predicate = parseRule(parser, format.getNames())))
      return failure();
    names.push_back(StringAttr::get(parser.getContext(), name));
    formats.push_back(format);
    predicates.push_back(predicate);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parsePart))
    return {};
  auto emitError = [&] { return parser.emitError(location); };
  return SumAttr::getChecked(EmitError(emitError), parser.getContext(), ArrayRef(names), ArrayRef(formats),
                             ArrayRef(predicates));
}

void SumAttr::print(AsmPrinter &printer) const {
  printer << '<';
  for (unsigned n = 0; n < getNames().size(); ++n) {
    printer << (n ? ", " : "") << getNames()[n].getValue() << " = " << getFormats()[n];
    auto rule = cast<ArrayAttr>(getPredicates()[n]);
    if (rule.empty())
      continue;
    printer << " when ";
    llvm::interleave(
        rule, printer,
        [&](Attribute test) { cast<CompareAttr>(test).printWith(printer, getFormats()[n].getNames()); }, " and ");
  }
  printer << '>';
}

/// A part that is not the last says what it takes; `fits` needs room to run out of.
static LogicalResult verifyRule(EmitError emitError, StringRef name, FormatAttr format, Attribute predicate, bool last) {
  auto rule = cast<ArrayAttr>(predicate);
  if (last && !rule.empty())
    return emitError() << "the last part '" << name << "' takes what is left: leave its rule out";
  if (!last && rule.empty())
    return emitError() << "part '" << name << "' needs a rule, for instance 'when fits'; only the last takes the rest";
  bool fits = llvm::any_of(rule, [](Attribute test) { return cast<CompareAttr>(test).isFits(); });
  bool capacity =
      llvm::any_of(format.getLevels(), [](LevelAttr level) { return level.getExtent().hasCapacity(); });
  if (fits && !capacity)
    return emitError() << "part '" << name << "' has room for every entry, so 'fits' says nothing: "
                       << "put it last, or use a level with a width such as 'packed<32>'";
  return success();
}

/// Entries that share one pattern go to one part, whatever their coordinates in the batch.
static LogicalResult verifyBatch(EmitError emitError, StringRef name, FormatAttr format, Attribute predicate) {
  auto rule = cast<ArrayAttr>(predicate);
  for (LevelAttr level : format.getLevels().take_front(format.getNumBatchLevels()))
    for (const Digit &shared : level.getDigits())
      for (CompareAttr test : rule.getAsRange<CompareAttr>())
        if (llvm::any_of(test.getDigits(), [&](Digit digit) { return digit.axis == shared.axis; }))
          return emitError() << "the rule of part '" << name << "' looks at '"
                             << format.getAxes()[shared.axis].getValue() << "', whose coordinates share one pattern";
  return success();
}

LogicalResult SumAttr::verify(EmitError emitError, ArrayRef<StringAttr> names, ArrayRef<FormatAttr> formats,
                              ArrayRef<Attribute> predicates) {
  if (names.empty() || names.size() != formats.size() || names.size() != predicates.size())
    return emitError() << "a sum needs at least one part";
  for (unsigned n = 0; n < names.size(); ++n) {
    StringRef name = names[n].getValue();
    FormatAttr format = formats[n], first = formats.front();
    if (llvm::is_contained(names.take_front(n), names[n]))
      return emitError() << "part '" << name << "' is there twice";
    if (format.getAxes().size() != first.getAxes().size())
      return emitError() << "part '" << name << "' has " << format.getAxes().size() << " axes, part '"
                         << names.front().getValue() << "' has " << first.getAxes().size();
    if (format.getAxes() != first.getAxes())
      return emitError() << "part '" << name << "' names its axes otherwise than part '" << names.front().getValue()
                         << "': use the same names in the same order";
    if (format.getLevels().take_front(format.getNumBatchLevels()) !=
        first.getLevels().take_front(first.getNumBatchLevels()))
      return emitError() << "part '" << name << "' has values for another batch than part '" << names.front().getValue()
                         << "': begin all parts with the same levels of kind 'batch'";
    if (failed(verifyRule(emitError, name, format, predicates[n], n + 1 == names.size())) ||
        failed(verifyBatch(emitError, name, format, predicates[n])))
      return failure();
  }
  return success();
}

LogicalResult SumAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType, EmitError emitError) const {
  for (FormatAttr format : getFormats())
    if (failed(format.verifyEncoding(shape, elementType, emitError)))
      return failure();
  return success();
}
