// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text form and verifier of the operation that defines a level kind.
#include "lacis/Dialect/Lacis/IR/BindingOps.h"
#include "lacis/Dialect/Lacis/IR/Lacis.h"

using namespace mlir;
using namespace lacis;

#define GET_OP_CLASSES
#include "lacis/Dialect/Lacis/IR/KindOps.cpp.inc"

/// What methods take and answer, besides the state of a walk and whether a position has an entry.
static constexpr struct Method {
  StringLiteral name;
  unsigned arguments, indices;
  bool flag; // that a coordinate was found
} kMethods[] = {{"bounds", 1, 2, false}, {"open", 2, 0, false}, {"coordinate", 2, 1, false},
                {"seek", 3, 1, false},   {"find", 2, 1, true},  {"owner", 2, 1, false}};

static constexpr StringLiteral kLengths[] = {"own", "parent", "position"};

static const Method *findMethod(StringRef name) {
  const Method *found = llvm::find_if(kMethods, [&](const Method &method) { return method.name == name; });
  return found == std::end(kMethods) ? nullptr : found;
}

Block *KindOp::getMethod(StringRef name) {
  for (auto [method, body] : llvm::zip(getMethods(), getBodies()))
    if (cast<StringAttr>(method).getValue() == name)
      return &body.front();
  return nullptr;
}

/// How many values a walk carries from one position to the next.
static unsigned statesOf(KindOp kind) {
  Block *open = kind.getMethod("open");
  return open && !open->empty() ? open->back().getNumOperands() : 0;
}

DictionaryAttr KindOp::getFacts() {
  Builder b(getContext());
  unsigned states = statesOf(*this);
  Block *coordinate = getMethod("coordinate");
  bool padded = coordinate && coordinate->back().getNumOperands() > 1 + states;
  SmallVector<NamedAttribute> facts = {b.getNamedAttr("arrays", getArrays()),
                                       b.getNamedAttr("methods", getMethods()),
                                       b.getNamedAttr("ordered", b.getBoolAttr(getOrdered())),
                                       b.getNamedAttr("unique", b.getBoolAttr(getUnique())),
                                       b.getNamedAttr("fills", b.getBoolAttr(getFills())),
                                       b.getNamedAttr("padded", b.getBoolAttr(padded))};
  if (IntegerAttr count = getFixedAttr())
    facts.push_back(b.getNamedAttr("fixed", count));
  return b.getDictionaryAttr(facts);
}

//===- Text ---------------------------------------------------------------===//

static ParseResult parseArray(OpAsmParser &parser, SmallVectorImpl<Attribute> &arrays) {
  Builder &b = parser.getBuilder();
  StringRef name, length;
  IntegerType type;
  int64_t plus = 0;
  if (parser.parseKeyword(&name) || parser.parseColonType(type) || parser.parseKeyword("per") ||
      parser.parseKeyword(&length))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("plus")) && parser.parseInteger(plus))
    return failure();
  arrays.push_back(b.getDictionaryAttr(
      {b.getNamedAttr("name", b.getStringAttr(name)), b.getNamedAttr("type", TypeAttr::get(type)),
       b.getNamedAttr("per", b.getStringAttr(length)), b.getNamedAttr("plus", b.getI64IntegerAttr(plus))}));
  return success();
}

static ParseResult parseFact(OpAsmParser &parser, OperationState &result) {
  SMLoc location = parser.getCurrentLocation();
  StringRef fact;
  if (parser.parseKeyword(&fact))
    return failure();
  if (fact == "fixed") {
    int64_t count;
    if (parser.parseEqual() || parser.parseInteger(count))
      return failure();
    result.addAttribute(fact, parser.getBuilder().getI64IntegerAttr(count));
    return success();
  }
  if (!llvm::is_contained({"ordered", "unique", "fills"}, fact))
    return parser.emitError(location) << "no fact '" << fact
                                      << "' of a level kind; there are 'ordered', 'unique', 'fills' and 'fixed = n'";
  result.addAttribute(fact, parser.getBuilder().getUnitAttr());
  return success();
}

static ParseResult parseMethods(OpAsmParser &parser, OperationState &result) {
  SmallVector<Attribute> methods;
  if (parser.parseLBrace())
    return failure();
  while (failed(parser.parseOptionalRBrace())) {
    StringRef name;
    SmallVector<OpAsmParser::Argument> arguments;
    if (parser.parseKeyword(&name) || parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren))
      return failure();
    for (OpAsmParser::Argument &argument : arguments)
      argument.type = parser.getBuilder().getIndexType();
    methods.push_back(parser.getBuilder().getStringAttr(name));
    if (parser.parseRegion(*result.addRegion(), arguments))
      return failure();
  }
  result.addAttribute("methods", parser.getBuilder().getArrayAttr(methods));
  return success();
}

ParseResult KindOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<Attribute> arrays;
  if (parser.parseSymbolName(name, "sym_name", result.attributes) || parser.parseKeyword("arrays") ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] { return parseArray(parser, arrays); }))
    return failure();
  result.addAttribute("arrays", parser.getBuilder().getArrayAttr(arrays));
  if (succeeded(parser.parseOptionalKeyword("facts")) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] { return parseFact(parser, result); }))
    return failure();
  return parseMethods(parser, result);
}

void KindOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  p << " arrays(";
  llvm::interleaveComma(getArrays().getAsRange<DictionaryAttr>(), p, [&](DictionaryAttr array) {
    p << array.getAs<StringAttr>("name").getValue() << " : " << array.getAs<TypeAttr>("type").getValue() << " per "
      << array.getAs<StringAttr>("per").getValue();
    if (int64_t plus = array.getAs<IntegerAttr>("plus").getInt())
      p << " plus " << plus;
  });
  p << ')';
  SmallVector<std::string> facts;
  if (getOrdered())
    facts.push_back("ordered");
  if (getUnique())
    facts.push_back("unique");
  if (getFills())
    facts.push_back("fills");
  if (std::optional<int64_t> count = getFixed())
    facts.push_back("fixed = " + std::to_string(*count));
  if (!facts.empty())
    p << " facts(" << llvm::join(facts, ", ") << ')';
  p << " {";
  p.increaseIndent();
  for (auto [method, body] : llvm::zip(getMethods(), getBodies())) {
    p.printNewline();
    p << cast<StringAttr>(method).getValue() << '(';
    llvm::interleaveComma(body.getArguments(), p,
                          [&](BlockArgument argument) { p.printRegionArgument(argument, {}, /*omitType=*/true); });
    p << ") ";
    p.printRegion(body, /*printEntryBlockArgs=*/false);
  }
  p.decreaseIndent();
  p.printNewline();
  p << '}';
}

//===- Verifier -----------------------------------------------------------===//

static LogicalResult verifyArray(KindOp kind, Attribute attr) {
  auto array = dyn_cast<DictionaryAttr>(attr);
  auto name = array ? array.getAs<StringAttr>("name") : nullptr;
  auto type = array ? array.getAs<TypeAttr>("type") : nullptr;
  auto per = array ? array.getAs<StringAttr>("per") : nullptr;
  auto plus = array ? array.getAs<IntegerAttr>("plus") : nullptr;
  if (!name || !type || !per || !plus)
    return kind.emitOpError("an array is a record of name, type, per and plus; got ") << attr;
  auto element = dyn_cast<IntegerType>(type.getValue());
  bool isKnown = element && llvm::is_contained({8u, 16u, 32u, 64u}, element.getWidth());
  isKnown &= element && (element.isSignless() || (element.isUnsigned() && element.getWidth() < 64));
  if (!isKnown)
    return kind.emitOpError("array '") << name.getValue() << "' cannot be " << type.getValue()
                                       << ": use i8, i16, i32, i64, ui8, ui16 or ui32";
  if (!llvm::is_contained(kLengths, per.getValue()))
    return kind.emitOpError("array '") << name.getValue() << "' has no length per '" << per.getValue()
                                       << "': use 'parent', 'position' or 'own'";
  if (plus.getInt() < 0 || plus.getInt() > 1 || (plus.getInt() == 1 && per.getValue() == "position"))
    return kind.emitOpError("array '") << name.getValue() << "' cannot have " << plus.getInt() << " more elements than one "
                                       << "per " << per.getValue() << ": use 'plus 1' per parent or own";
  return success();
}

static LogicalResult verifyAnswer(KindOp kind, const Method &method, Block &body, unsigned states) {
  auto answer = dyn_cast<AnswerOp>(body.back());
  if (!answer)
    return kind.emitOpError("method '") << method.name << "' must end with 'lacis.answer'";
  bool isWalk = method.name == "coordinate", opens = method.name == "open";
  unsigned arguments = method.arguments + (isWalk ? states : 0);
  if (body.getNumArguments() != arguments || !llvm::all_of(body.getArgumentTypes(), llvm::IsaPred<IndexType>))
    return kind.emitOpError("method '") << method.name << "' takes " << arguments << " indices";
  SmallVector<Type> wanted(opens ? states : method.indices, IndexType::get(kind.getContext()));
  Type bit = IntegerType::get(kind.getContext(), 1);
  if (method.flag || (isWalk && answer.getNumOperands() > 1 + states))
    wanted.push_back(bit);
  wanted.append(isWalk ? states : 0, IndexType::get(kind.getContext()));
  if (TypeRange(answer.getOperandTypes()) != TypeRange(wanted) || wanted.empty())
    return answer.emitOpError("of method '") << method.name << "' gives " << answer.getOperandTypes() << ", not "
                                             << TypeRange(wanted);
  return success();
}

LogicalResult KindOp::verify() {
  llvm::SmallDenseSet<Attribute> names;
  for (Attribute array : getArrays()) {
    if (failed(verifyArray(*this, array)))
      return failure();
    if (auto name = cast<DictionaryAttr>(array).getAs<StringAttr>("name"); !names.insert(name).second)
      return emitOpError("array '") << name.getValue() << "' is given twice";
  }
  if (getMethods().size() != getBodies().size())
    return emitOpError("has ") << getMethods().size() << " names of methods for " << getBodies().size() << " bodies";
  for (Attribute name : getMethods())
    if (!names.insert(name).second)
      return emitOpError("'") << cast<StringAttr>(name).getValue() << "' is given twice, or names an array too";
  if (getFixed() && *getFixed() < 1)
    return emitOpError("each parent has 1 position or more, not ") << *getFixed();
  if (getFixed() && getMethod("bounds"))
    return emitOpError("says 'fixed', from which the bounds follow: leave the method 'bounds' out");
  if (!getFixed() && !getMethod("bounds"))
    return emitOpError("needs the method 'bounds'");
  if (!getMethod("coordinate"))
    return emitOpError("needs the method 'coordinate'");
  return success();
}

/// Code of indices and integers that neither reads nor writes anything but the level's own arrays.
static LogicalResult verifyPure(KindOp kind, Operation *op) {
  if (!isa<FieldOp, LevelSizeOp, AnswerOp>(op) && !isArithmetic(op))
    return op->emitError("'") << op->getName() << "' has no place in a level kind: its methods are arithmetic, 'scf' loops, "
                              << "'lacis.field' and 'lacis.level_size'";
  if (!llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndex(); }))
    return op->emitError("'") << op->getName() << "' makes what is no index and no integer; a level kind has no other values";
  auto field = dyn_cast<FieldOp>(op);
  auto isIt = [&](DictionaryAttr array) { return array.getAs<StringAttr>("name").getValue() == field.getArray(); };
  if (field && llvm::none_of(kind.getArrays().getAsRange<DictionaryAttr>(), isIt))
    return op->emitError("level kind '@") << kind.getSymName() << "' has no array '" << field.getArray() << "'";
  return success();
}

LogicalResult KindOp::verifyRegions() {
  unsigned states = statesOf(*this);
  for (auto [name, body] : llvm::zip(getMethods(), getBodies())) {
    StringRef text = cast<StringAttr>(name).getValue();
    const Method *method = findMethod(text);
    if (!method) {
      auto error = emitOpError("no method '") << text << "' of a level kind; there are ";
      llvm::interleaveComma(kMethods, error, [&](const Method &known) { error << "'" << known.name << "'"; });
      return error;
    }
    if (failed(verifyAnswer(*this, *method, body.front(), states)))
      return failure();
    WalkResult pure = body.walk([&](Operation *op) { return WalkResult(verifyPure(*this, op)); });
    if (pure.wasInterrupted())
      return failure();
  }
  return success();
}
