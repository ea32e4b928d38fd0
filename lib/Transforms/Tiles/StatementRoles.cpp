// SPDX-License-Identifier: Apache-2.0
/// \file
/// A loop whose rounds are statements of tiles becomes roles: a producer brings the boxes of operands that products take,
/// a consumer runs the statements. Both run the loops of the one nest.
#include "StatementRoles.h"

#include "TileFactors.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "lacis/Dialect/Lacis/IR/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

namespace {

class StatementRoles {
public:
  StatementRoles(func::FuncOp function, LevelLoopOp round)
      : function(function), round(round), groups(round->getParentOfType<LoopOp>()), loc(round.getLoc()) {}
  LogicalResult run();

private:
  LogicalResult readLoops();
  LogicalResult findBoxes();
  LogicalResult addBox(ReadOp read, LoopOp sum);
  bool changesInRound(Value index);
  Value loadBox(OpBuilder &b, StagedBox &box, RoleScalars &scalars);
  LogicalResult produce(OpBuilder b, Value group);
  LogicalResult consume(OpBuilder b, Value group);
  LogicalResult consumeItem(OpBuilder &b, StagedBoxes &own, RoleScalars &scalars);
  LogicalResult consumeRounds(OpBuilder &b, TileStatements &statements, StagedBoxes &own, RoleScalars &scalars);
  LevelLoopOp cloneRound(OpBuilder &b, RoleScalars &scalars, StagedBoxes &own, ValueRange more);

  func::FuncOp function;
  LevelLoopOp round;
  LoopOp groups; // whose rounds are warpgroups, each with rows of its own
  Location loc;
  TileVariance variance;
  StagedBoxes boxes;
  int64_t stages = 2;
};

} // namespace

/// The loops of tiles, and the one whose rounds run side by side.
LogicalResult StatementRoles::readLoops() {
  if (!groups || groups.getBind() != ParallelUnit::Warpgroup || !groups.getTrip())
    return round.emitError("tiles: no loop right around loop '")
           << round.getName() << "' is bound to 'warpgroup'; bind the one whose rounds are rows of tiles side by side";
  // Rings begin once a block: a loop around them that one block runs would begin again on barriers that have moved on.
  for (auto loop = groups->getParentOfType<LoopOp>(); loop; loop = loop->getParentOfType<LoopOp>())
    if (!loop.getBind() || !isBlock(*loop.getBind()))
      return loop.emitError("tiles: loop '") << loop.getName() << "' stands around roles and is bound to no blocks";
  stages = round.getPipeline().value_or(stages);
  LogicalResult ok = success();
  groups->walk([&](LoopOp loop) {
    if (loop == groups)
      return;
    if (!loop.getTrip())
      ok = loop.emitError("tiles: loop '") << loop.getName() << "' has no constant trip count, as a tile has";
    else
      variance.add(loop);
  });
  return ok;
}

bool StatementRoles::changesInRound(Value index) {
  if (!index)
    return false;
  if (auto argument = dyn_cast<BlockArgument>(index))
    return argument.getOwner() == round.getBlock();
  return round->isProperAncestor(index.getDefiningOp()) &&
         llvm::any_of(index.getDefiningOp()->getOperands(), [&](Value operand) { return changesInRound(operand); });
}

/// Rows and columns of a dense operand, of which one side runs along the sum.
LogicalResult StatementRoles::addBox(ReadOp read, LoopOp sum) {
  auto type = cast<RankedTensorType>(read.getTensor().getType());
  auto argument = cast<BlockArgument>(read.getTensor());
  StringRef name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "lacis.name").getValue();
  if (!function.getArgAttr(argument.getArgNumber(), "lacis.staged"))
    return read.emitError("tiles: operand '") << name << "' is not staged in 'shared'";
  SmallVector<Value> sides;
  StagedBox box;
  box.read = read;
  for (Value index : read.getIndices()) {
    std::optional<TileVariance::Place> place = variance.placeOf(index);
    if (!place || (!sides.empty() && !place->coordinate))
      return refuseStatement(read);
    if (place->coordinate)
      sides.push_back(place->coordinate);
    box.inRound |= changesInRound(place->base);
  }
  if (sides.size() != 2 || !llvm::is_contained(sides, sum.getCoordinate()))
    return refuseStatement(read);
  box.isTransposed = sides[0] == sum.getCoordinate();
  box.tile = tileOfBox(type.getElementType(), variance.sizeOf(sides[0]), variance.sizeOf(sides[1]));
  boxes[read] = box;
  return success();
}

static ReadOp operandOf(Value factor) {
  auto read = behindCast(factor).getDefiningOp<ReadOp>();
  return read && isa<BlockArgument>(read.getTensor()) ? read : ReadOp();
}

LogicalResult StatementRoles::findBoxes() {
  LogicalResult ok = success();
  groups->walk<WalkOrder::PreOrder>([&](LoopOp loop) {
    Operation *sum = loop.getNumResults() == 1 && loop != groups ? combinerOf(loop) : nullptr;
    for (Value operand : sum ? ValueRange(sum->getOperands()) : ValueRange())
      if (auto product = operand.getDefiningOp<arith::MulFOp>(); product && succeeded(ok))
        for (Value factor : product->getOperands())
          if (ReadOp read = operandOf(factor); read && succeeded(ok))
            ok = addBox(read, loop);
  });
  if (succeeded(ok) && boxes.empty())
    return refuseStatement(round);
  return ok;
}

//===- Loops --------------------------------------------------------------===//

/// The places of rings that the loop moves on, first those that its rounds fill.
static SmallVector<StagedBox *> placesOf(StagedBoxes &own, bool inRound) {
  SmallVector<StagedBox *> found;
  for (auto &[read, box] : own)
    if (box.inRound || !inRound)
      found.push_back(&box);
  return found;
}

static void setPlaces(ArrayRef<StagedBox *> boxes, ValueRange places) {
  for (auto [box, place] : llvm::zip(boxes, places))
    box->place = place;
}

static SmallVector<Value> valuesOf(ArrayRef<StagedBox *> boxes) {
  return llvm::map_to_vector(boxes, [](StagedBox *box) { return box->place; });
}

/// Where rows may lack, their statements run in a loop of one round or none, which carries the places. Answers the loop, or null where there is no condition.
static LoopOp openGuard(OpBuilder &b, LevelLoopOp round, RoleScalars &scalars, StagedBoxes &own) {
  auto guard = dyn_cast<scf::IfOp>(round->getParentOp());
  if (!guard)
    return {};
  Location loc = round.getLoc();
  Value condition = scalars.get(b, guard.getCondition());
  Value one = arith::ConstantIndexOp::create(b, loc, 1), none = arith::ConstantIndexOp::create(b, loc, 0);
  SmallVector<StagedBox *> places = placesOf(own, /*inRound=*/false);
  auto item = LoopOp::create(b, loc, "item", arith::SelectOp::create(b, loc, condition, one, none).getResult(),
                             valuesOf(places));
  setPlaces(places, item.getIterArgs());
  b = OpBuilder::atBlockEnd(item.getBlock());
  return item;
}

static void closeGuard(OpBuilder &b, LoopOp item, StagedBoxes &own) {
  if (!item)
    return;
  SmallVector<StagedBox *> places = placesOf(own, /*inRound=*/false);
  YieldOp::create(b, item.getLoc(), valuesOf(places));
  setPlaces(places, item.getResults());
  b.setInsertionPointAfter(item);
}

/// The rounds in a role; they carry the places that they fill, and `more`.
LevelLoopOp StatementRoles::cloneRound(OpBuilder &b, RoleScalars &scalars, StagedBoxes &own, ValueRange more) {
  SmallVector<StagedBox *> places = placesOf(own, /*inRound=*/true);
  SmallVector<Value> carried = valuesOf(places);
  llvm::append_range(carried, more);
  auto made = LevelLoopOp::create(b, loc, round.getName(), round.getTensor(), round.getLevel(),
                                  scalars.get(b, round.getParent()), carried);
  scalars.map(round.getPosition(), made.getPosition());
  for (auto [before, after] : llvm::zip(round.getCoordinates(), made.getCoordinates()))
    scalars.map(before, after);
  setPlaces(places, made.getIterArgs());
  return made;
}

//===- Producer -----------------------------------------------------------===//

Value StatementRoles::loadBox(OpBuilder &b, StagedBox &box, RoleScalars &scalars) {
  SmallVector<Value> bases = basesOf(b, box.read, variance, scalars);
  Value tile = AcquireOp::create(b, loc, TypeRange(Type(box.tile)), box.place).getTiles()[0];
  lacis::loadBox(b, box.read, bases, tile);
  return ReleaseOp::create(b, loc, box.place.getType(), box.place);
}

LogicalResult StatementRoles::produce(OpBuilder b, Value group) {
  StagedBoxes own = boxes;
  RoleScalars scalars(groups);
  scalars.map(groups.getCoordinate(), group);
  LoopOp item = openGuard(b, round, scalars, own);
  for (auto &[read, box] : own)
    if (!box.inRound)
      box.place = loadBox(b, box, scalars);
  LevelLoopOp made = cloneRound(b, scalars, own, {});
  OpBuilder in = OpBuilder::atBlockEnd(made.getBlock());
  SmallVector<StagedBox *> places = placesOf(own, /*inRound=*/true);
  for (StagedBox *box : places)
    box->place = loadBox(in, *box, scalars);
  YieldOp::create(in, loc, valuesOf(places));
  setPlaces(places, made.getResults());
  b.setInsertionPointAfter(made);
  closeGuard(b, item, own);
  YieldOp::create(b, loc, ValueRange());
  return success();
}

//===- Consumer -----------------------------------------------------------===//

/// What rounds hand on are the tensors that they write and that hold something before the first.
LogicalResult StatementRoles::consumeRounds(OpBuilder &b, TileStatements &statements, StagedBoxes &own,
                                            RoleScalars &scalars) {
  llvm::SetVector<Value> written;
  round->walk([&](WriteOp write) {
    if (statements.state(write.getTensor()))
      written.insert(write.getTensor());
  });
  SmallVector<Value> states = llvm::map_to_vector(written, [&](Value tensor) { return statements.state(tensor); });
  LevelLoopOp made = cloneRound(b, scalars, own, states);
  for (auto [tensor, state] : llvm::zip(written, ValueRange(made.getIterArgs()).take_back(states.size())))
    statements.state(tensor) = state;
  OpBuilder in = OpBuilder::atBlockEnd(made.getBlock());
  for (Operation &op : round.getBlock()->without_terminator())
    if (auto statement = dyn_cast<LoopOp>(op); statement && failed(statements.emit(in, statement)))
      return failure();
  SmallVector<StagedBox *> places = placesOf(own, /*inRound=*/true);
  SmallVector<Value> next = valuesOf(places);
  for (Value tensor : written)
    next.push_back(statements.state(tensor));
  YieldOp::create(in, loc, next);
  setPlaces(places, made.getResults());
  for (auto [tensor, state] : llvm::zip(written, ValueRange(made.getResults()).take_back(states.size())))
    statements.state(tensor) = state;
  b.setInsertionPointAfter(made);
  return success();
}

LogicalResult StatementRoles::consumeItem(OpBuilder &b, StagedBoxes &own, RoleScalars &scalars) {
  TileStatements statements(variance, own, scalars);
  for (auto &[read, box] : own)
    if (!box.inRound)
      box.held = AcquireOp::create(b, loc, TypeRange(Type(box.tile)), box.place).getTiles()[0];
  for (Operation &op : round->getBlock()->without_terminator()) {
    LogicalResult done = success();
    if (&op == round)
      done = consumeRounds(b, statements, own, scalars);
    else if (auto statement = dyn_cast<LoopOp>(op))
      done = statements.emit(b, statement);
    else if (!isPure(&op) && !isa<WorkspaceOp>(op))
      done = refuseStatement(&op);
    if (failed(done))
      return failure();
  }
  for (auto &[read, box] : own)
    if (!box.inRound)
      box.place = ReleaseOp::create(b, loc, box.place.getType(), box.place);
  return success();
}

LogicalResult StatementRoles::consume(OpBuilder b, Value group) {
  StagedBoxes own = boxes;
  RoleScalars scalars(groups);
  scalars.map(groups.getCoordinate(), group);
  LoopOp item = openGuard(b, round, scalars, own);
  if (failed(consumeItem(b, own, scalars)))
    return failure();
  closeGuard(b, item, own);
  YieldOp::create(b, loc, ValueRange());
  return success();
}

LogicalResult StatementRoles::run() {
  if (failed(readLoops()) || failed(findBoxes()))
    return failure();
  OpBuilder b(groups);
  for (auto &[read, box] : boxes)
    box.place = RingOp::create(b, loc, RingType::get(b.getContext(), box.inRound ? stages : 1, {box.tile}));
  auto roles = RolesOp::create(b, loc, b.getI64IntegerAttr(1), b.getI64IntegerAttr(*groups.getTrip()));
  bool isOne = *groups.getTrip() == 1;
  auto region = [&](Region &role, unsigned numbers) {
    Block &block = role.emplaceBlock();
    for (unsigned number = 0; number < numbers; ++number)
      block.addArgument(b.getIndexType(), loc);
    OpBuilder in = OpBuilder::atBlockEnd(&block);
    Value group = isOne ? arith::ConstantIndexOp::create(in, loc, 0).getResult() : Value(block.getArguments().back());
    return std::pair(in, group);
  };
  auto [producer, first] = region(roles.getProducer(), isOne ? 0 : 1);
  auto [consumer, second] = region(roles.getConsumer(), isOne ? 1 : 2);
  if (failed(produce(producer, first)) || failed(consume(consumer, second)))
    return failure();
  groups.erase();
  for (unsigned number = 0; number < function.getNumArguments(); ++number)
    function.removeArgAttr(number, "lacis.staged");
  return success();
}

LevelLoopOp lacis::roundOfStatements(func::FuncOp function) {
  LevelLoopOp found;
  function.walk([&](LevelLoopOp loop) {
    if (loop.getTiled())
      found = loop;
  });
  return found;
}

LogicalResult lacis::formStatementRoles(func::FuncOp function) {
  return StatementRoles(function, roundOfStatements(function)).run();
}
