// SPDX-License-Identifier: Apache-2.0
/// \file
/// The default schedule of GPUs for row classes: short rows by warps or parts of a warp, long ones in equal shares of their
/// entries; one launch, and one that adds up the parts of rows that several shares meet.
///
/// The nests have blocks of equal size, as one launch has. (The buckets of SparseTIR, and the row classes of DASP.) Were a
/// long row a block's, the longest would decide: 2 % of 4 million entries took 1.4 times as long as the rest.
#include "Facts.h"

#include "lacis/Dialect/Lacis/IR/RowLists.h"

using namespace mlir;
using namespace lacis;

/// A class without a limit, or with a higher one, has its entries shared out.
static constexpr int64_t kLongest = 512;
/// Entries of a share for a warp: with 512 a vector took 8 % longer where most long rows have fewer.
static constexpr int64_t kShare = 256;
/// Rows of so many entries are long where those of an operand that is no sum are told apart: the 8 lanes of a shorter one
/// take 16 rounds. With 256, a power law in any order and 32 features took 15 % longer.
static constexpr int64_t kLeast = 128;
/// Warps of a block: whose lanes hold columns, and whose lanes hold entries.
static constexpr int64_t kWarps = 8, kLanes = 32;
/// Columns of a tile: of long rows, where a wide dense operand exceeds the cache, and at the least.
static constexpr int64_t kColumns = 32, kFewest = 8;
/// With so many columns long rows of an operand that is no sum are told apart. With 16, short and long rows apart took 82
/// us where rows alike took 167 (power law, 4 million edges); other counts were not measured.
static constexpr int64_t kMeasured[] = {16, 32};
/// Up to so many vectors have nests in which lanes share the entries of a row.
static constexpr int64_t kFew[] = {1, 4};

/// The limit of a part of a sum: by its rule, or by the places that it has for a row.
static std::optional<int64_t> longestOf(Nest &nest, LevelLoopOp entries) {
  FormatAttr format = formatOf(entries.getTensor());
  unsigned axis = format.getLevels()[0].getDigits()[0].axis;
  StringRef part = entries.getPathAttr() ? entries.getPathAttr().last(PathKind::Part) : "";
  std::optional<int64_t> longest = format.getLevels()[1].getExtent().getTrip();
  for (Type type : nest.getFunction().getArgumentTypes())
    if (auto sum = dyn_cast_or_null<SumAttr>(cast<RankedTensorType>(type).getEncoding()))
      if (std::optional<int64_t> most = longestRow(sum, part, axis))
        longest = std::min(longest.value_or(*most), *most);
  if (!longest && format.getLevels()[0].getExtent().coversDomain())
    return kLongest; // all rows, of which few can be long
  return longest;
}

SmallVector<RowClass> lacis::classesOf(Nest &nest, StringRef prefix) {
  SmallVector<RowClass> classes;
  SmallVector<StringRef> parts = rowClasses(nest.getFunction());
  if (parts.empty())
    return {};
  std::string letter = perfectChain(nest.mainChain().front()).front().getName().str();
  SmallVector<std::string> prefixes =
      llvm::map_to_vector(parts, [&](StringRef part) { return prefix.str() + prefixOf(part); });
  prefixes.push_back(prefix.str());
  for (const std::string &own : prefixes) {
    LoopOp row;
    for (LoopOp top : nest.getFunction().getBody().getOps<LoopOp>())
      for (LoopOp loop : perfectChain(top))
        if (PathAttr path = loop.getPathAttr(); (path ? path.spell() : "") == own && !row)
          row = loop;
    LevelLoopOp entries = row ? entryLoop(outermostLoop(row)) : LevelLoopOp();
    if (!entries || perfectChain(outermostLoop(row)).size() > 2)
      return {};
    classes.push_back({own, row.getName().str(), entries.getName().str(), longestOf(nest, entries)});
  }
  return classes;
}

static bool isLong(const RowClass &part) { return !part.longest || *part.longest > kLongest; }

/// Rounds of a loop that carries a sum, innermost in units of `lanes`.
static void shareSum(ScheduleBuilder &schedule, const std::string &loop, int64_t lanes) {
  if (lanes == 1)
    return;
  schedule.split(loop, lanes);
  schedule.reorder({loop + "1", loop + "0"});
  schedule.bind(loop + "1", "lane");
}

/// A warp for each equal share of the entries, whose lanes (or so many parts of it) take turns; and for each row that
/// several shares meet. Returns what the names of the nest that adds up their parts begin with.
static std::string scheduleShares(ScheduleBuilder &schedule, const RowClass &part, int64_t lanes) {
  std::string shares = part.row + "_" + part.entries, after = prefixOf(shares);
  schedule.splitNnz(shares, kShare);
  schedule.split(shares + "0", kWarps);
  schedule.bind(shares + "01", "warp");
  shareSum(schedule, part.entries, lanes);
  shareSum(schedule, after + shares + "0", lanes);
  schedule.split(after + part.row, kWarps);
  schedule.bind(after + part.row + "1", "warp");
  return after;
}

/// The entries of a row on lanes, no more than half of its entries; those of long rows in shares.
static void scheduleEntries(ScheduleBuilder &schedule, const RowClass &part) {
  if (isLong(part)) {
    scheduleShares(schedule, part, kLanes);
    return;
  }
  int64_t half = llvm::bit_floor(static_cast<uint64_t>(std::max<int64_t>(*part.longest / 2, 1)));
  int64_t lanes = std::min(half, lanesFor(schedule.getNest(), part.row));
  if (lanes > 1)
    return scheduleLanes(schedule, part.row, part.entries, lanes, 1, kWarps);
  schedule.split(part.row, kWarps * kLanes);
  bindWarps(schedule, part.row + "1", kLanes);
}

/// Tiles of columns on lanes, a vector each; several rows, or parts of one, share a warp.
static void scheduleColumns(ScheduleBuilder &schedule, const RowClass &part, StringRef lane) {
  Nest &nest = schedule.getNest();
  std::string column = part.prefix + lane.str();
  int64_t known = knownDivisor(nest.find(column).getUpper()), vector = 16 / outputBytes(nest), panel = kLanes * vector;
  int64_t columns = known & -known, most = isLong(part) || summedHas(nest, "lacis.large") ? kColumns : panel;
  bool guards = columns < kFewest && !(isLong(part) && columns >= vector); // warps share no sum that lanes have guards around
  columns = guards ? kColumns : std::min(columns, most);
  int64_t share = panel / std::min(columns, panel);
  schedule.split(column, columns);
  schedule.reorder({column + "0", part.row, column + "1"});
  auto scheduleTile = [&](const std::string &tile) {
    schedule.split(tile, vector);
    schedule.vectorize(tile + "1", vector);
    schedule.bind(tile + "0", "lane");
  };
  if (isLong(part)) {
    scheduleTile(scheduleShares(schedule, part, share) + column + "1");
    return scheduleTile(column + "1");
  }
  scheduleTile(column + "1");
  schedule.split(part.row, kWarps * share);
  bindWarps(schedule, part.row + "1", share);
}

/// The nests for up to `most` vectors.
static void scheduleFewOf(ScheduleBuilder &schedule, StringRef lane, int64_t most) {
  schedule.upto(lane, most);
  for (const RowClass &part : classesOf(schedule.getNest(), prefixOf(caseName(most)))) {
    std::string vectors = part.prefix + lane.str();
    if (most > 1) {
      schedule.split(vectors, most);
      schedule.reorder({vectors + "0", part.row, vectors + "1"});
      schedule.jam(vectors + "1");
    }
    scheduleEntries(schedule, part);
  }
}

bool lacis::isSkewed(Nest &nest) {
  std::string lane = laneLetter(nest);
  LoopOp columns = lane.empty() ? LoopOp() : nest.find(lane);
  bool isMeasured = lane.empty() || (columns && llvm::is_contained(kMeasured, knownDivisor(columns.getUpper())));
  SmallVector<LoopOp> chain = nest.mainChain();
  bool hasFew = chain.size() <= 2 && llvm::any_of(chain, [&](LoopOp loop) { // rows, and columns
    return letterHas(nest, letterOf(loop.getName()), "lacis.skewed");
  });
  return isMeasured && hasFew && (lane.empty() || operandsAcross(nest, lane).empty()) && tellsLongRows(nest);
}

void lacis::scheduleSkewed(ScheduleBuilder &schedule) {
  std::string lane = laneLetter(schedule.getNest());
  schedule.apart({"long"}, kLeast);
  for (RowClass part : classesOf(schedule.getNest())) {
    if (part.prefix.empty())
      part.longest = kLeast - 1;
    if (lane.empty())
      scheduleEntries(schedule, part);
    else
      scheduleColumns(schedule, part, lane);
  }
}

bool lacis::scheduleClasses(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  std::string lane = laneLetter(nest);
  SmallVector<RowClass> classes = classesOf(nest);
  if (classes.empty() || (!lane.empty() && !operandsAcross(nest, lane).empty()))
    return false;
  schedule.apart(joiningClasses(nest.getFunction()));
  LoopOp vectors = lane.empty() ? LoopOp() : nest.find(lane);
  if (vectors && !knownSize(vectors.getUpper()))
    for (int64_t most : kFew)
      if (knownDivisor(vectors.getUpper()) <= most)
        scheduleFewOf(schedule, lane, most);
  for (const RowClass &part : classes)
    if (lane.empty())
      scheduleEntries(schedule, part);
    else
      scheduleColumns(schedule, part, lane);
  return true;
}
