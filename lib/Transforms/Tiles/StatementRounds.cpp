// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rounds of a consumer: statements on the tiles that a round brings, and what they hand on to the next.
///
/// for j: A(j); B(j)  -->  A(0); for j >= 1: A(j) beside B(j - 1); B(last)
/// A product B that only the next round's own reads can wait for that round: it runs beside its first products, while
/// arithmetic on their sums has not begun. A thread's part of a sum along rows stays with it until the last round.
#include "StatementRounds.h"

#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "lacis/Dialect/Lacis/IR/PostponedSums.h"
#include "lacis/Dialect/Lacis/IR/RolledTileSizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lacis;

//===- Loops --------------------------------------------------------------===//

/// What a loop carries, in its body.
static ValueRange carriedIn(Operation *loop) {
  return ValueRange(loop->getRegion(0).getArguments().take_back(loop->getNumResults()));
}

Rounds Rounds::of(LoopOpInterface loop) { return {loop, loopsOfRound(loop)}; }

int64_t Rounds::gathered() {
  LevelLoopOp walk = positions();
  if (!walk || !walk.getTiled() || !walk.getTensor().getDefiningOp<RegroupOp>())
    return 1;
  return kTileSide / formatOf(walk.getTensor()).getLevels().back().getDigits()[0].mod;
}

Operation *lacis::openAgain(OpBuilder &b, LoopOpInterface loop, RoleScalars &scalars, ValueRange carried) {
  Location loc = loop.getLoc();
  if (auto dense = dyn_cast<LoopOp>(*loop)) {
    auto made = LoopOp::create(b, loc, loop.getLoopName(), scalars.get(b, dense.getUpper()), carried);
    scalars.map(dense.getCoordinate(), made.getCoordinate());
    return made;
  }
  auto walk = cast<LevelLoopOp>(*loop);
  auto made = LevelLoopOp::create(b, loc, loop.getLoopName(), walk.getTensor(), walk.getLevel(),
                                  scalars.get(b, walk.getParent()), carried);
  scalars.map(walk.getPosition(), made.getPosition());
  for (auto [before, after] : llvm::zip(walk.getCoordinates(), made.getCoordinates()))
    scalars.map(before, after);
  return made;
}

Operation *Rounds::open(OpBuilder &b, StagedBoxes &boxes, RoleScalars &scalars, ValueRange more) {
  Location loc = loop.getLoc();
  SmallVector<StagedBox *> places = placesOf(boxes, /*inRound=*/true);
  SmallVector<Value> carried = valuesOf(places);
  llvm::append_range(carried, more);
  if (gathered() > 1) {
    Span all = span(b, scalars);
    auto made = LoopOp::create(b, loc, loop.getLoopName(), all.count, carried);
    setPlaces(places, made.getIterArgs().take_front(places.size()));
    b = OpBuilder::atBlockEnd(made.getBlock());
    placeAt(b, scalars, all, made.getCoordinate());
    return made;
  }
  Operation *made = openAgain(b, loop, scalars, carried);
  b = OpBuilder::atBlockEnd(&made->getRegion(0).front());
  for (LoopOpInterface each : inside) {
    made = openAgain(b, each, scalars, SmallVector<Value>(carriedIn(made)));
    b = OpBuilder::atBlockEnd(&made->getRegion(0).front());
  }
  setPlaces(places, carriedIn(made).take_front(places.size()));
  return made;
}

ValueRange Rounds::close(OpBuilder &b, Operation *innermost, ValueRange values) {
  YieldOp::create(b, innermost->getLoc(), values);
  Operation *done = innermost;
  for (size_t left = inside.size(); left > 0; --left) {
    b.setInsertionPointAfter(done);
    YieldOp::create(b, done->getLoc(), done->getResults());
    done = done->getParentOp();
  }
  b.setInsertionPointAfter(done);
  return done->getResults();
}

Rounds::Span Rounds::span(OpBuilder &b, RoleScalars &scalars) {
  Location loc = loop.getLoc();
  LevelLoopOp walk = positions();
  Span found;
  if (walk) {
    Value parent = scalars.get(b, walk.getParent());
    auto bounds = BoundsOp::create(b, loc, b.getIndexType(), b.getIndexType(), walk.getTensor(), walk.getLevel(), parent);
    found = {bounds.getLo(), bounds.getHi(), arith::SubIOp::create(b, loc, bounds.getHi(), bounds.getLo())};
  } else {
    Value upper = scalars.get(b, cast<LoopOp>(*loop).getUpper());
    found = {arith::ConstantIndexOp::create(b, loc, 0), upper, upper};
  }
  for (LoopOpInterface each : inside)
    found.count = arith::MulIOp::create(b, loc, found.count, scalars.get(b, cast<LoopOp>(*each).getUpper()));
  if (int64_t times = gathered(); times > 1) {
    found.count = arith::AddIOp::create(b, loc, found.count, arith::ConstantIndexOp::create(b, loc, times - 1));
    found.count = arith::DivUIOp::create(b, loc, found.count, arith::ConstantIndexOp::create(b, loc, times));
  }
  return found;
}

/// A position and its coordinates.
SmallVector<Value> Rounds::placeOf(OpBuilder &b, const Span &span, Value position) {
  LevelLoopOp walk = positions();
  SmallVector<Type> types(walk.getCoordinates().size(), b.getIndexType());
  types.push_back(b.getI1Type());
  auto made = CoordinateOp::create(b, loop.getLoc(), types, walk.getTensor(), walk.getLevel(), span.lo, position);
  SmallVector<Value> found{position};
  llvm::append_range(found, made.getDigits());
  return found;
}

void Rounds::placeAt(OpBuilder &b, RoleScalars &scalars, const Span &span, Value number) {
  if (gathered() > 1)
    return gatherAt(b, scalars, span, number);
  Location loc = loop.getLoc();
  Value position = number;
  for (LoopOpInterface each : llvm::reverse(inside)) {
    auto own = cast<LoopOp>(*each);
    Value trip = scalars.get(b, own.getUpper()), left = position;
    position = arith::DivUIOp::create(b, loc, left, trip);
    scalars.map(own.getCoordinate(), arith::RemUIOp::create(b, loc, left, trip));
  }
  if (!positions())
    return scalars.map(cast<LoopOp>(*loop).getCoordinate(), position);
  position = arith::AddIOp::create(b, loc, span.lo, position);
  SmallVector<Value> numbers = placeOf(b, span, position);
  for (auto [before, after] : llvm::zip(positions().getBlock()->getArguments(), numbers))
    scalars.map(before, after);
}

/// Positions behind the last are the last once more, without an entry.
void Rounds::gatherAt(OpBuilder &b, RoleScalars &scalars, const Span &span, Value number) {
  Location loc = loop.getLoc();
  LevelLoopOp walk = positions();
  auto constant = [&](int64_t value) { return arith::ConstantIndexOp::create(b, loc, value).getResult(); };
  Value first = arith::AddIOp::create(b, loc, span.lo, arith::MulIOp::create(b, loc, number, constant(gathered())));
  Value last = arith::SubIOp::create(b, loc, span.hi, constant(1));
  SmallVector<Value> before{walk.getPosition()};
  llvm::append_range(before, walk.getCoordinates());
  auto bits = llvm::to_vector(walk.getBlock()->getOps<PresenceOp>());
  for (PresenceOp each : bits)
    before.push_back(each);
  SmallVector<SmallVector<Value>> after;
  SmallVector<Value> words;
  for (int64_t part = 0; part < gathered(); ++part) {
    Value own = first, isThere; // the first position of a round is there
    if (part > 0) {
      own = arith::AddIOp::create(b, loc, first, constant(part));
      isThere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, own, last);
      own = arith::MinSIOp::create(b, loc, own, last);
    }
    after.push_back(placeOf(b, span, own));
    for (PresenceOp each : bits) {
      Value word = PresenceOp::create(b, loc, each.getType(), each.getTensor(), each.getLevel(), own);
      Value none = arith::ConstantIntOp::create(b, loc, 0, 32);
      words.push_back(isThere ? arith::SelectOp::create(b, loc, isThere, word, none).getResult() : word);
    }
  }
  if (!bits.empty())
    for (auto [part, word] : llvm::enumerate(inOneWord(b, words)))
      after[part].push_back(word);
  scalars.gather(before, after);
}

/// Those of all parts share a word as far as it has room: a register waits for the products, not one for each part.
SmallVector<Value> Rounds::inOneWord(OpBuilder &b, ArrayRef<Value> words) {
  Location loc = loop.getLoc();
  LevelLoopOp walk = positions();
  int64_t width = formatOf(walk.getTensor()).getLevels()[walk.getLevel() + 1].getDigits()[0].mod;
  auto bits = [&](size_t part) { return arith::ConstantIntOp::create(b, loc, part * width, 32).getResult(); };
  if (width * static_cast<int64_t>(words.size()) > 32)
    return SmallVector<Value>(words);
  Value all = words[0];
  for (size_t part = 1; part < words.size(); ++part)
    all = arith::OrIOp::create(b, loc, all, arith::ShLIOp::create(b, loc, words[part], bits(part)));
  SmallVector<Value> found{all};
  for (size_t part = 1; part < words.size(); ++part)
    found.push_back(arith::ShRUIOp::create(b, loc, all, bits(part)));
  return found;
}

LoopOp lacis::openOnce(OpBuilder &b, Location loc, const LoopName &name, Value condition, ValueRange carried) {
  Value one = arith::ConstantIndexOp::create(b, loc, 1), none = arith::ConstantIndexOp::create(b, loc, 0);
  Value times = arith::SelectOp::create(b, loc, condition, one, none);
  return LoopOp::create(b, loc, name, times, carried);
}

//===- What rounds hand on ------------------------------------------------===//

void StatementRounds::findStates() {
  round->walk([&](WriteOp write) {
    if (statements.state(write.getTensor()))
      states.insert(write.getTensor());
  });
}

/// Products of what a round made with what it brought.
LogicalResult StatementRounds::findPostponed() {
  bool isSkewed = rounds.positions() && rounds.positions().getSkewed() && rounds.areCounted();
  for (const CarriedSum &own : isSkewed ? sumsToPostpone(round) : SmallVector<CarriedSum>())
    statements.postpone(own);
  if (isSkewed != statements.hasPostponed())
    return round->emitError("tiles: loop '") << round.getName() << "' is skewed, and no sum of it can wait for the next round";
  return success();
}

/// Sums along rows from 0 on.
void StatementRounds::keepParts(OpBuilder &b) {
  for (Value tensor : states) {
    auto type = cast<AccType>(statements.state(tensor).getType());
    bool isSum = type.isOfRows() && carriedSum(round, tensor);
    auto zero = statements.state(tensor).getDefiningOp<SplatOp>();
    if (!isSum || !zero || !matchPattern(zero.getValue(), m_AnyZeroFloat()))
      continue;
    parts.insert(tensor);
    statements.state(tensor) = SplatOp::create(b, loc, TileStatements::partsOf(type), zero.getValue());
  }
}

void StatementRounds::addUpParts(OpBuilder &b) {
  for (Value tensor : parts) {
    Value &state = statements.state(tensor);
    auto type = AccType::get(b.getContext(), {cast<AccType>(state.getType()).getShape()[0], 1}, b.getF32Type());
    state = ReduceRowsOp::create(b, loc, type, b.getStringAttr("sum"), state, Value());
  }
}

SmallVector<Value> StatementRounds::carried(bool withPostponed) {
  SmallVector<Value> values = valuesOf(placesOf(boxes, /*inRound=*/true));
  for (Value tensor : states) {
    PostponedSum *sum = withPostponed ? statements.postponed(tensor) : nullptr;
    if (sum)
      llvm::append_values(values, sum->left, sum->onto);
    else
      values.push_back(statements.state(tensor));
  }
  return values;
}

void StatementRounds::setCarried(ValueRange values, bool withPostponed) {
  SmallVector<StagedBox *> places = placesOf(boxes, /*inRound=*/true);
  setPlaces(places, values.take_front(places.size()));
  values = values.drop_front(places.size());
  for (Value tensor : states) {
    PostponedSum *sum = withPostponed ? statements.postponed(tensor) : nullptr;
    if (sum) {
      sum->left = values[0], sum->onto = values[1];
      values = values.drop_front();
    } else {
      statements.state(tensor) = values[0];
    }
    values = values.drop_front();
  }
}

//===- Rounds -------------------------------------------------------------===//

/// Those that wait for the next round come last: what they read is made, and nothing of this round reads them.
LogicalResult StatementRounds::emitRound(OpBuilder &b) {
  SmallVector<LoopOp> first, last;
  for (Operation &op : rounds.statements()->without_terminator())
    if (auto statement = dyn_cast<LoopOp>(op))
      (statements.isPostponed(statement) ? last : first).push_back(statement);
  statements.forget();
  statements.findTiles(b, first);
  for (LoopOp statement : first)
    statements.begin(b, statement);
  statements.beginPostponed(b);
  for (LoopOp statement : first)
    statements.readAhead(b, statement);
  if (failed(emitInOrder(b, first)))
    return failure();
  statements.finishPostponed(b);
  return emitInOrder(b, last);
}

LogicalResult StatementRounds::emitInOrder(OpBuilder &b, ArrayRef<LoopOp> inOrder) {
  for (; !inOrder.empty(); inOrder = inOrder.drop_front())
    if (failed(statements.emit(b, inOrder.front())) || failed(statements.beginAhead(b, inOrder.drop_front())))
      return failure();
  return success();
}

LogicalResult StatementRounds::emitInTurn(OpBuilder &b) {
  SmallVector<Value> more = carried(false);
  RoleScalars outside = scalars; // numbers that a round makes are its own
  OpBuilder in = b;
  Operation *made = rounds.open(in, boxes, scalars, ValueRange(more).drop_front(placesOf(boxes, true).size()));
  setCarried(carriedIn(made), false);
  if (failed(emitRound(in)))
    return failure();
  setCarried(rounds.close(in, made, carried(false)), false);
  scalars = outside;
  b = in;
  return success();
}

/// The rounds behind the first.
LoopOp StatementRounds::openLater(OpBuilder &b, const Rounds::Span &span) {
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value later = arith::SubIOp::create(b, loc, span.count, one);
  auto made = LoopOp::create(b, loc, round.getLoopName(), later, carried(true));
  setCarried(made.getIterArgs(), true);
  OpBuilder in = OpBuilder::atBlockEnd(made.getBlock());
  rounds.placeAt(in, scalars, span, arith::AddIOp::create(in, loc, made.getCoordinate(), one));
  return made;
}

/// A row without rounds keeps what it begins with.
LogicalResult StatementRounds::emitSkewed(OpBuilder &b) {
  Rounds::Span span = rounds.span(b, scalars);
  Value none = arith::ConstantIndexOp::create(b, loc, 0);
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, span.count, none);
  PathAttr first = pathOf(b.getContext(), PathKind::Phase, "first");
  LoopOp item = openOnce(b, loc, {round.getLetters(), join(first, round.getPathAttr())}, some, carried(false));
  setCarried(item.getIterArgs(), false);
  OpBuilder in = OpBuilder::atBlockEnd(item.getBlock());
  RoleScalars outside = scalars;
  rounds.placeAt(in, scalars, span, none);
  if (failed(emitRound(in)))
    return failure();
  scalars = outside;
  LoopOp later = openLater(in, span);
  OpBuilder inLater = OpBuilder::atBlockEnd(later.getBlock());
  if (failed(emitRound(inLater)))
    return failure();
  YieldOp::create(inLater, loc, carried(true));
  setCarried(later.getResults(), true);
  scalars = outside;
  statements.finishPostponed(in);
  YieldOp::create(in, loc, carried(false));
  setCarried(item.getResults(), false);
  return success();
}

/// for j: s += sum over k: what a round begins need not end in it.
bool StatementRounds::addsAlone() {
  auto isSum = [&](Value tensor) {
    std::optional<CarriedSum> own = carriedSum(round, tensor);
    auto begins = own ? own->sum.getInits()[0].getDefiningOp<ReadOp>() : ReadOp();
    return begins && begins.getTensor() == tensor && factorsOf(own->sum);
  };
  size_t count = llvm::range_size(rounds.statements()->getOps<LoopOp>());
  return count == states.size() && llvm::all_of(states, isSum);
}

void StatementRounds::complete(OpBuilder &b) {
  SmallVector<Value> left = carried(false);
  setCarried(CompleteOp::create(b, loc, ValueRange(left).getTypes(), left).getResults(), false);
}

LogicalResult StatementRounds::emit(OpBuilder &b) {
  findStates();
  if (failed(findPostponed()))
    return failure();
  keepParts(b);
  bool isUnderWay = addsAlone();
  if (isUnderWay)
    statements.leaveUnderWay();
  if (failed(statements.hasPostponed() ? emitSkewed(b) : emitInTurn(b)))
    return failure();
  if (isUnderWay)
    complete(b);
  addUpParts(b);
  return success();
}
