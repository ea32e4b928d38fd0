// SPDX-License-Identifier: Apache-2.0
/// \file
/// The default schedule of a rolled loop on tensor cores: a block has a row of tiles, and several share a processor.
#include "Tiles.h"
#include "lacis/Dialect/Lacis/IR/Follows.h"
#include "lacis/Dialect/Lacis/IR/PostponedSums.h"
#include "lacis/Dialect/Lacis/IR/RolledTileSizes.h"

using namespace mlir;
using namespace lacis;

/// Places of a ring: one is read while others are filled. With three, heads of 128 are 4 % faster on blocks of 64 at 75 %
/// zeros than with two; with four, heads of 64 are as fast as with three.
static constexpr int64_t kMostStages = 4;

namespace {
/// The dense operands that products take, and the bytes of their boxes: of those that stay, with what stores need, and those
/// of a round; of the vectors that lie beside the boxes of a round; the columns of all that is stored, and those of a round.
struct Boxes {
  std::vector<std::string> names;
  int64_t held = 0, ofRound = 0, vectors = 0, stored = 0, columns = 0;
};
} // namespace

/// The types of outputs that have rows of columns.
static SmallVector<RankedTensorType> typesOfOutputs(func::FuncOp function) {
  SmallVector<RankedTensorType> types;
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    auto has = [&](StringRef mark) { return function.getArgAttr(argument.getArgNumber(), mark) != nullptr; };
    if (type && (has("lacis.output") || has("lacis.written")) && !ShapedType::isDynamic(type.getShape().back()))
      types.push_back(type);
  }
  return types;
}

/// How many of them a tile has that reads one of its rows at `row`: its side, or as many as the round has columns.
static int64_t rowsOf(ReadOp read, Value row, LevelLoopOp round) {
  int64_t rows = kTileSide;
  for (auto loop = read->getParentOfType<LoopOp>(); loop && round->isAncestor(loop); loop = loop->getParentOfType<LoopOp>())
    if (followsFrom(row, loop.getCoordinate()))
      rows = std::max(rows, loop.getTrip().value_or(0));
  return rows;
}

static Boxes boxesOf(LevelLoopOp round, func::FuncOp function, const RolledRoom &room) {
  Boxes found;
  SmallVector<RankedTensorType> staying;
  llvm::SmallDenseSet<Value> vectors;
  round->walk([&](ReadOp read) {
    auto argument = dyn_cast<BlockArgument>(read.getTensor());
    if (!argument)
      return;
    if (read->getParentOfType<LoopOp>().getNumResults() == 0) { // vectors have no step
      if (vectors.insert(argument).second)
        found.vectors += rowsOf(read, read.getIndices().back(), round) * sizeof(float);
      return;
    }
    std::string name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "lacis.name").str();
    if (llvm::is_contained(found.names, name))
      return;
    found.names.push_back(name);
    auto type = cast<RankedTensorType>(argument.getType());
    int64_t rows = rowsOf(read, read.getIndices().drop_back().back(), round);
    int64_t bytes = rows * type.getShape().back() * type.getElementTypeBitWidth() / 8;
    if (llvm::any_of(read.getIndices(), [&](Value index) { return changesInRound(index, round); }))
      found.ofRound += bytes, found.columns = rows;
    else
      found.held += bytes, staying.push_back(type);
  });
  SmallVector<RankedTensorType> stored = typesOfOutputs(function);
  for (RankedTensorType type : stored)
    found.stored += type.getShape().back();
  auto hasBox = [&](RankedTensorType type) { // a tile of it fills the box of one that stays
    return type.getShape().back() == stored[0].getShape().back() && type.getElementType() == stored[0].getElementType();
  };
  if (stored.size() != 1 || llvm::none_of(staying, hasBox))
    found.held += room.storeBytes;
  return found;
}

void lacis::scheduleRolled(ScheduleBuilder &schedule, LevelLoopOp round, const RolledRoom &room) {
  SmallVector<LoopOp> outer;
  for (auto loop = round->getParentOfType<LoopOp>(); loop; loop = loop->getParentOfType<LoopOp>())
    outer.push_back(loop);
  std::string name = round.getName().str(), rows = outer.front().getName().str();
  // Rows of tiles are many, and have block.x, which counts fastest and furthest: neighbours read the same of a batch's
  // operands. Where few are much longer than the others, that of the last in the batch would begin last, and work on alone:
  // they all begin together, with rows on block.y.
  StringRef letter = letterOf(rows), ofRows = "block.x", ofBatch = "block.y";
  auto isOfRows = [&](LoopOp loop) { return letterOf(loop.getName()) == letter; };
  if (!llvm::all_of(outer, isOfRows) && letterHas(schedule.getNest(), letter, "lacis.uneven"))
    std::swap(ofRows, ofBatch);
  std::vector<std::pair<std::string, StringRef>> around;
  for (LoopOp loop : llvm::reverse(llvm::drop_begin(outer)))
    around.push_back({loop.getName().str(), isOfRows(loop) ? ofRows : ofBatch});
  Boxes boxes = boxesOf(round, schedule.getNest().getFunction(), room);
  // Wide rounds of rows that are several tiles of a stored block: two consumers share what rounds bring, and have all of the
  // memory. Rounds of 64 columns are 4 to 7 % slower so than as two blocks, where outputs have 128.
  bool areShared = boxes.columns > kTileSide && boxes.stored >= room.shared && outer.front().getTrip().value_or(1) % 2 == 0 &&
                   sharesRounds(outer.front(), round);
  int64_t stages = areShared ? kMostStages : 0; // as many blocks as can share a processor, whose copies run ahead
  for (int64_t blocks = room.blocks; blocks > 0 && stages < 2; --blocks)
    stages = std::min(kMostStages, (room.bytes / blocks - boxes.held) / boxes.ofRound);
  boxes.held *= areShared ? 2 : 1;
  stages = std::min(stages, std::max<int64_t>((room.most - boxes.held) / (boxes.ofRound + boxes.vectors), 1));
  for (auto &[loop, unit] : around)
    schedule.bind(loop, unit);
  // Sums of more columns need more registers than a consumer has that shares a processor with another block's: two consumers
  // of one block have 8 more each.
  if (areShared || boxes.stored > room.sums) {
    schedule.split(rows, 2);
    schedule.bind(rows + "1", "warpgroup");
    rows += "0";
  }
  schedule.bind(rows, ofRows);
  for (const std::string &operand : boxes.names)
    schedule.stage(operand, "shared");
  if (stages > 1)
    schedule.pipeline(name, stages);
  schedule.tensorize({name});
  // Sums that can wait for the next round run beside its first products: by hand, heads of 128 take 0.81 to 0.95 of the
  // time so (docs/tensor-cores.md).
  if (succeeded(schedule.getResult()) && !sumsToPostpone(round).empty())
    schedule.add(SkewStepAttr::get(round.getContext(), name, std::nullopt));
}
