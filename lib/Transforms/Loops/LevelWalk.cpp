// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loops that find coordinates in the levels of an operand.
#include "LevelWalk.h"

#include "Expression.h"
#include "lacis/Dialect/Lacis/IR/BindingCode.h"
#include "lacis/Dialect/Lacis/IR/BindingOps.h"

#include "lacis/Dialect/Lacis/IR/Guards.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"

using namespace mlir;
using namespace lacis;

static Value constant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

static Value compare(OpBuilder &b, Location loc, arith::CmpIPredicate how, Value left, Value right) {
  return arith::CmpIOp::create(b, loc, how, left, right);
}

/// Conditions may be null: nothing is asked then.
static Value both(OpBuilder &b, Location loc, Value left, Value right) {
  return left && right ? arith::AndIOp::create(b, loc, left, right).getResult() : (left ? left : right);
}

Value Letter::digit(OpBuilder &b, Location loc, int64_t div, int64_t mod) const {
  for (const auto &[digit, value] : digits)
    if (digit.div == div && digit.mod == mod)
      return value;
  if (mod == 1)
    return constant(b, loc, 0);
  Value result = coordinate;
  if (div != 1)
    result = arith::DivUIOp::create(b, loc, result, constant(b, loc, div));
  if (mod != 0)
    result = arith::RemUIOp::create(b, loc, result, constant(b, loc, mod));
  return result;
}

void Letter::compose(OpBuilder &b, Location loc) {
  for (const auto &[digit, value] : digits) {
    Value term = digit.div == 1 ? value : arith::MulIOp::create(b, loc, value, constant(b, loc, digit.div));
    coordinate = coordinate ? arith::AddIOp::create(b, loc, coordinate, term) : term;
  }
}

bool lacis::needsGuard(Value size, int64_t div, unsigned count) {
  return (count > 1 || div > 1) && !fillStrips(size, div);
}

PathAttr lacis::pathOf(Value tensor) {
  if (auto walk = tensor.getDefiningOp<WalkOp>())
    tensor = walk.getSource();
  auto part = tensor.getDefiningOp<PartOp>();
  return part ? pathOf(tensor.getContext(), PathKind::Part, part.getName()) : PathAttr();
}

LevelWalk::LevelWalk(Location loc, Value tensor, ArrayRef<Letter *> axes)
    : loc(loc), tensor(tensor), format(formatOf(tensor)), axes(axes), bound(format.getBindings().size()),
      first(format.getNumBatchLevels()), below(first), end(format.getLevels().size()) {
  nameBindings();
}

/// A loop has the name of its binding, and a `_` behind it where the expression has such a letter.
void LevelWalk::nameBindings() {
  if (bound.empty())
    return;
  BlockArgument argument = argumentOf(tensor);
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto isLetter = [&](StringRef name) {
    for (unsigned number = 0; number < function.getNumArguments(); ++number)
      if (auto letters = function.getArgAttrOfType<ArrayAttr>(number, "lacis.axes"))
        if (llvm::is_contained(letters.getAsValueRange<StringAttr>(), name))
          return true;
    return false;
  };
  for (auto [binding, letter] : llvm::zip(format.getBindings(), bound)) {
    letter.name = cast<BindingInterface>(binding).getName().str();
    while (isLetter(letter.name))
      letter.name += "_";
    axes.push_back(&letter);
  }
}

unsigned LevelWalk::digitsOf(unsigned axis) const {
  unsigned count = 0;
  for (LevelAttr level : format.getLevels())
    count += llvm::count_if(level.getDigits(), [&](Digit d) { return d.axis == axis; });
  return count;
}

/// The digits of the level, and of those that have one position under each of its positions.
LoopName LevelWalk::loopName(unsigned number) const {
  std::string name;
  do {
    for (Digit digit : format.getLevels()[number].getDigits())
      name += (name.empty() ? "" : "_") + nameOf(digit);
  } while (++number < format.getLevels().size() && format.getLevels()[number].getExtent().followsParent());
  return {name, pathOf(tensor)};
}

std::string LevelWalk::nameOf(Digit digit) const {
  auto isAbove = [&](Digit other) { // one of a single coordinate is the lower of two that divide alike
    bool isAlike = other.div == digit.div && digit.mod == 1 && other.mod != 1;
    return other.axis == digit.axis && (other.div > digit.div || isAlike);
  };
  unsigned rank = 0; // how many digits of the axis are more significant
  for (LevelAttr level : format.getLevels())
    rank += llvm::count_if(level.getDigits(), isAbove);
  return digitName(axes[digit.axis]->name, rank, digitsOf(digit.axis));
}

/// What is known before a nest stands before it, so that its loops follow one another.
static OpBuilder beforeNest(OpBuilder &b) {
  OpBuilder before = b;
  Operation *around = b.getInsertionBlock()->getParentOp();
  LoopOp inner = dyn_cast<LoopOp>(around);
  if (LoopOp loop = inner ? inner : around->getParentOfType<LoopOp>())
    before.setInsertionPoint(outermostLoop(loop));
  return before;
}

void LevelWalk::sizeBindings(OpBuilder &at) {
  OpBuilder b = beforeNest(at);
  for (auto [binding, letter] : llvm::zip(format.getBindings(), bound)) {
    auto sizes = llvm::map_to_vector(axes, [](Letter *letter) { return letter->size; });
    if (!letter.size)
      letter.size = cast<BindingInterface>(binding).emitSize(b, loc, sizes);
  }
}

LevelWalk::Values LevelWalk::emit(OpBuilder &b, ValueRange carried, Body body) {
  sizeBindings(b);
  return emitLevel(b, 0, zero(b), carried, body);
}

LevelWalk::Values LevelWalk::emitBelow(OpBuilder &b, unsigned level, Value parent, ValueRange carried, Body body) {
  below = level;
  return emitLevel(b, 0, parent, carried, body);
}

LevelWalk::Values LevelWalk::emitLevel(OpBuilder &b, unsigned number, Value parent, ValueRange carried, Body body) {
  if (number == first)
    number = below;
  if (number == end)
    return body(b, parent, carried);
  LevelAttr level = format.getLevels()[number];
  auto isKnown = [&](Digit d) { return static_cast<bool>(axes[d.axis]->coordinate); };
  if (llvm::all_of(level.getDigits(), isKnown)) { // a link has no digits
    Values digits;
    for (Digit d : level.getDigits())
      digits.push_back(axes[d.axis]->digit(b, loc, d.div, d.mod));
    return emitLevel(b, number + 1, locate(b, number, parent, digits), carried, body);
  }
  if (level.getExtent().coversDomain()) {
    Values digits;
    return emitDense(b, number, 0, parent, digits, carried, body);
  }
  if (level.getExtent().followsParent() && !level.getCoordinate().isPadded()) { // one position: no loop
    SmallVector<Type> types(level.getDigits().size(), b.getIndexType());
    auto found = CoordinateOp::create(b, loc, types, b.getI1Type(), tensor, number, parent, parent);
    return emitFound(b, number, Values(found.getDigits()), parent, carried, body);
  }
  if (number == first && carried.empty()) {
    emitRoot(b, body);
    return {};
  }
  return emitLevelLoop(b, number, parent, carried, body);
}

/// The pattern does not see the levels that share it: below them it begins where it does without them.
Value LevelWalk::locate(OpBuilder &b, unsigned number, Value parent, ValueRange digits) {
  if (number < first)
    return parent;
  Value position = LocateOp::create(b, loc, b.getIndexType(), tensor, number, parent, digits);
  LevelAttr level = format.getLevels()[number];
  bool isPlace = level.getExtent().isLink() && level.getBuffers().front().elementType.getIntOrFloatBitWidth() < 32;
  return isPlace ? slotAt(b, position) : position;
}

/// A link of few bits is a place in the row of the tensor that is walked.
Value LevelWalk::slotAt(OpBuilder &b, Value place) {
  Value source = tensor.getDefiningOp<WalkOp>().getSource();
  Digit digit = formatOf(source).getLevels()[0].getDigits()[0];
  Value coordinate = axes[digit.axis]->digit(b, loc, digit.div, digit.mod);
  Value row = LocateOp::create(b, loc, b.getIndexType(), source, 0, zero(b), coordinate);
  auto bounds = BoundsOp::create(b, loc, b.getIndexType(), b.getIndexType(), source, 1, row);
  return arith::AddIOp::create(b, loc, bounds.getLo(), place, arith::IntegerOverflowFlags::nsw); // it is a slot
}

LevelWalk::Values LevelWalk::emitLevelLoop(OpBuilder &b, unsigned number, Value parent, ValueRange carried,
                                           Body body) {
  auto loop = LevelLoopOp::create(b, loc, loopName(number), tensor, number, parent, carried, reduce);
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBlock());
  Values digits(loop.getCoordinates()), iter(loop.getIterArgs());
  Values result = emitFound(inner, number, digits, loop.getPosition(), iter, body);
  YieldOp::create(inner, loc, result);
  return Values(loop.getResults());
}

static scf::IfOp guardedBy(OpBuilder &b, Location loc, Value condition) {
  return scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
}

/// for n in positions(w:0): if n is one of them and holds an entry: the body.
void LevelWalk::emitRoot(OpBuilder &b, Body body) {
  OpBuilder before = beforeNest(b);
  auto loop = LoopOp::create(b, loc, loopName(first), getRoom(before));
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBlock());
  emitListed(inner, loop.getCoordinate(), end, body);
  YieldOp::create(inner, loc);
}

Value LevelWalk::zero(OpBuilder &b) { return constant(b, loc, 0); }

Value LevelWalk::getRoom(OpBuilder &b) { return PositionsOp::create(b, loc, b.getIndexType(), tensor, first); }

void LevelWalk::emitListed(OpBuilder &b, Value number, unsigned last, Body body) {
  LevelAttr level = format.getLevels()[first];
  auto bounds = BoundsOp::create(b, loc, b.getIndexType(), b.getIndexType(), tensor, first, zero(b));
  Value position = arith::AddIOp::create(b, loc, bounds.getLo(), number);
  Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, position, bounds.getHi());
  OpBuilder then = guardedBy(b, loc, exists).getThenBodyBuilder();
  SmallVector<Type> types(level.getDigits().size(), b.getIndexType());
  auto found = CoordinateOp::create(then, loc, types, b.getI1Type(), tensor, first, bounds.getLo(), position);
  if (level.getCoordinate().isPadded())
    then = guardedBy(then, loc, found.getValid()).getThenBodyBuilder();
  unsigned all = std::exchange(end, last);
  emitFound(then, first, Values(found.getDigits()), position, {}, body);
  end = all;
}

LevelWalk::Values LevelWalk::emitAt(OpBuilder &b, Value lo, Value position, ValueRange carried, Body body) {
  SmallVector<Type> types(format.getLevels()[first].getDigits().size(), b.getIndexType());
  auto found = CoordinateOp::create(b, loc, types, b.getI1Type(), tensor, first, lo, position);
  return emitFound(b, first, Values(found.getDigits()), position, carried, body);
}

/// A loop for each digit of a dense level, then its position by arithmetic.
LevelWalk::Values LevelWalk::emitDense(OpBuilder &b, unsigned number, unsigned which, Value parent, Values &known,
                                       ValueRange carried, Body body) {
  LevelAttr level = format.getLevels()[number];
  if (which == level.getDigits().size()) {
    return emitFound(b, number, Values(known), locate(b, number, parent, known), carried, body);
  }
  Digit digit = level.getDigits()[which];
  Value upper = digit.mod ? constant(b, loc, digit.mod) : axes[digit.axis]->size;
  if (!digit.mod && digit.div != 1)
    upper = arith::CeilDivUIOp::create(b, loc, upper, constant(b, loc, digit.div));
  auto loop = LoopOp::create(b, loc, {nameOf(digit), pathOf(tensor)}, upper, carried, reduce);
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBlock());
  known.push_back(loop.getCoordinate());
  Values result = emitDense(inner, number, which + 1, parent, known, Values(loop.getIterArgs()), body);
  YieldOp::create(inner, loc, result);
  return Values(loop.getResults());
}

/// Adds digits to their letters; the condition that an axis which the blocks do not divide is not left, or null.
Value LevelWalk::noteDigits(OpBuilder &b, unsigned number, ValueRange digits,
                            SmallVectorImpl<std::pair<Letter *, Letter>> &before) {
  Value inside;
  for (auto [digit, value] : llvm::zip(format.getLevels()[number].getDigits(), digits)) {
    Letter *letter = axes[digit.axis];
    before.push_back({letter, *letter});
    letter->digits.push_back({digit, value});
    if (letter->digits.size() != digitsOf(digit.axis))
      continue;
    letter->compose(b, loc);
    int64_t largest = 1;
    for (auto &[known, unused] : letter->digits)
      largest = std::max(largest, known.div);
    if (!letter->size || !needsGuard(letter->size, largest, letter->digits.size()))
      continue;
    inside = both(b, loc, inside, compare(b, loc, arith::CmpIPredicate::slt, letter->coordinate, letter->size));
  }
  return inside;
}

/// Where the array of a binding is read; past the end, where nothing is taken for inside, that is its last element.
Value LevelWalk::storedCoordinate(OpBuilder &b, unsigned number) {
  Value last = arith::SubIOp::create(b, loc, bound[number].size, constant(b, loc, 1));
  return arith::MinSIOp::create(b, loc, bound[number].coordinate, last);
}

/// A coordinate that follows from others has the digits that loops have found; null where they have found none.
static Value agrees(OpBuilder &b, Location loc, const Letter &letter) {
  Value same;
  for (const auto &[digit, value] : letter.digits) {
    Value own = Letter{"", {}, letter.coordinate, {}}.digit(b, loc, digit.div, digit.mod);
    same = both(b, loc, same, compare(b, loc, arith::CmpIPredicate::eq, own, value));
  }
  return same;
}

Value LevelWalk::solve(OpBuilder &b, SmallVectorImpl<std::pair<Letter *, Letter>> &before) {
  Value inside;
  unsigned rank = axes.size() - bound.size();
  for (unsigned number = bound.size(); number-- > 0;) {
    auto binding = cast<BindingInterface>(format.getBindings()[number]);
    auto known = llvm::map_to_vector(axes, [](Letter *letter) { return letter->coordinate; });
    auto isKnown = llvm::map_to_vector(known, [](Value coordinate) { return static_cast<bool>(coordinate); });
    SmallVector<unsigned> names = followingNames(binding, isKnown);
    if (!bound[number].coordinate || names.empty())
      continue;
    auto sizes = llvm::map_to_vector(axes, [](Letter *letter) { return letter->size; });
    Value own = binding.getArray().empty() ? bound[number].coordinate : storedCoordinate(b, number);
    for (unsigned name : names) {
      Letter *letter = axes[name];
      before.push_back({letter, *letter});
      letter->coordinate = binding.emitSolve(b, loc, {tensor, number, name, own}, known, sizes);
      inside = both(b, loc, inside, agrees(b, loc, *letter));
      letter->digits.clear();
      if (name >= rank)
        continue;
      inside = both(b, loc, inside, compare(b, loc, arith::CmpIPredicate::sge, letter->coordinate, zero(b)));
      inside = both(b, loc, inside, compare(b, loc, arith::CmpIPredicate::slt, letter->coordinate, letter->size));
    }
  }
  return inside;
}

/// The levels below, with the digits that a loop found; past the end of an axis the carried values pass on.
LevelWalk::Values LevelWalk::emitFound(OpBuilder &b, unsigned number, ValueRange digits, Value position,
                                       ValueRange carried, Body body) {
  SmallVector<std::pair<Letter *, Letter>> before;
  Value inside = noteDigits(b, number, digits, before);
  inside = both(b, loc, inside, solve(b, before));
  Values result;
  if (inside && carried.empty()) {
    OpBuilder then = guardedBy(b, loc, inside).getThenBodyBuilder();
    emitLevel(then, number + 1, position, {}, body);
  } else if (inside) {
    auto guard = scf::IfOp::create(b, loc, carried.getTypes(), inside, /*addThenBlock=*/true, /*addElseBlock=*/true);
    OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
    scf::YieldOp::create(then, loc, emitLevel(then, number + 1, position, carried, body));
    scf::YieldOp::create(otherwise, loc, carried);
    result.assign(guard.result_begin(), guard.result_end());
  } else {
    result = emitLevel(b, number + 1, position, carried, body);
  }
  for (auto &[letter, state] : llvm::reverse(before))
    *letter = state;
  return result;
}
