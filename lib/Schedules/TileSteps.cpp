// SPDX-License-Identifier: Apache-2.0
/// \file
/// Steps that all schedules of tiles take: layouts, splits of rows and of columns, marks.
#include "TileSteps.h"

#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace lacis;

StringRef lacis::nameOfOperand(func::FuncOp function, BlockArgument operand) {
  return function.getArgAttrOfType<StringAttr>(operand.getArgNumber(), "lacis.name").getValue();
}

FormatAttr lacis::layoutOfTiles(const Product &product, int64_t rows, int64_t step, StoredBlock tile, bool isUnique,
                                bool isLinked) {
  auto function = cast<func::FuncOp>(product.stored.getOwner()->getParentOp());
  auto marks = function.getArgAttrOfType<ArrayAttr>(product.stored.getArgNumber(), "lacis.axes");
  auto axes = llvm::to_vector(marks.getAsValueRange<StringAttr>()); // the last two are of the pattern that copies share
  StringRef m = product.rows, k = product.isSampled() ? product.columns : product.depth;
  int64_t height = rows / tile.rows, width = step / tile.columns;
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "#lacis.format<(" << axes[axes.size() - 2] << ", " << axes.back() << ") -> (" << m << " floordiv " << rows
      << " : dense, " << k << " floordiv " << step << " : compressed" << (isUnique ? "" : "<unique=false>") << ", ";
  if (width == 1 && !product.isSampled())
    out << m << " floordiv " << tile.rows << " mod " << height << " : bitmap, ";
  else
    out << "(" << m << " floordiv " << tile.rows << " mod " << height << ", " << k << " floordiv " << tile.columns
        << " mod " << width << ") : bitmap, ";
  std::pair first(m, tile.rows), last(k, tile.columns);
  if (tile.transposed)
    std::swap(first, last);
  out << (isLinked ? "link, " : "") << first.first << " mod " << first.second << " : dense, " << last.first << " mod "
      << last.second << " : dense)>";
  return cast<FormatAttr>(parseAttribute(text, function.getContext()));
}

void lacis::markTiles(ScheduleBuilder &schedule, Product &product, const std::string &consumers,
                      ArrayRef<std::string> parts, const std::string &sum, int64_t stages,
                      const std::vector<std::string> &tile) {
  if (!consumers.empty())
    schedule.bind(consumers, "warpgroup");
  for (const std::string &part : parts)
    schedule.jam(part);
  for (BlockArgument operand : {product.left, product.right})
    schedule.stage(nameOfOperand(schedule.getNest().getFunction(), operand), "shared");
  schedule.pipeline(sum, stages);
  schedule.tensorize(tile, takesTf32(schedule.getNest()) ? "tf32" : "");
}

TileRows lacis::cutRows(ScheduleBuilder &schedule, const TilePanel &panel, SmallVector<RowLoop> loops) {
  const int64_t each = panel.rows / panel.consumers;
  for (int64_t size : {panel.rows, each, panel.tileRows}) {
    auto *cut = llvm::find_if(loops, [&](const RowLoop &loop) {
      return loop.unit < size && (loop.rounds == 0 || size < loop.unit * loop.rounds);
    });
    if (cut == loops.end())
      continue;
    int64_t factor = size / cut->unit;
    RowLoop inner{cut->name + "1", cut->unit, factor};
    schedule.split(cut->name, factor);
    *cut = {cut->name + "0", size, cut->rounds / factor};
    loops.insert(std::next(cut), inner);
  }
  TileRows found;
  for (RowLoop &loop : loops) {
    if (loop.unit >= panel.rows)
      found.panels.push_back(loop.name);
    else if (loop.unit >= each)
      found.consumers = loop.name;
    else
      (loop.unit >= panel.tileRows ? found.parts : found.rows).push_back(loop.name);
  }
  return found;
}

std::pair<std::vector<std::string>, std::string> lacis::cutWithBatch(ScheduleBuilder &schedule, const Product &product,
                                                                     std::string loop, int64_t size) {
  std::vector<std::string> around(product.batch.begin(), product.batch.end());
  if (product.isFolded) {
    around.push_back(loop);
    loop = schedule.fuse(around);
    around.clear();
  }
  schedule.split(loop, size);
  around.push_back(loop + "0");
  return {around, loop + "1"};
}

TileSum lacis::cutSum(ScheduleBuilder &schedule, const Product &product, int64_t size, const std::string &entries) {
  auto [around, depth] = cutWithBatch(schedule, product, product.sumName().str(), size);
  if (!product.hasCopies)
    return {"", schedule.fuse(around), depth};
  std::string rounds = around.back();
  around.pop_back();
  std::string copies = schedule.fuse(around);
  schedule.reorder({entries, copies});
  return {copies, rounds, depth};
}
