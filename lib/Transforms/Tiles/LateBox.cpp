// SPDX-License-Identifier: Apache-2.0
/// \file
/// A staged operand that statements behind the rounds read element by element.
#include "LateBox.h"

#include "RoleItems.h"
#include "TileFactors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace lacis;

/// The element that a read takes, where it lies inside of the axes: boxes have 0 behind their ends.
static Access withoutClamps(ReadOp read) {
  auto indices = llvm::map_to_vector(read.getIndices(), [](Value index) {
    auto clamp = index.getDefiningOp<arith::MinUIOp>();
    return clamp ? clamp.getLhs() : index;
  });
  Access found;
  found.op = read, found.tensor = read.getTensor(), found.indices = foldDigits(indices);
  return found;
}

/// The type of the box that the read takes elements of; null of other reads, and of operands that are not staged. Machines
/// read half types of tiles.
static TileType boxOf(ReadOp read, TileVariance &variance) {
  auto argument = dyn_cast<BlockArgument>(read.getTensor());
  if (!argument || read.getType().isF32() || variance.of(read.getResult()).size() != 2)
    return {};
  auto function = read->getParentOfType<func::FuncOp>();
  SmallVector<int64_t> sides;
  for (Value index : ArrayRef(withoutClamps(read).indices).take_back(2))
    if (std::optional<TileVariance::Place> place = variance.placeOf(index); place && place->coordinate)
      sides.push_back(variance.sizeOf(place->coordinate));
  bool isStaged = function.getArgAttr(argument.getArgNumber(), "lacis.staged") != nullptr;
  return isStaged && sides.size() == 2 ? tileOfBox(read.getType(), sides[0], sides[1]) : TileType();
}

LateBox LateBox::find(LoopOp groups, LoopOpInterface round, StagedBoxes &boxes, TileVariance &variance) {
  LateBox found;
  found.groups = groups, found.variance = &variance;
  TileType type;
  auto collect = [&](ReadOp read) {
    TileType own = boxes.contains(read) ? TileType() : boxOf(read, variance);
    type = own ? own : type;
    if (own)
      found.reads.push_back(read);
  };
  for (Operation *op = round->getNextNode(); op; op = op->getNextNode())
    op->walk(collect);
  for (StagedBox *box : placesOf(boxes, /*inRound=*/true))
    if (type && box->tileOfRing() == type && box->vectors.empty()) {
      found.ring = box - boxes.begin();
      return found;
    }
  found.reads.clear();
  return found;
}

SmallVector<StagedBox *> LateBox::rings(StagedBoxes &own) {
  return reads.empty() ? SmallVector<StagedBox *>() : SmallVector<StagedBox *>{&own[ring]};
}

ValueRange LateBox::acquire(OpBuilder &b, StagedBoxes &own) {
  return AcquireOp::create(b, groups.getLoc(), own.types(own[ring], *variance), own[ring].place).getTiles();
}

void LateBox::release(OpBuilder &b, StagedBoxes &own) {
  own[ring].place = ReleaseOp::create(b, groups.getLoc(), own[ring].place.getType(), own[ring].place);
}

void LateBox::load(OpBuilder &b, StagedBoxes &own, RoleScalars &scalars) {
  if (reads.empty())
    return;
  auto branch = reads[0]->getParentOfType<scf::IfOp>();
  if (!branch || !groups->isAncestor(branch))
    return loadAll(b, own, scalars);
  Value condition = scalars.get(b, branch.getCondition());
  chooseBranch(b, branch.getLoc(), condition, rings(own), scalars, [&](OpBuilder &in, bool isFirst) {
    Block *side = isFirst ? branch.thenBlock() : branch.elseBlock();
    if (side->findAncestorOpInBlock(*reads[0]))
      loadAll(in, own, scalars);
  });
}

void LateBox::loadAll(OpBuilder &b, StagedBoxes &own, RoleScalars &scalars) {
  Location loc = groups.getLoc();
  Value count = arith::ConstantIndexOp::create(b, loc, *groups.getTrip());
  auto loop = LoopOp::create(b, loc, "part", count, own[ring].place);
  OpBuilder in = OpBuilder::atBlockEnd(loop.getBlock());
  own[ring].place = loop.getIterArgs()[0];
  RoleScalars numbers = scalars;
  numbers.map(groups.getCoordinate(), loop.getCoordinate());
  for (ReadOp read : reads) {
    Access element = withoutClamps(read);
    SmallVector<Value> bases = basesOf(in, element, *variance, numbers);
    loadBox(in, element, bases, acquire(in, own)[0]);
    release(in, own);
  }
  YieldOp::create(in, loc, own[ring].place);
  own[ring].place = loop.getResult(0);
}

/// Lets the boxes of so many consumers pass.
void LateBox::pass(OpBuilder &b, StagedBoxes &own, Value consumers) {
  auto loop = LoopOp::create(b, groups.getLoc(), "part", consumers, own[ring].place);
  OpBuilder in = OpBuilder::atBlockEnd(loop.getBlock());
  own[ring].place = loop.getIterArgs()[0];
  for (size_t number = 0; number < reads.size(); ++number) {
    acquire(in, own);
    release(in, own);
  }
  YieldOp::create(in, groups.getLoc(), own[ring].place);
  own[ring].place = loop.getResult(0);
}

Value LateBox::take(OpBuilder &b, StagedBoxes &own, ReadOp read) {
  auto columns = cast<LoopOp>(read->getBlock()->getParentOp()), rows = cast<LoopOp>(columns->getParentOp());
  auto type = AccType::get(b.getContext(), {*rows.getTrip(), *columns.getTrip()}, b.getF32Type());
  bool isTransposed = variance->placeOf(withoutClamps(read).indices.back())->coordinate == rows.getCoordinate();
  UnitAttr transposed = isTransposed ? b.getUnitAttr() : UnitAttr();
  return ReadTileOp::create(b, read.getLoc(), type, acquire(b, own)[0], /*place=*/Value(), transposed);
}

LogicalResult LateBox::emit(OpBuilder &b, LoopOp statement, StagedBoxes &own, RoleScalars &scalars,
                            TileStatements &statements) {
  auto *read = llvm::find_if(reads, [&](ReadOp each) { return statement->isProperAncestor(each); });
  if (read == reads.end())
    return statements.emit(b, statement);
  Value consumer = scalars.get(b, groups.getCoordinate());
  if (*read == reads.front())
    pass(b, own, consumer);
  statements.setKnown(*read, take(b, own, *read));
  if (failed(statements.emit(b, statement)))
    return failure();
  release(b, own);
  if (*read != reads.back())
    return success();
  Value last = arith::ConstantIndexOp::create(b, groups.getLoc(), *groups.getTrip() - 1);
  pass(b, own, arith::SubIOp::create(b, groups.getLoc(), last, consumer));
  return success();
}
