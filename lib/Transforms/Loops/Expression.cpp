// SPDX-License-Identifier: Apache-2.0
/// \file
/// Evaluates elements of an expression inside a nest.
#include "Expression.h"

#include "Chain.h"
#include "lacis/Dialect/Lacis/IR/Reduction.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lacis;

std::string lacis::letterName(linalg::GenericOp generic, unsigned dim) {
  if (auto names = generic->getAttrOfType<ArrayAttr>("lacis.loops"))
    if (dim < names.size())
      return isa<StringAttr>(names[dim]) ? cast<StringAttr>(names[dim]).str() : "";
  return std::string(1, static_cast<char>('a' + dim % 26)); // a generic without names
}

std::optional<Reduction> lacis::reductionOf(linalg::GenericOp generic) {
  Value next = generic.getBody()->getTerminator()->getOperand(0);
  std::optional<Combination> found = combinationOf(next, generic.getRegionOutputArgs()[0]);
  return found ? found->kind() : std::nullopt;
}

BlockArgument lacis::argumentOf(Value tensor) {
  while (Operation *op = tensor.getDefiningOp())
    if (isa<PartOp, WalkOp>(op))
      tensor = op->getOperand(0);
    else
      return {};
  return cast<BlockArgument>(tensor);
}

ZerosOp lacis::zerosOf(Value initial) {
  if (auto fill = initial.getDefiningOp<linalg::FillOp>())
    initial = fill.getOutputs()[0];
  return initial.getDefiningOp<ZerosOp>();
}

bool lacis::scatters(linalg::GenericOp generic, OpOperand &operand) {
  FormatAttr format = formatOf(operand.get());
  if (!format || formatOf(generic.getResult(0)))
    return false;
  auto iterators = generic.getIteratorTypesArray();
  bool hasLetters = llvm::all_of(generic.getMatchingIndexingMap(&operand).getResults(), [&](AffineExpr expr) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    return dim && iterators[dim.getPosition()] == utils::IteratorType::parallel;
  });
  return hasLetters &&
         !llvm::all_of(format.getLevels(), [](LevelAttr level) { return level.getExtent().coversDomain(); });
}

bool lacis::mayPad(Value tensor) {
  auto walk = tensor.getDefiningOp<WalkOp>();
  FormatAttr format = formatOf(walk ? walk.getSource() : tensor);
  LevelAttr last = format.getLevels().back();
  bool namesEntries = walk && !format.getBindings().empty(); // a companion of bindings lists them alone
  auto argument = dyn_cast<BlockArgument>(walk ? walk.getSource() : tensor);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  if (function && function.getArgAttr(argument.getArgNumber(), "lacis.full"))
    return false;
  return !namesEntries && (last.getExtent().coversDomain() || last.getCoordinate().isImplicit());
}

Value lacis::copyOf(OpBuilder &b, Location loc, Value tensor, ArrayRef<Value> coordinates) {
  FormatAttr format = formatOf(tensor);
  Value copy;
  for (auto [number, level] : llvm::enumerate(format.getLevels().take_front(format.getNumBatchLevels()))) {
    auto digits = llvm::map_to_vector(level.getDigits(), [&](Digit digit) { return coordinates[digit.axis]; });
    Value parent = copy ? copy : arith::ConstantIndexOp::create(b, loc, 0).getResult();
    copy = LocateOp::create(b, loc, b.getIndexType(), tensor, number, parent, digits);
  }
  return copy;
}

SmallVector<Value> lacis::slotAt(OpBuilder &b, Location loc, Value pattern, Value position,
                                 ArrayRef<Value> coordinates) {
  Value copy = copyOf(b, loc, pattern, coordinates);
  return {copy ? copy : arith::ConstantIndexOp::create(b, loc, 0).getResult(), position};
}

/// The path of loops in a product with a part of a sum.
static PathAttr pathIn(linalg::GenericOp generic) {
  PathAttr found;
  for (Value operand : generic.getInputs())
    found = join(found, pathOf(operand));
  return found;
}

static Type elementOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

void Expression::setSample(Value pattern, Value position) {
  sampled = argumentOf(pattern);
  samplePattern = pattern;
  samplePosition = position;
}

void Expression::setListed(Value tensor, unsigned level, Value position) {
  listed = tensor;
  listedLevel = level;
  listedPosition = position;
}

FailureOr<Value> Expression::element(OpBuilder &b, Value tensor, ArrayRef<Value> coordinates) {
  if (Value known = summed.lookup(tensor))
    return known;
  if (auto maker = makerOf(tensor))
    tensor = maker.getResult(0);
  if (Value place = kept ? kept->lookup(tensor) : Value()) {
    SmallVector<Value> where(coordinates);
    if (formatOf(tensor))
      where = slotAt(b, tensor.getLoc(), samplePattern, samplePosition, coordinates);
    return ReadOp::create(b, tensor.getLoc(), elementOf(tensor), place, where, Value(), IntegerAttr()).getResult();
  }
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    return fill.getInputs()[0];
  if (auto zeros = tensor.getDefiningOp<ZerosOp>())
    return arith::ConstantOp::create(b, tensor.getLoc(), b.getZeroAttr(elementOf(tensor))).getResult();
  if (auto generic = tensor.getDefiningOp<linalg::GenericOp>())
    return generic.getNumReductionLoops() == 0 ? evaluate(b, generic, coordinates) : sumOnce(b, generic, coordinates);
  if (auto copy = copied.find(tensor); copy != copied.end()) {
    SmallVector<Value> where{coordinates[copy->second.axis], copy->second.place};
    return ReadOp::create(b, tensor.getLoc(), elementOf(tensor), copy->second.tile, where, Value(), IntegerAttr())
        .getResult();
  }
  if (isa<BlockArgument>(tensor) && !cast<RankedTensorType>(tensor.getType()).getEncoding())
    return ReadOp::create(b, tensor.getLoc(), elementOf(tensor), tensor, coordinates, Value(), IntegerAttr())
        .getResult();
  if (isa<BlockArgument>(tensor))
    return emitError(tensor.getLoc()) << "one operand with a format is added up, or has the output's pattern; others are dense";
  return tensor.getDefiningOp()->emitError("'") << tensor.getDefiningOp()->getName() << "' cannot be fused: operands are "
                                                << "arguments, or made by 'linalg.generic' or 'linalg.fill'";
}

/// The letters of a generic, with their sizes.
FailureOr<SmallVector<Letter>> Expression::lettersOf(linalg::GenericOp generic) {
  SmallVector<Letter> letters(generic.getNumLoops());
  for (auto [dim, letter] : llvm::enumerate(letters)) {
    letter.name = letterName(generic, dim);
    letter.size = sizes.lookup(letter.name);
    if (!letter.size)
      return generic.emitError("no operand tells the size of loop '") << letter.name << "'";
  }
  return letters;
}

Value Expression::valueAt(OpBuilder &b, OpOperand &operand, Value position, ArrayRef<Letter> letters) {
  auto generic = cast<linalg::GenericOp>(operand.getOwner());
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  SmallVector<Value> coordinates;
  for (unsigned axis = 0; axis < map.getNumResults(); ++axis)
    coordinates.push_back(letters[map.getDimPosition(axis)].coordinate);
  Value tensor = operand.get(), copy = copyOf(b, generic.getLoc(), tensor, coordinates);
  return ValueOp::create(b, generic.getLoc(), elementOf(tensor), tensor, position, copy);
}

FailureOr<Value> Expression::update(OpBuilder &b, OpOperand &operand, Value position, ArrayRef<Letter *> known,
                                    Value carried) {
  auto generic = cast<linalg::GenericOp>(operand.getOwner());
  FailureOr<SmallVector<Letter>> letters = lettersOf(generic);
  if (failed(letters))
    return failure();
  for (Letter &letter : *letters)
    for (Letter *other : known)
      if (other->name == letter.name)
        letter = *other;
  Stored stored;
  return addEntry(b, operand, position, *letters, stored, carried);
}

FailureOr<Value> Expression::add(OpBuilder &b, linalg::GenericOp generic, ArrayRef<Letter> known, Value carried) {
  FailureOr<SmallVector<Letter>> letters = lettersOf(generic);
  if (failed(letters))
    return failure();
  for (Letter &letter : *letters)
    for (const Letter &other : known)
      if (other.name == letter.name)
        letter = other;
  return body(b, generic, *letters, Stored(), carried);
}

/// Statements of one entry that read the same sum share its loop.
FailureOr<Value> Expression::sumOnce(OpBuilder &b, linalg::GenericOp generic, ArrayRef<Value> coordinates) {
  for (Sum &sum : sums[generic])
    if (sum.value.getParentBlock() == b.getInsertionBlock() && ArrayRef<Value>(sum.coordinates) == coordinates)
      return sum.value;
  FailureOr<Value> made = evaluate(b, generic, coordinates);
  if (succeeded(made))
    sums[generic].push_back({SmallVector<Value>(coordinates), *made});
  return made;
}

/// The value of one element of the generic's result.
FailureOr<Value> Expression::evaluate(OpBuilder &b, linalg::GenericOp generic, ArrayRef<Value> coordinates) {
  AffineMap out = generic.getIndexingMapsArray().back();
  FailureOr<SmallVector<Letter>> found = lettersOf(generic);
  if (failed(found))
    return failure();
  SmallVector<Letter> &letters = *found;
  for (auto [position, value] : llvm::enumerate(coordinates)) {
    Letter &letter = letters[out.getDimPosition(position)];
    letter.coordinate = value;
    letter.digits = digitsOf.lookup(value);
  }
  Stored stored;
  for (OpOperand *operand : generic.getDpsInputOperands())
    if (formatOf(operand->get()) && sampled && argumentOf(operand->get()) == sampled)
      stored[operand->getOperandNumber()] = valueAt(b, *operand, samplePosition, letters);
  if (generic.getRegionOutputArgs()[0].use_empty())
    return body(b, generic, letters, stored, {});
  FailureOr<Value> first = element(b, generic.getOutputs()[0], coordinates);
  return failed(first) ? first : accumulate(b, generic, letters, stored, *first);
}

/// Accumulates over the entries of the encoded operands, then over the letters that nobody knows yet.
FailureOr<Value> Expression::accumulate(OpBuilder &b, linalg::GenericOp generic, MutableArrayRef<Letter> letters,
                                        Stored &stored, Value carried) {
  for (OpOperand *operand : generic.getDpsInputOperands())
    if (formatOf(operand->get()) && argumentOf(operand->get()) && !stored.contains(operand->getOperandNumber()))
      return empty || (only && only != operand->get()) ? FailureOr<Value>(carried)
                                                       : walk(b, *operand, letters, stored, carried);
  if (OpOperand *made = madeOperand(generic); made && !sampled)
    return walkMade(b, *made, letters, stored, carried);
  for (Letter &letter : letters) {
    if (letter.coordinate)
      continue;
    auto loop = LoopOp::create(b, generic.getLoc(), {letter.name, pathIn(generic)}, letter.size, carried,
                               reductionOf(generic));
    OpBuilder inner = OpBuilder::atBlockEnd(loop.getBlock());
    letter.coordinate = loop.getCoordinate();
    FailureOr<Value> next = accumulate(inner, generic, letters, stored, loop.getIterArgs()[0]);
    letter.coordinate = {};
    if (failed(next))
      return failure();
    YieldOp::create(inner, generic.getLoc(), *next);
    return loop.getResult(0);
  }
  return body(b, generic, letters, stored, carried);
}

/// Padding is not multiplied, so that infinity and NaN stay with the entries.
FailureOr<Value> Expression::addEntry(OpBuilder &b, OpOperand &operand, Value position, MutableArrayRef<Letter> letters,
                                      Stored &stored, Value carried) {
  auto generic = cast<linalg::GenericOp>(operand.getOwner());
  Value tensor = operand.get();
  Location loc = generic.getLoc();
  stored[operand.getOperandNumber()] = valueAt(b, operand, position, letters);
  FailureOr<Value> next = accumulate(b, generic, letters, stored, carried);
  if (failed(next) || !mayPad(tensor))
    return next;
  Value entry = EntryOp::create(b, loc, b.getI1Type(), tensor, position);
  return arith::SelectOp::create(b, loc, entry, *next, carried).getResult();
}

/// The letters of an operand's axes.
static SmallVector<Letter *> axesOf(OpOperand &operand, MutableArrayRef<Letter> letters) {
  AffineMap map = cast<linalg::GenericOp>(operand.getOwner()).getMatchingIndexingMap(&operand);
  SmallVector<Letter *> axes;
  for (unsigned axis = 0; axis < map.getNumResults(); ++axis)
    axes.push_back(&letters[map.getDimPosition(axis)]);
  return axes;
}

/// The loops over the entries of one operand.
FailureOr<Value> Expression::walk(OpBuilder &b, OpOperand &operand, MutableArrayRef<Letter> letters, Stored &stored,
                                  Value carried) {
  auto generic = cast<linalg::GenericOp>(operand.getOwner());
  Value tensor = operand.get();
  SmallVector<Letter *> axes = axesOf(operand, letters);
  bool ok = true;
  auto atEntry = [&](OpBuilder &b, Value position, ValueRange values) -> LevelWalk::Values {
    FailureOr<Value> next = addEntry(b, operand, position, letters, stored, values[0]);
    ok &= succeeded(next);
    return {ok ? *next : values[0]};
  };
  LevelWalk levels(generic.getLoc(), tensor, axes);
  levels.setReduction(reductionOf(generic));
  for (const Bound &each : bound)
    if (each.tensor == tensor)
      levels.setBound(each.number, each.letter);
  LevelWalk::Values result = tensor == listed
                                 ? levels.emitBelow(b, listedLevel, listedPosition, carried, atEntry)
                                 : levels.emit(b, carried, atEntry);
  stored.erase(operand.getOperandNumber());
  if (!ok)
    return failure();
  return result[0];
}

FailureOr<Value> Expression::walkMade(OpBuilder &b, OpOperand &operand, MutableArrayRef<Letter> letters, Stored &stored,
                                      Value carried) {
  auto generic = cast<linalg::GenericOp>(operand.getOwner());
  Value pattern = walkedPattern(b, operand.get());
  SmallVector<Letter *> axes = axesOf(operand, letters);
  bool ok = true;
  auto atEntry = [&](OpBuilder &b, Value position, ValueRange values) -> LevelWalk::Values {
    setSample(pattern, position);
    FailureOr<Value> next = accumulate(b, generic, letters, stored, values[0]);
    ok &= succeeded(next);
    if (!ok)
      return {values[0]};
    if (!mayPad(pattern))
      return {*next};
    Value entry = EntryOp::create(b, generic.getLoc(), b.getI1Type(), pattern, position);
    return {arith::SelectOp::create(b, generic.getLoc(), entry, *next, values[0]).getResult()};
  };
  LevelWalk levels(generic.getLoc(), pattern, axes);
  levels.setReduction(reductionOf(generic));
  LevelWalk::Values result = levels.emit(b, carried, atEntry);
  sampled = {};
  if (!ok)
    return failure();
  return result[0];
}

/// The payload at one point.
FailureOr<Value> Expression::body(OpBuilder &b, linalg::GenericOp generic, ArrayRef<Letter> letters,
                                  const Stored &stored, Value carried) {
  IRMapping mapping;
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    BlockArgument argument = generic.getMatchingBlockArgument(operand);
    if (Value value = stored.lookup(operand->getOperandNumber())) {
      mapping.map(argument, value);
      continue;
    }
    SmallVector<Value> coordinates;
    AffineMap map = generic.getMatchingIndexingMap(operand);
    for (unsigned axis = 0; axis < map.getNumResults(); ++axis)
      coordinates.push_back(letters[map.getDimPosition(axis)].coordinate);
    if (llvm::is_contained(coordinates, Value()))
      return generic.emitError("operand ") << operand->getOperandNumber()
                                           << " has a letter that the output lacks, and nothing sums over it";
    FailureOr<Value> value = element(b, operand->get(), coordinates);
    if (failed(value))
      return failure();
    mapping.map(argument, *value);
  }
  if (carried)
    mapping.map(generic.getRegionOutputArgs()[0], carried);
  for (Operation &op : generic.getBody()->without_terminator())
    if (auto index = dyn_cast<linalg::IndexOp>(op)) {
      mapping.map(index.getResult(), letters[index.getDim()].coordinate);
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      auto at = llvm::map_to_vector(extract.getIndices(), [&](Value where) { return mapping.lookupOrDefault(where); });
      FailureOr<Value> value = element(b, extract.getTensor(), at);
      if (failed(value))
        return failure();
      mapping.map(extract.getResult(), *value);
    } else {
      b.clone(op, mapping);
    }
  return mapping.lookupOrDefault(generic.getBody()->getTerminator()->getOperand(0));
}
