// SPDX-License-Identifier: Apache-2.0
/// \file
/// Arrays of execution layouts and of the work lists over their panels: how long they are. The functions of the same
/// names in Python make them so.
#include "lacis/Dialect/Lacis/IR/Lacis.h"

using namespace mlir;
using namespace lacis;

namespace {

/// What the sizes of an execution layout are, or are made of.
struct LayoutSizes {
  SizeAttr panels, steps, tiles; // steps of all panels, with those that occur again; tiles in all
  int64_t height = 1;            // tiles across a panel
  bool isMatrix = false;         // a dense matrix, row by row, whose tiles lie where they are

  LayoutSizes(LayoutAttr layout, FormatAttr source) {
    DerivedSizes sizes(source);
    FormatAttr format = layout.getFormat();
    unsigned lead = leadOf(source);
    ArrayRef<LevelAttr> levels = format.getLevels().drop_front(lead);
    isMatrix = source.getNumTileLevels() == 0;
    Digit outer = levels[0].getDigits()[0], inner = levels[1].getDigits()[0];
    SmallVector<int64_t, 4> tile = sidesOf(format), block = isMatrix ? tile : sidesOf(source);
    SizeAttr most = sizes.slots(), count[2];
    for (unsigned axis : {lead, lead + 1}) {
      bool isCut = block[axis] > tile[axis]; // stored blocks are: their padding has tiles too
      int64_t each = isCut ? block[axis] / tile[axis] : 1;
      count[axis - lead] = sizes.axis(axis).ceilDiv(isCut ? block[axis] : tile[axis]).times(each);
      most = most.times(each);
    }
    height = outer.div / tile[outer.axis];
    int64_t bits = 1;
    for (const Digit &digit : levels[2].getDigits())
      bits *= digit.mod;
    int64_t again = llvm::divideCeil(bits, std::min(layout.getCapacity().value_or(bits), bits));
    SizeAttr grid = count[0].times(count[1]), across = count[inner.axis - lead];
    panels = count[outer.axis - lead].ceilDiv(height);
    if (lead != 0) { // each begins with a panel
      panels = sizes.axis(outer.axis).ceilDiv(outer.div);
      for (unsigned axis = 0; axis < lead; ++axis)
        panels = panels.times(sizes.axis(axis));
      grid = panels.times(height).times(across);
    }
    tiles = isMatrix ? grid : most.min(grid);
    SizeAttr columns = across.ceilDiv(inner.div / tile[inner.axis]);
    steps = tiles.min(panels.times(columns).times(again));
  }

  /// Axes before those of the matrices.
  static unsigned leadOf(FormatAttr format) { return format.getAxes().size() - 2; }

  /// The sizes of a stored block, by axis.
  static SmallVector<int64_t, 4> sidesOf(FormatAttr format) {
    SmallVector<int64_t, 4> sides(format.getAxes().size(), 1);
    for (LevelAttr level : format.getLevels().take_back(format.getNumTileLevels()))
      for (const Digit &digit : level.getDigits())
        sides[digit.axis] *= digit.mod;
    return sides;
  }
};

/// Work lists: where each list of each worker begins, in level `first`, and columns of `items`.
void addLists(SmallVectorImpl<DerivedArray> &arrays, DerivedInterface schedule, unsigned first, unsigned columns,
              SizeAttr workers, SizeAttr items) {
  Type type = IntegerType::get(schedule.getContext(), 32);
  int64_t lists = schedule.getLists();
  arrays.push_back({"pos" + std::to_string(first), type, SmallVector<SizeAttr>{workers.times(lists).plus(1)}});
  for (unsigned n = 0; n < columns; ++n)
    arrays.push_back({"crd" + std::to_string(first + n), type, SmallVector<SizeAttr>{items}});
}

/// Panel, step and bitmap, `link` perhaps, and tiles of a matrix; of a pattern alone dense levels of other axes may be
/// before. No function makes the arrays of another layout.
bool isLayout(FormatAttr format, FormatAttr source) {
  size_t rank = source.getAxes().size(), lead = rank - 2;
  if (rank < 2 || format.getAxes().size() != rank || format.getLevels().size() < lead + 5)
    return false;
  auto leads = [](auto level) {
    ArrayRef<Digit> digits = level.value().getDigits();
    return level.value().getExtent().coversDomain() && digits.size() == 1 && digits[0].axis == level.index() &&
           digits[0].div == 1 && digits[0].mod == 0;
  };
  ArrayRef<LevelAttr> levels = format.getLevels().drop_front(lead);
  SmallVector<int64_t, 4> sides = LayoutSizes::sidesOf(format);
  auto isOfTiles = [&](LevelAttr level) {
    return !level.getDigits().empty() && level.getDigits()[0].axis >= lead &&
           level.getDigits()[0].div >= sides[level.getDigits()[0].axis];
  };
  bool isBlocked = source.getNumTileLevels() == 2 || (lead == 0 && source.getNumTileLevels() == 0);
  return llvm::all_of(llvm::enumerate(format.getLevels().take_front(lead)), leads) && format.getNumTileLevels() == 2 &&
         format.getBindings().empty() && isBlocked && isOfTiles(levels[0]) && isOfTiles(levels[1]) &&
         !levels[2].getDigits().empty();
}

} // namespace

void LayoutAttr::listArrays(const DerivedSource &source, SmallVectorImpl<DerivedArray> &arrays) const {
  if (!isLayout(getFormat(), source.format))
    return void(llvm::append_range(arrays, FormatArrays(getFormat()).arrays));
  LayoutSizes sizes(*this, source.format);
  Type type = IntegerType::get(getContext(), 32);
  FormatAttr format = getFormat();
  SmallVector<SizeAttr> values{sizes.tiles};
  for (LevelAttr level : format.getLevels().take_back(format.getNumTileLevels()))
    for (const Digit &digit : level.getDigits())
      values.push_back(SizeAttr::get(getContext(), digit.mod));
  bool isLinked = llvm::any_of(format.getLevels(), [](LevelAttr level) { return level.getExtent().isLink(); });
  auto named = [&](StringRef name, unsigned level) {
    return name.str() + std::to_string(LayoutSizes::leadOf(source.format) + level);
  };
  if (isLinked && !sizes.isMatrix)
    arrays.push_back({named("link", 3), type, SmallVector<SizeAttr>{sizes.tiles}});
  if (source.element && !source.element.isInteger(1)) // a pattern has none
    arrays.push_back({"values", source.element, std::move(values)});
  arrays.push_back({named("pos", 1), type, SmallVector<SizeAttr>{sizes.panels.plus(1)}});
  arrays.push_back({named("crd", 1), type, SmallVector<SizeAttr>{sizes.steps}});
  arrays.push_back({named("pos", 2), type, SmallVector<SizeAttr>{sizes.steps.plus(1)}});
  arrays.push_back({named("bits", 2), type, SmallVector<SizeAttr>{sizes.steps}});
  arrays.push_back({"origin", type, SmallVector<SizeAttr>{sizes.panels.times(sizes.height)}});
}

int64_t TileScheduleAttr::getLists() const {
  return getPeriod() ? getSwizzleGroup() * *getPeriod() + getSplit().value_or(0) : 1;
}

void TileScheduleAttr::listArrays(const DerivedSource &source, SmallVectorImpl<DerivedArray> &arrays) const {
  DerivedSizes sizes(source.format);
  if (!getPeriod()) // the extent says how many
    return addLists(arrays, *this, 1, 2, sizes.workers(), sizes.count(1));
  int64_t group = getSwizzleGroup(), period = *getPeriod(), split = getSplit().value_or(0);
  SizeAttr panels = sizes.count(0), items;
  if (auto layout = dyn_cast_or_null<LayoutAttr>(source.of); layout && isLayout(layout.getFormat(), source.format))
    panels = LayoutSizes(layout, source.format).panels;
  if (split == 0)
    items = panels.times(period * group * (group + 1) / 2);
  else // a panel has up to twice as many parts as workers more
    items = panels.times(period * group * group + split * split).plus(sizes.workers().times(2 * split * split));
  return addLists(arrays, *this, 2, split ? 7 : 2, sizes.workers(), items);
}

int64_t SegmentScheduleAttr::getLists() const { return getSplit() ? 2 : 1; }

void SegmentScheduleAttr::listArrays(const DerivedSource &source, SmallVectorImpl<DerivedArray> &arrays) const {
  DerivedSizes sizes(source.format);
  SizeAttr panels = sizes.count(0), steps = sizes.count(1), workers = sizes.workers(), items;
  if (auto layout = dyn_cast_or_null<LayoutAttr>(source.of); layout && isLayout(layout.getFormat(), source.format)) {
    LayoutSizes made(layout, source.format);
    panels = made.panels;
    steps = made.steps;
  }
  int64_t length = getLength();
  // Each panel's last segment may have one position.
  SizeAttr most = steps.plus(panels.times(length - 1));
  if (getSpan()) // a segment a position, those that do not come out even, and no more of their pieces than workers
    items = getSplit() ? steps.times(3).plus(workers.times(7)) : steps.plus(workers.times(2));
  else if (getSplit()) // whole segments twice, and once in parts, of which twice as many as workers may be more
    items = most.ceilDiv(length).plus(1).times(3).plus(workers.times(2));
  else
    items = most.plus(1 - length).ceilDiv(length);
  return addLists(arrays, *this, getSplit() ? 2 : 1, (getSpan() ? 3 : 2) + (getSplit() ? 3 : 0), workers, items);
}
