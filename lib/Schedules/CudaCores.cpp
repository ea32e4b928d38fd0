// SPDX-License-Identifier: Apache-2.0
/// \file
/// The default schedule of GPUs: a warp runs a row (or a tile of rows) times 32 vectors of lanes.
///
/// Each lane of the warp holds one 16-byte vector of the output, so an entry of the sparse operand
/// reads 512 contiguous bytes of the dense one. Column tiles are outermost in the grid: the rows
/// of one tile share it in the second-level cache. Tiles are narrower, and several rows share a warp, where
/// there are few columns, or so many rows of the dense operand that wide tiles of them do not fit into that cache.
/// Rows that differ much in length are walked in equal shares of entries instead.
#include "Facts.h"

#include "lacis/Dialect/Lacis/IR/RaceStrategy.h"
#include "lacis/Schedules/Rule.h"

using namespace mlir;
using namespace lacis;

static constexpr int64_t kWarps = 4, kLanes = 32, kThreads = 128;
/// Warps of a block whose rows, walked side by side, find what they read of a dense operand in the first-level cache.
static constexpr int64_t kManyWarps = 32;
/// Columns that a part of a warp holds at least where the long rows of a sum run apart: two lanes of vectors.
static constexpr int64_t kFewColumns = 8;
/// Warps of a block then, which take turns at the entries of a long row, and those that a lane has in flight.
static constexpr int64_t kLongWarps = 16, kLongRounds = 4;
/// Neighbours of an operand's row that a thread copies: one sector of reads, coalesced writes.
static constexpr int64_t kSector = 8;
/// Entries of a share for each column of its tile: enough to hide the search for its first row, few enough to spread
/// the longest row.
static constexpr int64_t kEntries = 4;
/// Copies of an output to which columns add: each takes as much memory as the output, and a thread that adds to it.
static constexpr int64_t kCopies = 32;

/// A vector of 16 bytes for each lane of a warp.
static CopyRule copyRule(Nest &nest) {
  int64_t vector = 16 / outputBytes(nest);
  return {kLanes * vector, kSector, "block.x", "thread.x", vector};
}

/// The innermost loop of the main nest that does not run over `lane`, or null.
static LoopOp rowLoop(Nest &nest, StringRef lane) {
  SmallVector<LoopOp> chain = nest.mainChain();
  auto rows = llvm::find_if(llvm::reverse(chain), [&](LoopOp loop) {
    return letterOf(loop.getName()) != lane && canBind(nest, loop, "warp");
  });
  return rows == llvm::reverse(chain).end() ? LoopOp() : *rows;
}

void lacis::bindWarps(ScheduleBuilder &schedule, std::string name, int64_t share) {
  if (share > 1) {
    schedule.split(name, share);
    schedule.bind(name + "1", "lane");
    name += "0";
  }
  schedule.bind(name, "warp");
}

/// A loop of unknown size in tiles for the warps of a block.
static void scheduleWarps(ScheduleBuilder &schedule, const std::string &name, int64_t share, int64_t warps = kWarps) {
  schedule.split(name, warps * share);
  bindWarps(schedule, name + "1", share);
}

/// The columns of a tile over lanes, a vector each.
static void scheduleColumns(ScheduleBuilder &schedule, const std::string &name, int64_t vector) {
  schedule.split(name, vector);
  schedule.vectorize(name + "1", vector);
  schedule.bind(name + "0", "lane");
}

/// Blocks of rows for the warps; the last constant digit is jammed.
static void scheduleRows(ScheduleBuilder &schedule, LoopOp rows, int64_t warps) {
  std::string name = rows.getName().str();
  std::optional<int64_t> trip = rows.getTrip();
  int64_t jam = !trip || !canJam(rows) ? 1 : *trip % 4 == 0 ? 4 : *trip % 2 == 0 ? 2 : 1;
  if (jam > 1) {
    schedule.split(name, jam);
    schedule.jam(name + "1");
    name += "0";
    trip = *trip / jam;
  }
  if (!trip || *trip % kWarps == 0)
    scheduleWarps(schedule, name, 1, trip ? kWarps : warps);
}

/// How many rows share a warp whose lanes hold `panel` columns, in tiles of at most `wanted`: more than one where that
/// leaves no column over.
static int64_t rowsInWarp(LoopOp columns, int64_t panel, int64_t wanted, int64_t least = kLanes) {
  int64_t known = std::min(columns ? knownDivisor(columns.getUpper()) : panel, wanted);
  return known < least || known >= panel || panel % known != 0 ? 1 : panel / known;
}

/// Columns of a tile, so that the rows of the dense operand that its entries read stay in the second-level cache.
static int64_t wantedColumns(Nest &nest, bool uneven, int64_t panel) {
  return !summedHas(nest, "lacis.large") ? panel : uneven ? 2 * kLanes : kLanes;
}

/// The long rows of a sum, which its last part lists: a block for each, whose warps, and parts of them, share the
/// entries.
static bool scheduleLongRows(ScheduleBuilder &schedule, StringRef lane) {
  Nest &nest = schedule.getNest();
  std::string part = listedPart(nest).str(), row = rowLoop(nest, lane).getName().str();
  int64_t known = knownDivisor(nest.find(lane).getUpper()), columns = std::min(known & -known, kLanes);
  if (part.empty() || columns < kFewColumns || nest.mainChain().size() != 2 || !operandsAcross(nest, lane).empty())
    return false;
  schedule.apart({part});
  std::string prefix = prefixOf(part), column = (prefix + lane).str(), entries;
  nest.find(prefix + row)->walk([&](LevelLoopOp loop) { entries = loop.getName().str(); });
  schedule.split(column, columns);
  schedule.reorder({column + "0", prefix + row, column + "1"});
  schedule.bind(column + "0", "block.x");
  schedule.bind(prefix + row, "block.x");
  int64_t vector = 16 / outputBytes(nest), share = kLanes * vector / columns;
  scheduleColumns(schedule, column + "1", vector);
  schedule.splitNnz(entries, kLongWarps * share);
  schedule.reorder({entries + "1", entries + "0"});
  bindWarps(schedule, entries + "1", share);
  schedule.unroll(entries + "0", kLongRounds);
  return true;
}

/// A warp, or a part of it, for each tile of columns of a row; or of an equal share of the entries of all rows.
static void scheduleProduct(ScheduleBuilder &schedule, StringRef lane) {
  Nest &nest = schedule.getNest();
  bool longRows = rowLoop(nest, lane) && scheduleLongRows(schedule, lane);
  CopyRule copy = copyRule(nest);
  int64_t vector = copy.panel / kLanes;
  LoopOp rows = rowLoop(nest, lane);
  bool uneven = rows && !longRows && letterHas(nest, letterOf(rows.getName()), "lacis.uneven") && sharedEntries(rows);
  int64_t wanted = wantedColumns(nest, uneven, copy.panel);
  bool isCopied = !operandsAcross(nest, lane).empty(), isLarge = summedHas(nest, "lacis.large");
  // Elsewhere a warp takes one row: rows that share it wait for the longest (64 vectors of 4096x4096 at 90 %: 111 us in
  // tiles of 32 columns, 64 us in one of 128).
  bool isNarrow = isLarge || uneven || longRows || (rows && knownSize(nest.find(lane).getUpper()));
  isNarrow &= rows && !rows.getTrip();
  int64_t share = isNarrow ? rowsInWarp(nest.find(lane), copy.panel, wanted, longRows ? kFewColumns : kLanes) : 1;
  copy.panel /= share;
  bool isRead = !isCopied && !isLarge;
  scheduleCopies(schedule, lane, copy);
  openLanes(schedule, lane, copy.panel);
  rows = rowLoop(nest, lane);
  std::string tile = (lane + "1").str();
  if (LevelLoopOp entries = uneven ? sharedEntries(rows) : LevelLoopOp()) {
    std::string row = rows.getName().str(), name = row + "_" + entries.getName().str();
    schedule.splitNnz(name, kEntries * copy.panel);
    scheduleWarps(schedule, name + "0", share);
    scheduleColumns(schedule, tile, vector);
    scheduleWarps(schedule, prefixOf(name) + row, share);
    return scheduleColumns(schedule, prefixOf(name) + tile, vector);
  }
  if (share > 1)
    scheduleWarps(schedule, rows.getName().str(), share, longRows ? kLongWarps : kWarps);
  else if (rows)
    scheduleRows(schedule, rows, longRows ? kLongWarps : isRead ? kManyWarps : kWarps);
  scheduleColumns(schedule, tile, vector);
  if (std::string edges = edgesOfShares(nest); !edges.empty()) {
    schedule.split(edges + lane.str(), copy.panel);
    LoopOp parts = outermostLoop(nest.find(edges + lane.str() + "0"));
    scheduleWarps(schedule, parts.getName().str(), share);
    scheduleColumns(schedule, edges + tile, vector);
  }
}

/// A thread owns a coordinate of the innermost loop that has no mark, where no loop of the nest is bound to threads.
static void scheduleThreads(ScheduleBuilder &schedule, ArrayRef<LoopOp> chain) {
  auto isFree = [&](LoopOp loop) { return !isMarked(loop) && canBind(schedule.getNest(), loop, "thread.x"); };
  bool hasThreads = false;
  LoopOp(chain.front())->walk([&](LoopOp loop) {
    hasThreads |= loop.getBind() && (isThread(*loop.getBind()) || isOfWarps(*loop.getBind()));
  });
  auto innermost = llvm::find_if(llvm::reverse(chain), isFree);
  if (hasThreads || innermost == llvm::reverse(chain).end())
    return;
  LoopOp loop = *innermost;
  std::string name = loop.getName().str();
  if (auto trip = loop.getTrip(); trip && *trip <= kThreads)
    return schedule.bind(name, "thread.x");
  schedule.split(name, kThreads);
  schedule.bind(name + "1", "thread.x");
}

/// Some entries at once: their loads are in flight together.
static void unrollEntries(ScheduleBuilder &schedule, Operation *root, int64_t rounds) {
  SmallVector<std::string> names;
  root->walk([&](Operation *loop) {
    auto dense = dyn_cast<LoopOp>(loop); // over all coordinates of a dense level
    bool walks =
        isa<LevelLoopOp>(loop) || (dense && dense.getNumResults() != 0 && !dense.getTrip() && !isMarked(dense));
    if (!walks || cast<LoopOpInterface>(loop).getUnroll())
      return;
    loop->getRegion(0).walk([&](Operation *op) { walks &= !isa<LoopOp, LevelLoopOp>(op); });
    StringRef name = cast<LoopOpInterface>(loop).getName();
    if (walks && !llvm::is_contained(names, name))
      names.push_back(name.str());
  });
  for (const std::string &name : names)
    schedule.unroll(name, rounds);
}

/// The threads of a block compute a stored block of the output, four rows each.
static void scheduleBlock(ScheduleBuilder &schedule, LoopOp block) {
  LoopOp rows = block->getParentOfType<LoopOp>();
  int64_t width = *block.getTrip();
  std::string column = block.getName().str();
  if (width > kThreads) {
    schedule.split(column, kThreads);
    column += "1";
    width = kThreads;
  }
  schedule.bind(column, "thread.x");
  std::optional<int64_t> height = rows ? rows.getTrip() : std::nullopt;
  if (!height || rows.getNumResults() != 0)
    return;
  std::string row = rows.getName().str();
  if (*height % 4 == 0 && canJam(rows)) {
    schedule.split(row, 4);
    schedule.jam(row + "1");
    row += "0";
    *height /= 4;
  }
  if (*height * width <= 1024)
    schedule.bind(row, "thread.y");
}

/// The loop over the entries of a row that a sampled output has, or null where it goes from entry to entry.
static LevelLoopOp entriesOfRow(Nest &nest) {
  LevelLoopOp found;
  nest.mainChain().front()->walk([&](LevelLoopOp loop) { found = loop.getNumResults() == 0 ? loop : found; });
  return found;
}

/// A warp sums the products of four entries at once, of all or of its part of a row: each lane takes every 32nd vector,
/// and the lanes add up their sums.
static void scheduleEntries(ScheduleBuilder &schedule, LoopOp sum) {
  Nest &nest = schedule.getNest();
  std::string name = sum.getName().str();
  CopyRule copy = copyRule(nest);
  copy.rows = true;
  int64_t vector = copy.panel / kLanes, share = rowsInWarp(sum, copy.panel, kLanes);
  copy.panel /= share;
  bool neighbours = knownDivisor(sum.getUpper()) % vector == 0;
  bool vectors = neighbours || !operandsAcross(nest, name).empty();
  int64_t panel = vectors ? copy.panel : kLanes;
  scheduleCopies(schedule, name, copy);
  schedule.split(name, panel);
  std::string lane = name + "1";
  if (vectors) {
    schedule.split(lane, vector);
    schedule.vectorize(lane + "1", vector);
    lane += "0";
  }
  schedule.reorder({lane, name + "0"});
  schedule.bind(lane, "lane");
  std::string units = nest.mainChain().back().getName().str(), four = units + "11", warps = units + "10";
  if (LevelLoopOp entries = entriesOfRow(nest)) {
    std::string row = entries.getName().str();
    schedule.splitParts(row, kWarps * share);
    schedule.split(row + "1", 4);
    four = row + "11", warps = row + "0";
  } else {
    schedule.split(units, 4 * kWarps * share);
    schedule.split(units + "1", 4);
  }
  bindWarps(schedule, warps, share);
  if (LoopOp rounds = nest.find(four); rounds && canJam(rounds))
    schedule.jam(four);
}

void lacis::schedulePrecomputed(ScheduleBuilder &schedule, StringRef part) {
  Nest &nest = schedule.getNest();
  std::string letter = laneLetter(nest), prefix = prefixOf(part), lane = prefix + letter;
  CopyRule copy = copyRule(nest);
  scheduleCopies(schedule, letter, copy, prefix);
  openLanes(schedule, lane, copy.panel);
  LoopOp panels = nest.find(lane + "0"), rows;
  if (!panels)
    return;
  for (LoopOp loop : perfectChain(panels))
    if (letterOf(loop.getName()) != letter)
      rows = loop;
  if (rows)
    scheduleRows(schedule, rows, kWarps);
  scheduleColumns(schedule, lane + "1", copy.panel / kLanes);
  unrollEntries(schedule, panels, 3);
  bindOpenLoops(schedule, perfectChain(panels), "block.x");
}

/// What columns find of the output they add to copies of it, a block of threads each, where timing may decide nothing.
static void scheduleCopiesOfOutput(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  SmallVector<LoopOp> chain = nest.mainChain();
  auto *found = llvm::find_if(chain, [&](LoopOp loop) {
    return loop.getMeets() && !loop.getTrip() && !canBind(nest, loop, "block.x") &&
           findRaceStrategy("private")->objection(loop, nest).empty();
  });
  if (found == chain.end() || llvm::any_of(chain, isMarked))
    return;
  std::string columns = found->getName().str();
  schedule.split(columns, kCopies);
  schedule.reorder({columns + "1", columns + "0"});
  schedule.race(columns + "1", "private");
  schedule.bind(columns + "1", "block.x");
}

/// The whole default of a main nest that no step has changed. Its lanes have vectors of their own in flight, so fewer
/// entries at once than elsewhere leave room for more warps.
static void scheduleMain(ScheduleBuilder &schedule, WarpProducts products) {
  Nest &nest = schedule.getNest();
  if (LoopOp rows = neighbourLoop(nest); rows && laneLetter(nest).empty()) {
    std::string name = rows.getName().str();
    schedule.split(name, kThreads);
    return schedule.bind(name + "1", "thread.x");
  }
  if (isSampled(nest)) {
    if (LoopOp block = blockLoop(nest))
      return scheduleBlock(schedule, block);
    if (LoopOp sum = sumLoop(nest); sum)
      return scheduleEntries(schedule, sum);
  }
  if (scheduleClasses(schedule))
    return;
  if (!isSampled(nest) && isSkewed(nest))
    return scheduleSkewed(schedule);
  std::string lane = laneLetter(nest);
  if (!lane.empty()) {
    int64_t rounds = !operandsAcross(nest, lane).empty() ? 3 : listedPart(nest).empty() ? 2 : 4;
    scheduleFew(schedule, products);
    scheduleProduct(schedule, lane);
    unrollEntries(schedule, nest.mainChain().front(), rounds);
  } else if (isSampled(nest) || !scheduleVector(schedule)) {
    scheduleCopiesOfOutput(schedule);
    scheduleThreads(schedule, nest.mainChain());
  }
}

/// Threads for nests that have none, blocks for loops without a mark, and rounds of walks side by side.
static void scheduleOpenLoops(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  for (ArrayRef<LoopOp> chain : allChains(nest))
    scheduleThreads(schedule, chain);
  for (ArrayRef<LoopOp> chain : allChains(nest))
    bindOpenLoops(schedule, chain, "block.x");
  unrollEntries(schedule, nest.getFunction(), 4);
}

static void shareOut(ScheduleBuilder &schedule) {
  for (ArrayRef<LoopOp> chain : chainsAround(schedule.getNest()))
    scheduleThreads(schedule, chain);
  for (ArrayRef<LoopOp> chain : chainsAround(schedule.getNest()))
    bindOpenLoops(schedule, chain, "block.x");
}

/// The rule of GPUs whose warps multiply so.
static Rule ruleFor(WarpProducts products) {
  auto take = [products](ScheduleBuilder &schedule) {
    scheduleMain(schedule, products);
    scheduleOpenLoops(schedule);
    return std::string();
  };
  auto complete = [products](ScheduleBuilder &schedule, bool untouched) {
    if (isTensorized(schedule.getNest()))
      return;
    if (untouched)
      scheduleMain(schedule, products);
    else
      copyAcrossVectors(schedule, copyRule(schedule.getNest()));
    scheduleOpenLoops(schedule);
  };
  return {"cuda cores", kRankOfLoops, take, complete, shareOut};
}

static const bool registered = [] {
  registerRule("cuda", ruleFor(WarpProducts::Halves));
  registerRule("cuda:sm_7", ruleFor(WarpProducts::None)); // tiles become plain loops there, which a schedule may ask for
  return true;
}();
