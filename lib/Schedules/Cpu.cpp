// SPDX-License-Identifier: Apache-2.0
/// \file
/// The default schedule of CPUs: a unit is a row (or a tile of rows) times a panel of lanes.
///
/// 128 bytes of accumulators a row fill four AVX2 or two AVX-512 registers; the dense operand is
/// laid out in panels of as many lanes, so that each entry of the sparse operand reads one
/// contiguous, aligned run of it, and a panel stays in the second-level cache.
#include "Facts.h"

#include "lacis/Schedules/Rule.h"

using namespace mlir;
using namespace lacis;

/// Bytes of a row's accumulators, and of a panel's.
static constexpr int64_t kPanelBytes = 128;
/// Bytes of an operand's row that a thread copies at once: a cache line of float32.
static constexpr int64_t kLineBytes = 64;
/// Sums that a row adds to in turn, and the bytes of registers that they may take: additions wait for four cycles.
static constexpr int64_t kSums = 4, kSumBytes = 256;

static CopyRule copyRule(Nest &nest) {
  int64_t bytes = outputBytes(nest);
  return {kPanelBytes / bytes, kLineBytes / bytes, "", "", /*vector=*/1, /*rows=*/false, /*tiles=*/true};
}

/// Rows of one block that share the walk, where they do; answers how many.
static int64_t jamRows(ScheduleBuilder &schedule, StringRef lane, ArrayRef<LoopOp> chain) {
  auto rows = llvm::find_if(llvm::reverse(chain), [&](LoopOp loop) { return letterOf(loop.getName()) != lane; });
  if (rows == llvm::reverse(chain).end())
    return 1;
  LoopOp loop = *rows;
  std::string name = loop.getName().str();
  if (auto trip = loop.getTrip(); !trip || *trip % 2 != 0 || !canJam(loop))
    return 1;
  schedule.split(name, 2);
  schedule.jam(name + "1");
  return 2;
}

/// The loop whose rounds add up a walk: the one around it, where it has a few positions in each of them.
static Operation *roundsOf(LevelLoopOp walk) {
  std::optional<int64_t> trip = formatOf(walk.getTensor()).getLevels()[walk.getLevel()].getExtent().getTrip();
  auto around = dyn_cast<LoopOp>(walk->getParentOp());
  bool isShort = trip && *trip <= kSums && around && reductionOf(around) && !isMarked(around);
  return isShort ? around : walk.getOperation();
}

/// A sum waits for its last addition in each round of a walk, so that the rounds add to several sums in turn: as many
/// as registers hold, of `bytes` each.
static void interleaveSums(ScheduleBuilder &schedule, LoopOp top, int64_t bytes) {
  int64_t count = std::min(kSumBytes / bytes, kSums);
  SmallVector<std::string> names;
  top->walk([&](LevelLoopOp walk) {
    WalkResult inside = walk.getRegion().walk(
        [](Operation *op) { return isa<LoopOp, LevelLoopOp>(op) ? WalkResult::interrupt() : WalkResult::advance(); });
    bool sums = isStateless(walk) && reductionOf(walk) && !walk.getUnroll() && !inside.wasInterrupted();
    StringRef name = cast<LoopOpInterface>(roundsOf(walk)).getName();
    if (sums && !llvm::is_contained(names, name))
      names.push_back(name.str());
  });
  for (const std::string &name : names)
    if (count > 1)
      schedule.unroll(name, count, count);
}

/// Is the copy that this nest empties filled in one nest, that of `loop`?
static bool isFilledIn(LoopOp loop, LoopOp copy) {
  bool found = false;
  outermostLoop(copy)->walk([&](ReadOp read) {
    if (auto workspace = read.getTensor().getDefiningOp<WorkspaceOp>())
      found = llvm::all_of(workspace->getUsers(), [&](Operation *user) {
        return user == read || outermostLoop(loop)->isProperAncestor(user);
      });
  });
  return found;
}

/// The loops around what the nest of `panel` writes to a copy, outermost first; those of `lane` left out.
static SmallVector<LoopOp> rowLoops(LoopOp panel, StringRef lane) {
  WriteOp last;
  panel->walk([&](WriteOp write) {
    auto copy = write.getTensor().getDefiningOp<WorkspaceOp>();
    last = copy && !copy.getPlace() ? write : last;
  });
  SmallVector<LoopOp> loops;
  for (LoopOp loop = last ? last->getParentOfType<LoopOp>() : panel; loop != panel; loop = loop->getParentOfType<LoopOp>())
    if (letterOf(loop.getName()) != lane)
      loops.insert(loops.begin(), loop);
  return loops;
}

/// Rows go from the accumulators to the output as soon as there is a tile of them, through the first-level cache; the
/// loops of the nest begin with `prefix`.
static void emptyInTiles(ScheduleBuilder &schedule, StringRef lane, const CopyRule &copy, const std::string &prefix) {
  Nest &nest = schedule.getNest();
  LoopOp panel = nest.find((prefix + lane + "0").str());
  if (failed(schedule.getResult()) || !panel)
    return;
  SmallVector<LoopOp> inside = rowLoops(panel, lane);
  if (inside.empty() || inside.front().getTrip())
    return;
  StringRef letter = letterOf(inside.front().getName());
  int64_t height = 1;
  for (LoopOp loop : llvm::drop_begin(inside)) {
    if (letterOf(loop.getName()) != letter || !loop.getTrip())
      return;
    height *= *loop.getTrip();
  }
  std::string output =
      prefix +
      nest.getFunction().getArgAttrOfType<StringAttr>(nest.getFunction().getNumArguments() - 1, "lacis.name").str();
  std::string rows = inside.front().getName().str(), emptied = prefixOf(output) + letter.str() + "0";
  LoopOp tiles = nest.find(emptied);
  if (!tiles || !isFilledIn(panel, tiles) || (copy.tile % height != 0 && height % copy.tile != 0))
    return;
  if (height > copy.tile)
    schedule.split(emptied, height / copy.tile);
  if (height < copy.tile) {
    schedule.split(rows, copy.tile / height);
    rows += "0";
  }
  schedule.computeAt(output, rows);
}

/// The nest for up to `most` vectors: as the main one, in one panel of so many lanes.
static void scheduleOnePanel(ScheduleBuilder &schedule, StringRef lane, CopyRule copy, int64_t most) {
  Nest &nest = schedule.getNest();
  LoopOp vectors = nest.find(lane);
  if (!edgesOfShares(nest).empty()) // parts of rows stand in a workspace, which a case has none of
    return;
  if (!vectors || knownSize(vectors.getUpper()) || knownDivisor(vectors.getUpper()) > most)
    return;
  if (hasMarks(nest.mainChain().front())) // steps that were given shape the loops of a sum
    return;
  std::string prefix = openCase(schedule, lane, most);
  if (failed(schedule.getResult()))
    return;
  copy.panel = most;
  scheduleCopies(schedule, lane, copy, prefix);
  std::string vector = prefix + lane.str() + "1";
  schedule.vectorize(vector, most);
  LoopOp top = outermostLoop(nest.find(vector));
  int64_t rows = jamRows(schedule, lane, perfectChain(top));
  interleaveSums(schedule, top, rows * most * outputBytes(nest));
  emptyInTiles(schedule, lane, copy, prefix);
}

/// A product sampled on a pattern: a row of a stored block is a vector, and four rows share what they read; without
/// blocks the sum is a vector, along rows of the operands that are laid out so, and four entries do not wait for one
/// another.
static void scheduleSampled(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  if (LoopOp block = blockLoop(nest)) {
    auto around = block->getParentOfType<LoopOp>();
    std::string name = block.getName().str();
    int64_t width = std::min<int64_t>(*block.getTrip(), 16);
    if (*block.getTrip() > width) {
      schedule.split(name, width);
      name += "1";
    }
    schedule.vectorize(name, width);
    if (around && around.getTrip() && *around.getTrip() % 4 == 0 && canJam(around)) {
      std::string rows = around.getName().str();
      schedule.split(rows, 4);
      schedule.jam(rows + "1");
    }
    return;
  }
  if (LoopOp sum = sumLoop(nest)) {
    SmallVector<std::string> names{sum.getName().str()};
    for (LoopOp beside : sum->getBlock()->getOps<LoopOp>()) // of another statement at the same entry
      if (beside != sum && beside.getNumResults() != 0)
        names.push_back(beside.getName().str());
    // A step names one loop: two sums over one letter stay as they are.
    llvm::erase_if(names, [&](const std::string &name) { return nest.findAll(name).size() > 1; });
    CopyRule copy = copyRule(nest);
    copy.rows = true;
    for (const std::string &name : names) {
      scheduleCopies(schedule, name, copy);
      schedule.split(name, copy.panel);
      schedule.vectorize(name + "1", copy.panel);
    }
    LoopOp entries = nest.mainChain().back();
    if (!entries.getTrip() && canJam(entries)) {
      std::string units = entries.getName().str();
      schedule.split(units, 4);
      schedule.jam(units + "1");
    }
  }
}

/// The nests of row classes, in panels of as many lanes; or of one panel for up to so many vectors.
static void scheduleClassPanels(ScheduleBuilder &schedule, StringRef lane, StringRef prefix, int64_t lanes) {
  Nest &nest = schedule.getNest();
  for (const RowClass &part : classesOf(nest, prefix)) {
    if (!lane.empty()) {
      std::string vectors = part.prefix + lane.str();
      openLanes(schedule, vectors, lanes);
      schedule.vectorize(vectors + "1", lanes);
    }
    int64_t bytes = outputBytes(nest) * (lane.empty() ? 1 : lanes);
    interleaveSums(schedule, outermostLoop(nest.find(part.row)), bytes);
  }
}

/// Row classes are one parallel region, each in the loops that it would have alone.
static bool scheduleClassesOfCpu(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  SmallVector<StringRef> parts = rowClasses(nest.getFunction());
  std::string lane = laneLetter(nest);
  if (parts.empty() || classesOf(nest).empty() || (!lane.empty() && !operandsAcross(nest, lane).empty()))
    return false;
  schedule.apart(joiningClasses(nest.getFunction()));
  int64_t lanes = kPanelBytes / outputBytes(nest), few = lanes / 2;
  if (LoopOp vectors = lane.empty() ? LoopOp() : nest.find(lane);
      vectors && !knownSize(vectors.getUpper()) && knownDivisor(vectors.getUpper()) <= few) {
    schedule.upto(lane, few);
    scheduleClassPanels(schedule, lane, prefixOf(caseName(few)), few);
  }
  scheduleClassPanels(schedule, lane, "", lanes);
  return true;
}

/// Lanes of a vector of a rolled chain: a register of 64 bytes.
static int64_t rolledLanes(Nest &nest) { return 64 / std::max<int64_t>(4, outputBytes(nest)); }

/// A loop that carries a sum, or that writes neighbours, becomes vectors; a longer one in strips.
static void vectorizeStrips(ScheduleBuilder &schedule, LoopOp loop, int64_t lanes) {
  std::string name = loop.getName().str();
  std::optional<int64_t> trip = pinTrip(loop);
  if (!trip || *trip < lanes || *trip % lanes != 0)
    return;
  if (*trip > lanes) {
    schedule.split(name, lanes);
    name += "1";
  }
  schedule.vectorize(name, lanes);
}

/// Does the loop go through the last axis of all that is read inside, or through none?
static bool runsAlongReads(LoopOp loop) {
  auto varies = [&](Value value) {
    auto found = [&](auto &self, Value each) -> bool {
      Operation *op = each.getDefiningOp();
      return each == loop.getCoordinate() ||
             (op && loop->isAncestor(op) && llvm::any_of(op->getOperands(), [&](Value operand) { return self(self, operand); }));
    };
    return found(found, value);
  };
  WalkResult walked = loop->walk([&](ReadOp read) {
    return llvm::any_of(read.getIndices().drop_back(), varies) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !walked.wasInterrupted();
}

/// Squares of an operand are transposed in registers.
static void scheduleTransposed(ScheduleBuilder &schedule, LoopOp top, int64_t lanes) {
  SmallVector<LoopOp> chain = perfectChain(top);
  SmallVector<std::string> names, order;
  for (LoopOp loop : chain) {
    std::optional<int64_t> trip = pinTrip(loop);
    if (chain.size() != 2 || !trip || *trip % lanes != 0)
      return;
    names.push_back(loop.getName().str());
  }
  for (const std::string &name : names)
    schedule.split(name, lanes);
  for (const char *digit : {"0", "1"})
    for (const std::string &name : names)
      order.push_back(name + digit);
  schedule.reorder(order);
  for (const std::string &name : names)
    schedule.vectorize(name + "1", lanes);
}

/// Rows of a tile that share what they read: as many sums as additions of four cycles that begin twice a cycle.
static constexpr int64_t kSharedRows = 4;

/// The statements of a round: products along what they sum up, row sums along the columns of the tile, what has an axis
/// of its own along that, and so products of operands that are transposed; rows of a tile share what they read.
static void scheduleStatement(ScheduleBuilder &schedule, LoopOp top, int64_t lanes) {
  SmallVector<LoopOp> chain = perfectChain(top);
  LoopOp last = chain.back();
  std::string row = top.getName().str();
  int64_t shared = top.getTrip() && *top.getTrip() % kSharedRows == 0 ? kSharedRows : kSharedRows / 2;
  bool jams = chain.size() > 1 && top.getTrip() && *top.getTrip() % shared == 0 && canJam(top);
  SmallVector<LoopOp> inside(last.getBlock()->getOps<LoopOp>());
  if (inside.empty() && chain.size() == 1 && llvm::isDigit(row.back())) // one number for each row of a tile
    return;
  bool isProduct = inside.size() == 1 && !inside[0].getPathAttr() && !runsAlongReads(last);
  if (inside.empty() || (chain.size() > 1 && !isProduct))
    vectorizeStrips(schedule, last, !inside.empty() && last.getTrip() && *last.getTrip() % (2 * lanes) == 0 ? 2 * lanes : lanes);
  else
    for (LoopOp sum : inside)
      vectorizeStrips(schedule, sum, lanes);
  if (!jams)
    return;
  schedule.split(row, shared);
  schedule.jam(row + "1");
}

/// A chain that one loop makes.
static bool scheduleRolled(ScheduleBuilder &schedule) {
  LevelLoopOp round = rolledLoop(schedule.getNest());
  if (!round)
    return false;
  int64_t lanes = rolledLanes(schedule.getNest());
  SmallVector<LoopOp> tops(round->getBlock()->getOps<LoopOp>()); // what begins and ends, then the statements of a round
  llvm::append_range(tops, round.getBlock()->getOps<LoopOp>());
  for (LoopOp top : tops)
    top.getCopies()              ? scheduleTransposed(schedule, top, lanes)
    : top.getRescales()          ? vectorizeStrips(schedule, top, lanes)
    : top.getNumResults() == 0   ? scheduleStatement(schedule, top, lanes) : vectorizeStrips(schedule, top, lanes);
  return true;
}

/// The whole default of a main nest that no step has changed.
static void scheduleMain(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  if (scheduleRolled(schedule))
    return;
  if (LoopOp rows = neighbourLoop(nest); rows && laneLetter(nest).empty()) {
    std::string name = rows.getName().str();
    int64_t lanes = kPanelBytes / outputBytes(nest);
    schedule.split(name, lanes);
    return schedule.vectorize(name + "1", lanes);
  }
  if (isSampled(nest))
    return scheduleSampled(schedule);
  if (scheduleClassesOfCpu(schedule))
    return;
  std::string lane = laneLetter(nest);
  if (!lane.empty()) {
    CopyRule copy = copyRule(nest);
    int64_t lanes = copy.panel;
    scheduleOnePanel(schedule, lane, copy, lanes / 2);
    scheduleCopies(schedule, lane, copy);
    openLanes(schedule, lane, lanes);
    schedule.vectorize(lane + "1", lanes);
    if (std::string edges = edgesOfShares(nest); !edges.empty()) {
      schedule.split(edges + lane, lanes);
      schedule.vectorize(edges + lane + "1", lanes);
    }
  }
  int64_t rows = jamRows(schedule, lane, nest.mainChain());
  interleaveSums(schedule, nest.mainChain().front(), rows * (lane.empty() ? outputBytes(nest) : kPanelBytes));
  if (lane.empty())
    scheduleList(schedule);
  else
    emptyInTiles(schedule, lane, copyRule(nest), "");
}

/// Loops without a mark whose size is not known are shared out.
static void scheduleOpenLoops(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  scheduleUnlisted(schedule);
  for (ArrayRef<LoopOp> chain : allChains(nest))
    bindOpenLoops(schedule, chain, "parallel");
}

/// Threads take whole rows of what a nest before or behind the main one writes.
static void shareOut(ScheduleBuilder &schedule) {
  for (ArrayRef<LoopOp> chain : chainsAround(schedule.getNest()))
    if (llvm::none_of(chain, isMarked))
      schedule.bind(LoopOp(chain.front()).getName(), "parallel");
}

/// No loop has a unit of a GPU, whose tiles run plainly here.
static LogicalResult checkUnits(Nest &nest) {
  LogicalResult result = success();
  if (isTensorized(nest))
    return result;
  nest.getFunction().walk([&](LoopOp loop) {
    if (loop.getBind().value_or(ParallelUnit::Parallel) != ParallelUnit::Parallel)
      result = loop.emitError("bind: a CPU has no '") << stringifyParallelUnit(*loop.getBind()) << "'; use parallel";
  });
  return result;
}

static std::string take(ScheduleBuilder &schedule) {
  scheduleMain(schedule);
  scheduleOpenLoops(schedule);
  return "";
}

static void complete(ScheduleBuilder &schedule, bool untouched) {
  if (isTensorized(schedule.getNest()))
    return;
  if (untouched)
    scheduleMain(schedule);
  else
    copyAcrossVectors(schedule, copyRule(schedule.getNest()));
  scheduleOpenLoops(schedule);
}

static const bool registered = (registerRule("cpu", {"cpu", kRankOfLoops, take, complete, shareOut, checkUnits}), true);
