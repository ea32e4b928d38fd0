// SPDX-License-Identifier: Apache-2.0
/// \file
/// A loop whose rounds are statements of tiles becomes roles: a producer brings the boxes of operands that products take,
/// a consumer runs the statements. Both run the loops of the one nest.
#include "StatementRoles.h"

#include "BoxLoads.h"
#include "FindBoxes.h"
#include "GatheredFactors.h"
#include "LateBox.h"
#include "RoleItems.h"
#include "StatementRounds.h"
#include "StepTiles.h"
#include "TileFactors.h"
#include "TileNest.h"
#include "TileVectors.h"
#include "TileVersions.h"
#include "lacis/Dialect/Lacis/IR/Follows.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Dialect/Lacis/IR/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

static constexpr int64_t kThreads = 128; // of a warpgroup

namespace {

/// The loop whose rounds are warpgroups; where the one right around is bound to blocks, there is one of each.
LoopOp groupsAround(LoopOpInterface round) {
  auto around = round->getParentOfType<LoopOp>();
  if (!around || !around.getBind() || !isBlock(*around.getBind()))
    return around;
  OpBuilder b = OpBuilder::atBlockBegin(around.getBlock());
  Location loc = round.getLoc();
  auto groups = LoopOp::create(b, loc, "group", arith::ConstantIndexOp::create(b, loc, 1).getResult());
  groups.setBind(ParallelUnit::Warpgroup);
  Block *inner = groups.getBlock();
  inner->getOperations().splice(inner->end(), around.getBlock()->getOperations(), std::next(groups->getIterator()),
                                std::prev(around.getBlock()->end()));
  b.setInsertionPointToEnd(inner);
  YieldOp::create(b, loc, ValueRange());
  return groups;
}

class StatementRoles {
public:
  StatementRoles(func::FuncOp function, LoopOpInterface round)
      : function(function), rounds(Rounds::of(round)), round(round), groups(groupsAround(round)), loc(round.getLoc()) {}
  LogicalResult run();

private:
  LogicalResult readLoops();
  bool isOwn(const StagedBox &box);
  void shareRounds();
  void computeAhead(OpBuilder &b, RoleScalars &scalars, Value number);
  LogicalResult produce(OpBuilder b, Value group);
  LogicalResult consume(OpBuilder b, Value group);
  bool storesOne();
  void loadAhead(OpBuilder &b, RoleScalars &scalars, TileStatements &statements);
  LogicalResult emitBehind(OpBuilder &b, Operation *op, StagedBoxes &own, RoleScalars &scalars, TileStatements &statements);
  int64_t gatheredNumbers();
  int64_t elements();
  LogicalResult consumeItem(OpBuilder &b, StagedBoxes &own, RoleScalars &scalars);

  func::FuncOp function;
  Rounds rounds;
  LoopOpInterface round;
  LoopOp groups; // whose rounds are warpgroups, each with rows of its own
  RoleItems items;
  Location loc;
  TileVariance variance;
  StagedBoxes boxes;
  LateBox late;
  TileVersions versions;
  SmallVector<ReadOp> rows; // numbers of the rows, the same in all rounds
  int64_t consumers = 1;    // that take what rounds bring; else each group has rings of its own
};

} // namespace

/// The loops of tiles, and the one whose rounds run side by side.
LogicalResult StatementRoles::readLoops() {
  if (!groups || groups.getBind() != ParallelUnit::Warpgroup || !groups.getTrip())
    return round->emitError("tiles: no loop right around loop '")
           << round.getName() << "' is bound to blocks or to 'warpgroup'; bind the one whose rounds are rows of tiles";
  if (*groups.getTrip() < 1)
    return groups.emitError("tiles: loop '") << groups.getName() << "' is bound to 'warpgroup' and has no rounds";
  FailureOr<RoleItems> around = RoleItems::around(groups, round);
  if (failed(around))
    return failure();
  items = *around;
  LogicalResult ok = success();
  groups->walk([&](LoopOp loop) {
    if (loop == groups || rounds.contain(loop))
      return;
    bool isGathered = round->isAncestor(loop) && letterOf(loop.getName()) == letterOf(round.getName());
    if (!loop.getTrip())
      ok = loop.emitError("tiles: loop '") << loop.getName() << "' has no constant trip count, as a tile has";
    else
      variance.add(loop, isGathered ? rounds.gathered() : 1);
  });
  return ok;
}

/// Is it another box for each group? All find theirs in a step.
bool StatementRoles::isOwn(const StagedBox &box) {
  return !findOf(box.read) && llvm::any_of(box.read.indices, [&](Value index) {
    std::optional<TileVariance::Place> place = variance.placeInParts(index);
    return place && place->base && followsFrom(place->base, groups.getCoordinate());
  });
}

/// Groups that have the same rounds are consumers of one producer. Vectors, and parts of gathered rounds, come with boxes
/// that all have.
void StatementRoles::shareRounds() {
  bool areWhole = llvm::none_of(boxes, [&](StagedBox &box) {
    return (!box.vectors.empty() || (box.inRound && rounds.gathered() > 1)) && isOwn(box);
  });
  if (!boxes.empty() && (*groups.getTrip() == 1 || !sharesRounds(groups, round) || !areWhole))
    return;
  consumers = *groups.getTrip();
  for (StagedBox &box : boxes) {
    box.isShared = !isOwn(box);
    box.consumers = box.isShared ? 1 : consumers;
  }
}

//===- Producer -----------------------------------------------------------===//

/// What is the same in all rounds of what the number follows from is computed before them: they would wait for loads.
void StatementRoles::computeAhead(OpBuilder &b, RoleScalars &scalars, Value number) {
  Operation *op = number.getDefiningOp();
  if (!op || !items.outermost()->isAncestor(op) || op->getNumRegions() != 0)
    return;
  if (!changesInRound(number, round))
    (void)scalars.get(b, number);
  else
    llvm::for_each(op->getOperands(), [&](Value operand) { computeAhead(b, scalars, operand); });
}

/// `group` is null where one producer serves all.
LogicalResult StatementRoles::produce(OpBuilder b, Value group) {
  if (boxes.empty()) {
    YieldOp::create(b, loc, ValueRange());
    return success();
  }
  StagedBoxes own = boxes;
  RoleScalars scalars(items.outermost());
  if (group)
    scalars.map(groups.getCoordinate(), group);
  items.open(b, scalars, own);
  BoxLoads loads(groups, loc, variance, own, scalars);
  for (StagedBox &box : own)
    if (!box.inRound)
      box.place = loads.load(b, box);
  for (StagedBox &box : own)
    if (FindOp tile = findOf(box.read))
      computeAhead(b, scalars, tile.getParent());
    else if (box.partIndex)
      loads.findParts(b, box);
  RoleScalars outside = scalars; // numbers that a round makes are its own
  Operation *made = rounds.open(b, own, scalars, {});
  SmallVector<StagedBox *> places = placesOf(own, /*inRound=*/true);
  for (StagedBox *box : places)
    box->place = loads.load(b, *box);
  setPlaces(places, rounds.close(b, made, valuesOf(places)));
  scalars = outside;
  late.load(b, own, scalars);
  items.close(b, own);
  YieldOp::create(b, loc, ValueRange());
  return success();
}

//===- Consumer -----------------------------------------------------------===//

/// One accumulator of rows and columns goes to the output. Where others wait for it, they leave no registers for the address
/// of a box.
bool StatementRoles::storesOne() {
  int64_t stores = 0;
  groups->walk([&](WriteOp write) {
    stores += isa<BlockArgument>(write.getTensor()) && variance.of(write.getValue()).size() == 2;
  });
  return stores == 1;
}

/// Where arithmetic reads elements of an operand: they wait for the products.
int64_t StatementRoles::elements() {
  int64_t most = 0;
  round->walk([&](ReadOp read) {
    const TileVariance::Coordinates &along = variance.of(read.getResult());
    if (isa<BlockArgument>(read.getTensor()) && !boxes.contains(read) && along.size() == 2)
      most = std::max(most, variance.sizeOf(along[0]) * variance.sizeOf(along[1]) / kThreads);
  });
  return most;
}

/// Where arithmetic reads the coordinates of gathered columns: those of each part wait in a register.
int64_t StatementRoles::gatheredNumbers() {
  bool readsColumns = round
                          .walk([&](arith::IndexCastOp cast) {
                            std::optional<TileVariance::Place> place = variance.placeOf(cast.getIn());
                            bool isColumn = place && place->coordinate && place->base && changesInRound(place->base, round);
                            return isColumn ? WalkResult::interrupt() : WalkResult::advance();
                          })
                          .wasInterrupted();
  return readsColumns && rounds.gathered() > 1 ? rounds.gathered() : 0;
}

/// Where rows stand, and what is stored beside the sums, is known before the rounds: nothing waits for it behind them.
void StatementRoles::loadAhead(OpBuilder &b, RoleScalars &scalars, TileStatements &statements) {
  items.outermost()->walk([&](Operation *op) {
    bool isOfItem = isa<BoundsOp>(op) && !groups->isAncestor(op);
    if ((isOfItem || isa<OriginOp>(op)) && variance.of(op->getResult(0)).empty())
      scalars.get(b, op->getResult(0));
  });
  round->walk([&](FindOp find) { computeAhead(b, scalars, find.getParent()); });
  for (Operation *op = round->getNextNode(); op; op = op->getNextNode())
    op->walk<WalkOrder::PreOrder>([&](LoopOp statement) {
      statement->walk([&](WriteOp write) {
        if (isa<BlockArgument>(write.getTensor()))
          statements.loadAhead(b, write.getValue(), statement.getCoordinate());
      });
      return WalkResult::skip();
    });
}

/// A statement before the rounds or behind them, or a choice between some.
LogicalResult StatementRoles::emitBehind(OpBuilder &b, Operation *op, StagedBoxes &own, RoleScalars &scalars,
                                         TileStatements &statements) {
  LogicalResult done = success();
  if (auto statement = dyn_cast<LoopOp>(op))
    return late.emit(b, statement, own, scalars, statements);
  if (auto guard = dyn_cast<scf::IfOp>(op); guard && !guard.elseBlock()) {
    RoleScalars outside = scalars; // numbers that are made in it are its own
    Value condition = scalars.get(b, guard.getCondition());
    if (matchPattern(condition, m_Zero())) // of another version
      return success();
    OpBuilder in = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false).getThenBodyBuilder();
    for (Operation &inner : guard.thenBlock()->without_terminator())
      done = succeeded(done) ? emitBehind(in, &inner, own, scalars, statements) : done;
    scalars = outside;
    return done;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op); branch && branch.elseBlock()) {
    Value condition = scalars.get(b, branch.getCondition());
    chooseBranch(b, loc, condition, late.rings(own), scalars, [&](OpBuilder &in, bool isFirst) {
      Block *side = isFirst ? branch.thenBlock() : branch.elseBlock();
      for (Operation &inner : side->without_terminator())
        done = succeeded(done) ? emitBehind(in, &inner, own, scalars, statements) : done;
    });
    return done;
  }
  bool isRead = isa<ReadOp>(op) && isNumber(cast<ReadOp>(op), variance); // those of an item are read before its rounds
  return isRead || isMemoryEffectFree(op) || isa<WorkspaceOp>(op) ? success() : refuseStatement(op);
}

LogicalResult StatementRoles::consumeItem(OpBuilder &b, StagedBoxes &own, RoleScalars &scalars) {
  TileStatements statements(variance, own, scalars);
  for (StagedBox &box : own) {
    if (!box.inRound)
      box.held = AcquireOp::create(b, loc, own.types(box, variance), box.place).getTiles();
    if (box.consumers == 1)
      continue;
    Value count = arith::ConstantIndexOp::create(b, loc, box.tile.getCount());
    box.first = arith::MulIOp::create(b, loc, scalars.get(b, groups.getCoordinate()), count);
  }
  for (StagedBox &box : own)
    if (box.window)
      findOffsets(b, box, variance, scalars);
  // Two consumers of a block that make two outputs have no registers left for what a branch hands on: the gradient of keys
  // and values, heads of 128, spilled 20 bytes.
  if (*groups.getTrip() == 1 || storesOne())
    statements.branchOnTiles();
  statements.holdFactors(b, *rounds.statements(), gatheredNumbers() + elements());
  for (ReadOp read : rows)
    statements.setKnown(read, loadRows(b, read, variance, scalars));
  groups->walk([&](ReadOp read) {
    if (isNumber(read, variance))
      scalars.map(read, scalars.get(b, read));
  });
  loadAhead(b, scalars, statements);
  for (Operation &op : round->getBlock()->without_terminator()) {
    LogicalResult done = success();
    if (&op == round) {
      done = StatementRounds(rounds, own, scalars, statements).emit(b);
      statements.forget();
      if (storesOne())
        statements.storeThroughBoxes();
    } else {
      done = emitBehind(b, &op, own, scalars, statements);
    }
    if (failed(done))
      return failure();
  }
  for (StagedBox &box : own)
    if (!box.inRound)
      box.place = ReleaseOp::create(b, loc, box.place.getType(), box.place);
  return success();
}

LogicalResult StatementRoles::consume(OpBuilder b, Value group) {
  StagedBoxes own = boxes;
  RoleScalars scalars(items.outermost());
  scalars.map(groups.getCoordinate(), group);
  items.open(b, scalars, own);
  if (failed(versions.emit(b, placesOf(own, /*inRound=*/false), scalars,
                           [&](OpBuilder &in) { return consumeItem(in, own, scalars); })))
    return failure();
  items.close(b, own);
  YieldOp::create(b, loc, ValueRange());
  return success();
}

LogicalResult StatementRoles::run() {
  if (failed(readLoops()))
    return failure();
  FailureOr<StagedBoxes> found = findBoxes(groups, rounds, variance);
  if (failed(found))
    return failure();
  boxes = *found;
  FailureOr<SmallVector<ReadOp>> vectors = findVectors(groups, rounds, variance, boxes);
  if (failed(vectors))
    return failure();
  rows = *vectors;
  shareRounds();
  TileMaps::divideByRows(groups, variance);
  boxes.joinPairs(groups);
  late = LateBox::find(groups, round, boxes, variance);
  versions = TileVersions::find(groups, variance);
  OpBuilder b(items.outermost());
  int64_t stages = round.getPipeline().value_or(1);
  for (StagedBox *box : placesOf(boxes, /*inRound=*/false))
    box->place = RingOp::create(b, loc, RingType::get(b.getContext(), box->inRound ? stages : 1, boxes.tiles(*box, variance)));
  int64_t apart = *groups.getTrip() / consumers;
  auto roles = RolesOp::create(b, loc, b.getI64IntegerAttr(consumers), b.getI64IntegerAttr(apart));
  bool isOne = *groups.getTrip() == 1;
  auto region = [&](Region &role, unsigned numbers) {
    Block &block = role.emplaceBlock();
    for (unsigned number = 0; number < numbers; ++number)
      block.addArgument(b.getIndexType(), loc);
    OpBuilder in = OpBuilder::atBlockEnd(&block);
    Value own = numbers ? Value(block.getArguments().back()) : Value();
    return std::pair(in, isOne ? arith::ConstantIndexOp::create(in, loc, 0).getResult() : own);
  };
  auto [producer, first] = region(roles.getProducer(), apart == 1 ? 0 : 1);
  auto [consumer, second] = region(roles.getConsumer(), apart == 1 ? 1 : 2);
  if (failed(produce(producer, first)) || failed(consume(consumer, second)))
    return failure();
  return eraseReplaced(items.outermost(), round);
}

LevelLoopOp lacis::roundOfStatements(func::FuncOp function) {
  LevelLoopOp found;
  function.walk([&](LevelLoopOp loop) {
    if (loop.getTiled())
      found = loop;
  });
  return found;
}

LogicalResult lacis::formStatementRoles(func::FuncOp function, LoopOpInterface round) {
  return StatementRoles(function, round).run();
}
