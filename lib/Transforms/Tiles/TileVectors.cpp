// SPDX-License-Identifier: Apache-2.0
/// \file
/// Vectors that the statements of a nest read: one number for each row of a tile, or one for each column.
#include "TileVectors.h"

#include "TileFactors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace lacis;

/// Numbers of float32 in a chunk of 16 bytes: rows of a tensor that is copied by boxes are multiples of it apart.
static constexpr int64_t kChunk = 4;

/// Do all rows of the vectors begin at chunks? Machines copy nothing that does not.
static bool beginsRowsAtChunks(ReadOp read) {
  auto argument = cast<BlockArgument>(read.getTensor());
  auto type = cast<RankedTensorType>(argument.getType());
  if (!type.isDynamicDim(type.getRank() - 1))
    return type.getShape().back() % kChunk == 0;
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto classes = function.getArgAttrOfType<DenseI64ArrayAttr>(argument.getArgNumber(), "lacis.divisible");
  return classes && classes.asArrayRef().back() % kChunk == 0;
}

/// The outermost loop of the statement that the operation is part of.
static LoopOp statementOf(Operation *op, LoopOp groups, Rounds &rounds) {
  LoopOp found;
  auto isAround = [&](LoopOp loop) { return !loop || loop == groups || rounds.contain(loop); };
  for (auto loop = op->getParentOfType<LoopOp>(); !isAround(loop); loop = loop->getParentOfType<LoopOp>())
    found = loop;
  return found;
}

/// The coordinate of a tile along which the read of float32 numbers runs, or null.
static Value coordinateOf(ReadOp read, TileVariance &variance) {
  Value coordinate;
  for (auto [number, index] : llvm::enumerate(read.getIndices())) {
    std::optional<TileVariance::Place> place = variance.placeOf(index);
    if (!place || (number + 1 != read.getIndices().size() && place->coordinate))
      return {};
    coordinate = place->coordinate;
  }
  return read.getType().isF32() ? coordinate : Value();
}

bool lacis::isNumber(ReadOp read, TileVariance &variance) {
  return isa<BlockArgument>(read.getTensor()) && variance.of(read.getResult()).empty();
}

/// A read that takes a box of a round: the first of the vector's own statement, else the last before it, else the first.
static ReadOp besideOf(LoopOp statement, Rounds rounds, StagedBoxes &boxes) {
  ReadOp own, before, behind;
  rounds.loop->walk([&](ReadOp read) {
    auto [box, tile] = boxes.find(read);
    if (!box || tile != 0 || !box->inRound)
      return;
    if (statement->isProperAncestor(read))
      own = own ? own : read;
    else if (rounds.statements()->findAncestorOpInBlock(*read)->isBeforeInBlock(statement))
      before = read;
    else
      behind = behind ? behind : read;
  });
  return own ? own : before ? before : behind;
}

FailureOr<SmallVector<ReadOp>> lacis::findVectors(LoopOp groups, Rounds rounds, TileVariance &variance,
                                                  StagedBoxes &boxes) {
  SmallVector<ReadOp> rows, columns;
  WalkResult found = groups->walk([&](ReadOp read) -> WalkResult {
    if (!isa<BlockArgument>(read.getTensor()) || boxes.contains(read) || isNumber(read, variance))
      return WalkResult::advance();
    LoopOp statement = statementOf(read, groups, rounds);
    if (!statement)
      return refuseStatement(read);
    Value coordinate = coordinateOf(read, variance);
    if (!coordinate) // a map reads it element by element
      return WalkResult::advance();
    if (coordinate != statement.getCoordinate() && !rounds.loop->isAncestor(statement))
      return refuseStatement(read);
    (coordinate == statement.getCoordinate() ? rows : columns).push_back(read);
    return WalkResult::advance();
  });
  if (found.wasInterrupted())
    return failure();
  bool isInOneRun = rounds.gathered() == 1;
  for (ReadOp vector : columns) {
    if (isInOneRun && !beginsRowsAtChunks(vector)) // the statement loads it
      continue;
    ReadOp beside = besideOf(statementOf(vector, groups, rounds), rounds, boxes);
    if (!beside)
      return refuseStatement(vector);
    boxes.addVector(vector, beside, variance);
  }
  return rows;
}

//===- Loads --------------------------------------------------------------===//

Value lacis::loadRows(OpBuilder &b, ReadOp read, TileVariance &variance, RoleScalars &scalars) {
  return loadVector(b, read, coordinateOf(read, variance), variance, scalars);
}

Value lacis::loadColumns(OpBuilder &b, ReadOp read, Value row, TileVariance &variance, RoleScalars &scalars) {
  Value column = coordinateOf(read, variance);
  return column && column != row ? loadVector(b, read, row, variance, scalars) : Value();
}

void lacis::loadLine(OpBuilder &b, ReadOp read, Value line, TileVariance &variance, RoleScalars &scalars,
                     TilePart part) {
  SmallVector<Value> at = basesOf(b, read, variance, scalars), place{at.back()};
  if (at.size() > 1)
    place.insert(place.begin(), numberOf(b, read.getTensor(), ArrayRef(at).drop_back(), /*behind=*/1));
  loadTile(b, read.getLoc(), read.getTensor(), place, line, Value(), part);
}
