// SPDX-License-Identifier: Apache-2.0
/// \file
/// Work lists of the panels of an execution layout.
#include "WorkLists.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace lacis;

/// In groups of lists or one for each worker; what an item says has a letter a level.
Value lacis::makeLists(OpBuilder &b, TileNest &nest, Value layout) {
  MLIRContext *context = b.getContext();
  auto function = nest.top->getParentOfType<func::FuncOp>();
  bool isSampled = nest.product.isSampled(), hasGroups = !isSampled || nest.isCut();
  std::string levels = isSampled ? nest.isGathered() ? "sc" : "s" : nest.isCut() ? "bsc" : "b";
  levels += nest.isCut() ? "kpf" : "";
  std::string axes = hasGroups ? "g, n, i" : "n, i";
  std::string text = std::string(") -> (") + (hasGroups ? "g : dense, " : "") + "n : dense, i : compressed<unique=false>";
  for (char axis : levels) {
    axes += std::string(", ") + axis;
    text += std::string(", ") + axis + " : singleton";
  }
  Attribute format = parseAttribute("#lacis.format<(" + axes + text + ")>", context);
  SmallVector<int64_t> shape(levels.size() + (hasGroups ? 3 : 2), ShapedType::kDynamic);
  auto known = function->getAttrOfType<CostAttr>("lacis.cost"); // what work takes on the target
  CostAttr cost = known ? known : CostAttr::of(context, "");
  WorkListsAttr marks = nest.lists;
  DerivedInterface schedule =
      isSampled ? DerivedInterface(SegmentScheduleAttr::get(context, nest.share, marks.getWithin(), marks.getParts(), cost))
                : TileScheduleAttr::get(context, nest.columns, marks.getRaster(), marks.getGroups(), marks.getCut(), cost);
  return BalanceOp::create(b, nest.product.sum->getLoc(), RankedTensorType::get(shape, b.getI1Type(), format), layout,
                           Value(), schedule);
}

unsigned lacis::itemsOf(Value lists) {
  return llvm::count_if(formatOf(lists).getLevels(), [](LevelAttr level) { return level.getExtent().coversDomain(); });
}

unsigned lacis::workersOf(Value lists) { return itemsOf(lists) - 1; }

/// Sums of parts that are kept, for each worker: as many as the lists number at the most.
static constexpr int64_t kSlots = 2;

Value lacis::makeKept(OpBuilder &b, TileNest &nest, Value workers, KeptSizes sizes) {
  Location loc = nest.product.sum->getLoc();
  auto constant = [&](int64_t value) { return arith::ConstantIndexOp::create(b, loc, value).getResult(); };
  Attribute tiles = accumulatorTiles(b.getContext(), "n", "m", sizes.columns, nest.rows);
  Value across = arith::MulIOp::create(b, loc, workers, constant(kSlots * sizes.across));
  Value down = constant(sizes.down);
  SmallVector<int64_t> shape(2, ShapedType::kDynamic);
  return WorkspaceOp::create(b, loc, RankedTensorType::get(shape, b.getF32Type(), tiles), ValueRange{across, down});
}
