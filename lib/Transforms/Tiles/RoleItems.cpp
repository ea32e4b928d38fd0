// SPDX-License-Identifier: Apache-2.0
/// \file
/// What stands around the rounds of a role.
#include "RoleItems.h"

#include "StatementRounds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace lacis;

static bool isOfBlocks(Operation *loop) {
  auto own = dyn_cast<LoopOp>(loop);
  return own && own.getBind() && isBlock(*own.getBind());
}

FailureOr<RoleItems> RoleItems::around(LoopOp groups, LoopOpInterface round) {
  RoleItems found;
  auto isItem = [](Operation *op) { return isa<LoopOp, LevelLoopOp>(op) && !isOfBlocks(op); };
  Operation *op = groups;
  for (; op == groups || isItem(op); op = op->getParentOp())
    found.loops.insert(found.loops.begin(), cast<LoopOpInterface>(op));
  // What one block runs several times, and is none of its items, would begin again on barriers that have moved on.
  Operation *serial = found.loops.size() > 1 && !isOfBlocks(op) ? found.outermost() : nullptr;
  for (; !isa<func::FuncOp>(op); op = op->getParentOp())
    serial = isItem(op) ? op : serial;
  if (serial)
    return serial->emitError("tiles: loop '") << cast<LoopOpInterface>(serial).getName()
                                              << "' stands around roles and is bound to no blocks";
  found.conditions = guardsAround(round);
  return found;
}

/// Where rows may be missing, a loop of one round or none has their statements.
void RoleItems::open(OpBuilder &b, RoleScalars &scalars, StagedBoxes &own) {
  SmallVector<StagedBox *> rings = placesOf(own, /*inRound=*/false);
  auto enter = [&](Operation *made) {
    opened.push_back(made);
    Block &body = made->getRegion(0).front();
    setPlaces(rings, body.getArguments().take_back(rings.size()));
    b = OpBuilder::atBlockEnd(&body);
  };
  for (LoopOpInterface loop : ArrayRef(loops).drop_back())
    enter(openAgain(b, loop, scalars, valuesOf(rings)));
  if (Value all = scalars.all(b, conditions))
    enter(openOnce(b, all.getLoc(), "item", all, valuesOf(rings)));
}

void RoleItems::close(OpBuilder &b, StagedBoxes &own) {
  SmallVector<StagedBox *> rings = placesOf(own, /*inRound=*/false);
  for (Operation *loop : llvm::reverse(opened)) {
    YieldOp::create(b, loop->getLoc(), valuesOf(rings));
    setPlaces(rings, loop->getResults());
    b.setInsertionPointAfter(loop);
  }
  opened.clear();
}

void lacis::chooseBranch(OpBuilder &b, Location loc, Value condition, ArrayRef<StagedBox *> rings, RoleScalars &scalars,
                         llvm::function_ref<void(OpBuilder &, bool isFirst)> body) {
  SmallVector<Value> before = valuesOf(rings);
  auto made = scf::IfOp::create(b, loc, ValueRange(before).getTypes(), condition, /*addThenBlock=*/true,
                                /*addElseBlock=*/true);
  for (Block *side : {made.thenBlock(), made.elseBlock()}) {
    OpBuilder in = OpBuilder::atBlockBegin(side);
    RoleScalars outside = scalars; // numbers that a side makes are its own
    setPlaces(rings, before);
    body(in, side == made.thenBlock());
    scf::YieldOp::create(in, loc, valuesOf(rings));
    scalars = outside;
  }
  setPlaces(rings, made.getResults());
}
