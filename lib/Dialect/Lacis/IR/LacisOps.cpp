// SPDX-License-Identifier: Apache-2.0
/// \file
/// Builders, text form and verifiers of the loop operations.
#include "LoopMarks.h"

#include "lacis/Dialect/Lacis/IR/Lacis.h"
#include "lacis/Dialect/Lacis/IR/LacisOps.h"
#include "lacis/Dialect/Lacis/IR/Limits.h"
#include "lacis/Dialect/Lacis/IR/RowLists.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lacis;

FormatAttr lacis::formatOf(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  return type ? dyn_cast_or_null<FormatAttr>(type.getEncoding()) : nullptr;
}

//===- LoopOp -------------------------------------------------------------===//

static void markReduction(OperationState &state, std::optional<Reduction> reduce) {
  if (reduce)
    state.addAttribute("reduce", ReductionAttr::get(state.getContext(), *reduce));
}

static void nameLoop(OperationState &state, const LoopName &name) {
  state.addAttribute("letters", StringAttr::get(state.getContext(), name.letters));
  if (name.path)
    state.addAttribute("path", name.path);
}

void LoopOp::build(OpBuilder &b, OperationState &state, const LoopName &name, Value upper, ValueRange inits,
                   std::optional<Reduction> reduce) {
  OpBuilder::InsertionGuard guard(b);
  markReduction(state, reduce);
  nameLoop(state, name);
  state.addOperands(upper);
  state.addOperands(inits);
  state.addTypes(inits.getTypes());
  Block *body = b.createBlock(state.addRegion());
  body->addArgument(b.getIndexType(), state.location);
  for (Value init : inits)
    body->addArgument(init.getType(), state.location);
}

std::optional<int64_t> LoopOp::getTrip() { return getConstantIntValue(getUpper()); }

/// `"j"`, or `"j"<part "ell">`.
static void printLoopName(OpAsmPrinter &p, LoopOpInterface loop) {
  p << ' ';
  p.printString(loop.getLetters());
  if (PathAttr path = loop.getPathAttr())
    path.print(p);
}

static ParseResult parseLoopName(OpAsmParser &parser, OperationState &result) {
  std::string letters;
  if (parser.parseString(&letters))
    return failure();
  FailureOr<PathAttr> path = PathAttr::parseOptional(parser);
  if (failed(path))
    return failure();
  nameLoop(result, {letters, *path});
  return success();
}

static void printCarried(OpAsmPrinter &p, Block::BlockArgListType args, OperandRange inits) {
  if (inits.empty())
    return;
  p << " iter(";
  llvm::interleaveComma(llvm::zip(args, inits), p, [&](auto pair) {
    p.printRegionArgument(std::get<0>(pair), {}, /*omitType=*/true);
    p << " = " << std::get<1>(pair);
  });
  p << ") -> (" << inits.getTypes() << ")";
}

static ParseResult parseCarried(OpAsmParser &parser, OperationState &result,
                                SmallVectorImpl<OpAsmParser::Argument> &args) {
  if (failed(parser.parseOptionalKeyword("iter")))
    return success();
  SmallVector<OpAsmParser::Argument> carried;
  SmallVector<OpAsmParser::UnresolvedOperand> inits;
  SmallVector<Type> types;
  auto location = parser.getCurrentLocation();
  if (parser.parseAssignmentList(carried, inits) || parser.parseArrowTypeList(types))
    return failure();
  if (carried.size() != types.size())
    return parser.emitError(location, "expected one type for each carried value");
  for (auto [arg, type] : llvm::zip(carried, types))
    arg.type = type;
  args.append(carried);
  result.addTypes(types);
  return parser.resolveOperands(inits, types, location, result.operands);
}

static void printBody(OpAsmPrinter &p, Operation *op, Region &body) {
  p << ' ';
  p.printRegion(body, /*printEntryBlockArgs=*/false);
  printMarks(p, op);
}

static ParseResult parseBody(OpAsmParser &parser, OperationState &result,
                             ArrayRef<OpAsmParser::Argument> args) {
  if (parser.parseRegion(*result.addRegion(), args) || parseMarks(parser, result))
    return failure();
  importReduction(result);
  return success();
}

void LoopOp::print(OpAsmPrinter &p) {
  printLoopName(p, *this);
  p << ' ' << getCoordinate() << " to " << getUpper();
  printCarried(p, getIterArgs(), getInits());
  printBody(p, *this, getBody());
}

ParseResult LoopOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> args(1);
  OpAsmParser::UnresolvedOperand upper;
  Type index = parser.getBuilder().getIndexType();
  if (parseLoopName(parser, result) || parser.parseArgument(args[0]) ||
      parser.parseKeyword("to") || parser.parseOperand(upper) ||
      parser.resolveOperand(upper, index, result.operands))
    return failure();
  args[0].type = index;
  return failure(parseCarried(parser, result, args) || parseBody(parser, result, args));
}

static LogicalResult verifyCarried(Operation *op, Block *body, unsigned leading, TypeRange inits) {
  auto yield = dyn_cast_or_null<YieldOp>(body->empty() ? nullptr : &body->back());
  if (!yield)
    return op->emitOpError("body must end with 'lacis.yield'");
  if (body->getNumArguments() < leading)
    return op->emitOpError("body needs ") << leading << " arguments before the carried values";
  TypeRange carried = TypeRange(body->getArgumentTypes()).drop_front(leading);
  if (carried != inits || op->getResultTypes() != inits || yield.getOperandTypes() != inits)
    return op->emitOpError("initial, carried, yielded and result types must agree");
  return success();
}

LogicalResult LoopOp::verify() {
  if (failed(verifyCarried(*this, getBlock(), 1, getInits().getTypes())) || failed(verifyMarks(*this)))
    return failure();
  return verifyOwnMarks(*this);
}

//===- LevelLoopOp --------------------------------------------------------===//

unsigned LevelLoopOp::getNumDigits() { return formatOf(getTensor()).getLevels()[getLevel()].getDigits().size(); }

void LevelLoopOp::build(OpBuilder &b, OperationState &state, const LoopName &name, Value tensor, int64_t level,
                        Value parent, ValueRange inits, std::optional<Reduction> reduce) {
  OpBuilder::InsertionGuard guard(b);
  markReduction(state, reduce);
  nameLoop(state, name);
  state.addAttribute("level", b.getI64IntegerAttr(level));
  state.addOperands({tensor, parent});
  state.addOperands(inits);
  state.addTypes(inits.getTypes());
  Block *body = b.createBlock(state.addRegion());
  unsigned digits = formatOf(tensor).getLevels()[level].getDigits().size();
  for (unsigned n = 0; n < 1 + digits; ++n)
    body->addArgument(b.getIndexType(), state.location);
  for (Value init : inits)
    body->addArgument(init.getType(), state.location);
}

void LevelLoopOp::print(OpAsmPrinter &p) {
  printLoopName(p, *this);
  p << ' ' << getTensor() << '[' << getLevel() << "] at " << getParent() << " (";
  llvm::interleaveComma(getBlock()->getArguments().take_front(1 + getNumDigits()), p);
  p << ')';
  printCarried(p, getIterArgs(), getInits());
  p << " : " << getTensor().getType();
  printBody(p, *this, getBody());
}

ParseResult LevelLoopOp::parse(OpAsmParser &parser, OperationState &result) {
  IntegerAttr level;
  OpAsmParser::UnresolvedOperand tensor, parent;
  SmallVector<OpAsmParser::Argument> args;
  Type type, index = parser.getBuilder().getIndexType();
  auto location = parser.getCurrentLocation();
  OperationState carried(result.location, result.name);
  if (parseLoopName(parser, result) || parser.parseOperand(tensor) ||
      parser.parseLSquare() ||
      parser.parseAttribute(level, parser.getBuilder().getI64Type(), "level", result.attributes) ||
      parser.parseRSquare() || parser.parseKeyword("at") || parser.parseOperand(parent) ||
      parser.parseArgumentList(args, OpAsmParser::Delimiter::Paren))
    return failure();
  for (auto &arg : args)
    arg.type = index;
  if (parseCarried(parser, carried, args) || parser.parseColonType(type) ||
      parser.resolveOperand(tensor, type, result.operands) ||
      parser.resolveOperand(parent, index, result.operands))
    return failure();
  auto ranked = dyn_cast<RankedTensorType>(type);
  auto format = ranked ? dyn_cast_or_null<FormatAttr>(ranked.getEncoding()) : nullptr;
  if (!format || level.getInt() < 0 || level.getInt() >= static_cast<int64_t>(format.getLevels().size()))
    return parser.emitError(location, "expected a tensor with a format that has level ") << level.getInt();
  result.addOperands(carried.operands);
  result.addTypes(carried.types);
  return parseBody(parser, result, args);
}

/// The tensor has a format and `level` is one of its levels.
static LogicalResult verifyLevel(Operation *op, Value tensor, int64_t level) {
  FormatAttr format = formatOf(tensor);
  if (!format)
    return op->emitOpError("needs a tensor with a '#lacis.format' encoding");
  if (level < 0 || level >= static_cast<int64_t>(format.getLevels().size()))
    return op->emitOpError("level ") << level << " does not exist: the format has " << format.getLevels().size();
  return success();
}

LogicalResult LevelLoopOp::verify() {
  if (failed(verifyLevel(*this, getTensor(), getLevel())))
    return failure();
  if (failed(verifyCarried(*this, getBlock(), 1 + getNumDigits(), getInits().getTypes())))
    return failure();
  return verifyMarks(*this);
}

//===- Positions and accesses ---------------------------------------------===//

/// The level is there, and as many digits as it has.
template <typename Op> static LogicalResult verifyDigits(Op op) {
  if (failed(verifyLevel(op, op.getTensor(), op.getLevel())))
    return failure();
  size_t digits = formatOf(op.getTensor()).getLevels()[op.getLevel()].getDigits().size();
  if (digits != op.getDigits().size())
    return op.emitOpError("level ") << op.getLevel() << " has " << digits << " digits, not " << op.getDigits().size();
  return success();
}

LogicalResult LocateOp::verify() { return verifyDigits(*this); }

LogicalResult FindOp::verify() { return verifyDigits(*this); }

LogicalResult PositionsOp::verify() { return verifyLevel(*this, getTensor(), getLevel()); }

LogicalResult OwnerOp::verify() { return verifyLevel(*this, getTensor(), getLevel()); }

LogicalResult BoundsOp::verify() { return verifyLevel(*this, getTensor(), getLevel()); }

LogicalResult SeekOp::verify() { return verifyLevel(*this, getTensor(), getLevel()); }

LogicalResult CoordinateOp::verify() { return verifyDigits(*this); }

LogicalResult ZerosOp::verify() {
  auto result = getResult().getType();
  Attribute format;
  ArrayRef<int64_t> shape;
  Value source = getSource();
  if (auto walk = source.getDefiningOp<WalkOp>())
    source = walk.getSource(); // the same pattern in another order
  if (auto pattern = dyn_cast<PatternType>(source.getType())) {
    format = pattern.getFormat();
    shape = pattern.getShape();
  } else if (auto tensor = dyn_cast<RankedTensorType>(source.getType())) {
    format = tensor.getEncoding();
    shape = tensor.getShape();
  }
  if (!format)
    return emitOpError("needs a pattern or a tensor with a format, not ") << source.getType();
  if (format != result.getEncoding() || shape != result.getShape())
    return emitOpError("the result has another shape or format than the pattern ") << source.getType();
  return success();
}

LogicalResult PresenceOp::verify() {
  if (failed(verifyLevel(*this, getTensor(), getLevel())))
    return failure();
  LevelAttr level = formatOf(getTensor()).getLevels()[getLevel()];
  int64_t coordinates = 1;
  for (Digit digit : level.getDigits())
    coordinates *= digit.mod ? digit.mod : 33;
  if (coordinates > 32)
    return emitOpError("level ") << getLevel() << " has more than 32 coordinates";
  return success();
}

LogicalResult PartOp::verify() {
  auto sum = dyn_cast_or_null<SumAttr>(cast<RankedTensorType>(getSource().getType()).getEncoding());
  if (!sum)
    return emitOpError("source must have a '#lacis.sum' encoding");
  for (auto [name, format] : llvm::zip(sum.getNames(), sum.getFormats()))
    if (name == getNameAttr())
      return format == cast<RankedTensorType>(getResult().getType()).getEncoding()
                 ? success()
                 : emitOpError("part '") << getName() << "' has format " << format;
  auto diagnostic = emitOpError("no part named '") << getName() << "'; the parts here are ";
  llvm::interleaveComma(sum.getNames(), diagnostic, [&](StringAttr name) { diagnostic << "'" << name.getValue() << "'"; });
  return diagnostic;
}

LogicalResult WalkOp::verify() {
  if (!formatOf(getSource()) || !formatOf(getResult()))
    return emitOpError("needs tensors with a '#lacis.format' encoding");
  if (!getLeast())
    return success();
  if (*getLeast() < 1 || !listsRows(formatOf(getResult())))
    return emitOpError("'least' is a positive number, of a companion that lists its rows");
  return success();
}

LogicalResult WorkspaceOp::verify() {
  if (static_cast<int64_t>(getSizes().size()) != getResult().getType().getRank())
    return emitOpError("needs one size for each axis");
  if (failed(verifyWords(*this)))
    return failure();
  if (getPlace() != WorkspacePlace::Private)
    return success();
  LoopOp shared;
  (*this)->getParentRegion()->walk([&](LoopOp loop) { shared = loop.getBind() ? loop : shared; });
  if (!shared)
    return success();
  return emitError("bind: loop '")
         << shared.getName() << "' inside runs on '" << stringifyParallelUnit(*shared.getBind())
         << "', but the tile belongs to one thread; bind a loop around it";
}

static LogicalResult verifyAccess(Operation *op, Value tensor, ValueRange indices, Type value,
                                  std::optional<uint64_t> along) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (static_cast<int64_t>(indices.size()) != type.getRank())
    return op->emitOpError("needs one index for each of the ") << type.getRank() << " axes";
  auto vector = dyn_cast<VectorType>(value);
  if (static_cast<bool>(vector) != along.has_value())
    return op->emitOpError("a vector access names its axis with 'along', a scalar one does not");
  if (along && *along >= static_cast<uint64_t>(type.getRank()))
    return op->emitOpError("axis ") << *along << " does not exist: the tensor has " << type.getRank();
  if (getElementTypeOrSelf(value) != type.getElementType())
    return op->emitOpError("element types must agree: ") << getElementTypeOrSelf(value) << " and "
                                                         << type.getElementType();
  return success();
}

LogicalResult ReadOp::verify() {
  if (failed(verifyWords(*this)))
    return failure();
  return verifyAccess(*this, getTensor(), getIndices(), getResult().getType(), getAlong());
}

LogicalResult WriteOp::verify() {
  if (failed(verifyWords(*this)))
    return failure();
  return verifyAccess(*this, getTensor(), getIndices(), getValue().getType(), getAlong());
}

LogicalResult CopyTransposedOp::verify() {
  if (!llvm::isPowerOf2_64(getSize()) || getSize() > kMostRounds)
    return emitOpError("copies a tile whose size is a power of two, at most ") << kMostRounds << "; got " << getSize();
  if (getSourceRows() == getSourceAlong() || getTargetRows() == getTargetAlong())
    return emitOpError("rows begin along one axis and lie along another");
  auto row = VectorType::get({int64_t(getSize())}, getElementTypeOrSelf(getSource().getType()));
  for (uint64_t axis : {getSourceRows(), getSourceAlong()})
    if (failed(verifyAccess(*this, getSource(), getSourceIndices(), row, axis)))
      return failure();
  for (uint64_t axis : {getTargetRows(), getTargetAlong()})
    if (failed(verifyAccess(*this, getTarget(), getTargetIndices(), row, axis)))
      return failure();
  return success();
}

#define GET_OP_CLASSES
#include "lacis/Dialect/Lacis/IR/LacisOps.cpp.inc"
