// SPDX-License-Identifier: Apache-2.0
/// \file
/// The default schedules of GPUs for few vectors: the lanes of a warp share the entries of a row.
///
/// With few columns there is nothing for the lanes to hold: each takes every 32nd entry of a row and multiplies it by
/// all vectors, which stand in registers; the lanes add up their sums. Nothing is copied, one launch does it all. How
/// many vectors there are is known at the launch, so each limit gets a nest of its own. Where they are more than a
/// gather is worth, they are copied to lie side by side, and a lane reads eight of them at once.
///
/// Blocks of half types are bound by their bytes up to 32 vectors: warps share them, and multiply them where they lie.
#include "Facts.h"

#include "lacis/Dialect/Lacis/IR/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lacis;

/// Up to so many vectors have nests of their own: a gather of their elements costs less than copying them to panels.
static constexpr int64_t kFew[] = {1, 4};
/// Up to so many are copied, and a lane multiplies eight that lie side by side.
static constexpr int64_t kFewCopied[] = {8, 32, 64}, kSideBySide = 8;
/// Stored blocks of half types are multiplied by tensor cores, in tiles of 8 vectors: one, or four.
static constexpr int64_t kFewBlocks[] = {8, 32};
static constexpr int64_t kWarps = 4, kLanes = 32;
/// Entries of a share where rows differ much in length, and the rows of it that a warp walks side by side: with two
/// each lane loads less at once, with eight more lanes wait for the longest row.
static constexpr int64_t kShare = 512, kShareRows = 4;
/// The same of several vectors, whose sums take registers: half a warp walks a share, row by row.
static constexpr int64_t kShareOfVectors = 256, kLanesOfVectors = 16;
/// Parts of one row that are loaded at once: a long row has hundreds, and one thread adds them up.
static constexpr int64_t kPartsAtOnce = 16;

void lacis::scheduleLanes(ScheduleBuilder &schedule, const std::string &rows, const std::string &entries, int64_t lanes,
                          int64_t taken, int64_t warpsOfBlock) {
  int64_t share = kLanes / (lanes * taken);
  schedule.split(rows, warpsOfBlock * share);
  std::string warps = rows + "1";
  if (share > 1) {
    schedule.split(warps, share);
    schedule.bind(warps + "1", "lane");
    warps += "0";
  }
  schedule.bind(warps, "warp");
  if (schedule.getNest().find(entries)) // those that a share has of a row
    schedule.split(entries, lanes);
  else
    schedule.splitNnz(entries, lanes);
  schedule.reorder({entries + "1", entries + "0"});
  schedule.bind(entries + "1", "lane");
}

/// Equal shares of the entries of all rows, a warp for each, which walks some of the share's rows side by side.
static void scheduleShares(ScheduleBuilder &schedule, const std::string &rows, const std::string &entries) {
  std::string shares = rows + "_" + entries;
  schedule.splitNnz(shares, kShare);
  schedule.split(shares + "0", kWarps);
  schedule.bind(shares + "01", "warp");
  schedule.split(rows, kShareRows);
  schedule.bind(rows + "1", "lane");
  schedule.split(entries, kLanes / kShareRows);
  schedule.reorder({entries + "1", entries + "0"});
  schedule.bind(entries + "1", "lane");
  schedule.unroll(prefixOf(shares) + shares + "0", kPartsAtOnce);
}

int64_t lacis::lanesFor(Nest &nest, StringRef rows) {
  return letterHas(nest, letterOf(rows), "lacis.large") ? 8 : kLanes;
}

bool lacis::scheduleVector(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  LoopOp rows = nest.mainChain().back();
  LevelLoopOp entries = entryLoop(nest.mainChain().front());
  if (!entries || rows.getTrip())
    return false;
  std::string row = rows.getName().str(), entry = entries.getName().str();
  if (letterHas(nest, letterOf(row), "lacis.uneven") && sharedEntries(rows) == entries)
    scheduleShares(schedule, row, entry);
  else
    scheduleLanes(schedule, row, entry, lanesFor(nest, row));
  return true;
}

std::string lacis::openCase(ScheduleBuilder &schedule, StringRef lane, int64_t most) {
  schedule.upto(lane, most);
  std::string prefix = prefixOf(caseName(most)), vectors = prefix + lane.str();
  if (most == 1)
    return prefix;
  schedule.split(vectors, most);
  if (failed(schedule.getResult()))
    return prefix;
  std::vector<std::string> order{vectors + "0"};
  for (LoopOp loop : perfectChain(outermostLoop(schedule.getNest().find(vectors + "0"))))
    if (!loop.getName().starts_with(vectors))
      order.push_back(loop.getName().str());
  order.push_back(vectors + "1");
  schedule.reorder(order);
  return prefix;
}

/// Entries of a row on lanes, each multiplied by all vectors.
static void scheduleEntries(ScheduleBuilder &schedule, StringRef lane, StringRef rows, StringRef entries) {
  for (int64_t most : kFew) {
    if (knownDivisor(schedule.getNest().find(lane).getUpper()) > most)
      continue;
    std::string prefix = openCase(schedule, lane, most);
    if (most > 1)
      schedule.jam(prefix + lane.str() + "1");
    scheduleLanes(schedule, prefix + rows.str(), prefix + entries.str(), lanesFor(schedule.getNest(), rows));
  }
}

/// The same with vectors that lie side by side: lanes share them by eights.
static void scheduleSideBySide(ScheduleBuilder &schedule, StringRef lane, StringRef rows, StringRef entries) {
  bool copies = !operandsAcross(schedule.getNest(), lane).empty();
  for (int64_t most : kFewCopied) {
    if (knownDivisor(schedule.getNest().find(lane).getUpper()) > most || (!copies && most > kSideBySide))
      continue;
    std::string prefix = openCase(schedule, lane, most), held = prefix + lane.str() + "1";
    CopyRule copy{most, kSideBySide, "block.x", "thread.x", kSideBySide / 2};
    copy.inputs = true;
    scheduleCopies(schedule, lane, copy, prefix);
    if (most > kSideBySide) {
      schedule.split(held, kSideBySide);
      schedule.bind(held + "0", "lane");
      held += "1";
    }
    schedule.vectorize(held, kSideBySide);
    int64_t taken = most / kSideBySide, lanes = std::min(lanesFor(schedule.getNest(), rows), kLanes / taken);
    scheduleLanes(schedule, prefix + rows.str(), prefix + entries.str(), lanes, taken);
  }
}

/// The same where rows differ much in length, which are cut into equal shares.
static void scheduleUnevenEntries(ScheduleBuilder &schedule, StringRef lane, StringRef rows, StringRef entries) {
  bool copies = !operandsAcross(schedule.getNest(), lane).empty();
  for (int64_t most : {kFew[0], kFew[1], kSideBySide}) {
    if (knownDivisor(schedule.getNest().find(lane).getUpper()) > most || (copies && most == kSideBySide))
      continue;
    std::string prefix = openCase(schedule, lane, most), vectors = prefix + lane.str();
    std::string row = prefix + rows.str(), entry = prefix + entries.str(), shares = row + "_" + entry;
    if (most == 1) {
      schedule.reorder({vectors, row}); // threads take rows, not the one vector
      scheduleShares(schedule, row, entry);
      continue;
    }
    if (most < kSideBySide)
      schedule.jam(vectors + "1");
    else
      schedule.vectorize(vectors + "1", most);
    schedule.splitNnz(shares, kShareOfVectors);
    scheduleLanes(schedule, shares + "0", entry, kLanesOfVectors);
  }
}

namespace {
/// A nest over stored blocks of a half type: `height` x `width` of them, which the loops `row` and `depth` run over.
struct Blocks {
  std::string grid, row, walk, depth;
  int64_t height, width;
};
} // namespace

/// The stored blocks that a warp can multiply where they lie, or nothing.
static std::optional<Blocks> blocksOf(Nest &nest, LoopOp vectors) {
  std::string why;
  std::optional<Product> product = productOf(nest, why);
  auto walk = product ? dyn_cast<LevelLoopOp>(product->sum) : LevelLoopOp();
  if (!walk || !isStateless(walk) || walk.getUnroll() || walk.getPipeline())
    return std::nullopt;
  SmallVector<LoopOp> rows = nest.mainChain(), sums;
  bool hasMore = false; // guards, or levels whose positions a position has
  rows.front()->walk([&](Operation *op) {
    hasMore |= isa<scf::IfOp>(op) || (isa<LevelLoopOp>(op) && op != walk);
    if (auto loop = dyn_cast<LoopOp>(op); loop && loop.getNumResults() != 0)
      sums.push_back(loop);
  });
  llvm::erase(rows, vectors);
  StoredBlock block = product->block();
  Type element = getElementTypeOrSelf(product->left);
  bool isHalf = (element.isF16() || element.isBF16()) && getElementTypeOrSelf(product->right) == element;
  auto fits = [](int64_t size) { return size == 16 || size % 32 == 0; };
  if (!isHalf || !fits(block.rows) || !fits(block.columns) || hasMore || rows.size() != 2 || rows[0].getTrip() ||
      rows[1].getTrip() != block.rows || sums.size() != 1 || sums[0].getTrip() != block.columns || sums[0].getUnroll())
    return std::nullopt;
  return Blocks{rows[0].getName().str(), rows[1].getName().str(), walk.getName().str(),
                sums[0].getName().str(), block.rows, block.columns};
}

/// Long rows have their blocks shared by two blocks of the grid, each of as many warps; a nest after adds up their
/// sums. Returns the loop of the warps. `outer` are the loops around the tile `row` x `column`.
static std::string shareRows(ScheduleBuilder &schedule, StringRef prefix, const std::string &shares, int64_t warps,
                             ArrayRef<std::string> outer, const std::string &row, const std::string &column) {
  std::string units = shares + "0", after = prefixOf(units);
  schedule.split(shares, warps);
  schedule.race(units, "private");
  auto order = [&](StringRef name, ArrayRef<std::string> inner) {
    std::vector<std::string> loops;
    for (StringRef loop : outer)
      loops.push_back((name + loop.drop_front(name.empty() ? 0 : prefix.size())).str());
    llvm::append_range(loops, inner);
    schedule.reorder(loops);
  };
  order("", {units, row, column});
  schedule.bind(units, "block.x");
  std::string ownRow = after + row.substr(prefix.size()), ownColumn = after + column.substr(prefix.size());
  order(after, {ownColumn, ownRow});
  schedule.bind(ownColumn, "thread.y");
  schedule.bind(ownRow, "thread.x");
  return shares + "1";
}

/// Warps share the blocks of up to 32 rows and add their sums up; each multiplies tiles that it has read from memory
/// before.
static void scheduleBlocks(ScheduleBuilder &schedule, StringRef lane, const Blocks &blocks) {
  constexpr int64_t tile = 32, mostWarps = 8;
  for (int64_t most : kFewBlocks) {
    if (knownDivisor(schedule.getNest().find(lane).getUpper()) > most)
      continue;
    std::string prefix = openCase(schedule, lane, most);
    bool isSmall = most == kFewBlocks[0], isNarrow = blocks.width < tile, isWide = blocks.width > 2 * tile;
    int64_t warps = isSmall ? mostWarps : std::min(blocks.height, tile) / 4;
    std::string row = prefix + blocks.row, depth = prefix + blocks.depth, walk = prefix + blocks.walk;
    std::string column = prefix + lane.str() + "1", shares = walk + "1";
    std::vector<std::string> outer{prefix + lane.str() + "0", prefix + blocks.grid};
    if (blocks.height > tile) {
      schedule.split(row, tile);
      outer.push_back(row + "0");
      row += "1";
    }
    for (const std::string &loop : outer)
      schedule.bind(loop, "block.x");
    bool isShared = !isSmall && letterHas(schedule.getNest(), letterOf(blocks.grid), "lacis.uneven");
    schedule.splitNnz(walk, isShared ? 2 * warps : warps);
    schedule.reorder({shares, walk + "0"});
    if (isShared)
      shares = shareRows(schedule, prefix, shares, warps, outer, row, column);
    schedule.bind(shares, "warp");
    if (blocks.width > tile) {
      schedule.split(depth, tile);
      if (!isSmall || !isWide)
        schedule.unroll(depth + "0", 2);
      depth += "1";
    }
    schedule.tensorize({row, column, depth}, "mma");
    bool holdsMore = !isSmall && (isNarrow || !isShared);
    int64_t rounds = blocks.width > tile ? 1 : (isNarrow ? 3 : 2) + (holdsMore ? 1 : 0); // that registers hold
    if (!isWide && (isSmall || isNarrow)) // products of more vectors need the registers
      schedule.pipeline(walk + "0", rounds + 1);
    if (rounds > 1) // registers change their turns with the rounds
      schedule.unroll(walk + "0", rounds);
  }
}

void lacis::scheduleFew(ScheduleBuilder &schedule, WarpProducts products) {
  Nest &nest = schedule.getNest();
  std::string lane = laneLetter(nest);
  LoopOp vectors = lane.empty() || isSampled(nest) ? LoopOp() : nest.find(lane);
  if (!vectors || knownSize(vectors.getUpper()))
    return;
  SmallVector<LoopOp> chain = nest.mainChain();
  std::optional<Blocks> blocks = blocksOf(nest, vectors);
  if (blocks && products == WarpProducts::Halves)
    return scheduleBlocks(schedule, lane, *blocks);
  LoopOp rows;
  for (LoopOp loop : chain)
    if (loop != vectors)
      rows = loop;
  LevelLoopOp entries = entryLoop(chain.front());
  if (!rows || rows.getTrip() || !entries)
    return;
  std::string row = rows.getName().str(), entry = entries.getName().str();
  if (letterHas(nest, letterOf(rows.getName()), "lacis.uneven")) {
    if (sharedEntries(rows) == entries)
      scheduleUnevenEntries(schedule, lane, row, entry);
    return;
  }
  scheduleEntries(schedule, lane, row, entry);
  scheduleSideBySide(schedule, lane, row, entry);
}
