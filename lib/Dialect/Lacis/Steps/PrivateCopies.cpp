// SPDX-License-Identifier: Apache-2.0
/// \file
/// unit k: y[i] += s  -->  unit k: copy[k, i] = s; after: y[i] = the copies, in the order of k
///
/// Of a loop that carries a sum each iteration becomes a unit of its own. A share of entries keeps its parts of rows at
/// the rows' own places in its copy. What a loop adds to where it finds its element, it adds to its copy.
#include "CarriedUnits.h"
#include "PushedSum.h"
#include "ShareParts.h"
#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Dialect/Lacis/IR/Workspace.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lacis;

/// Copies that are known to be larger are refused; others are allocated by the launch, which says so where it cannot.
static constexpr int64_t kMostBytes = int64_t(1) << 30;

/// Why copies of so many elements are too large, or nothing.
static std::string objectionToSize(Type element, ArrayRef<Value> sizes) {
  int64_t bytes = std::max(1u, element.getIntOrFloatBitWidth() / 8);
  for (Value size : sizes) {
    std::optional<int64_t> known = knownSize(size);
    if (!known)
      return ""; // the launch knows
    if (llvm::MulOverflow(bytes, *known, bytes))
      bytes = std::numeric_limits<int64_t>::max();
  }
  if (bytes <= kMostBytes)
    return "";
  return "'private' copies of the output would take " + std::to_string(bytes) + " bytes, more than " +
         std::to_string(kMostBytes);
}

//===- A loop that carries a sum ------------------------------------------===//

/// The loop's units, and the loops around it: an element of a copy for each of their coordinates.
static SmallVector<Value> sizesOfCopies(LoopOp loop) {
  SmallVector<Value> sizes{loop.getUpper()};
  for (LoopOp around : perfectChain(outermostLoop(loop)))
    sizes.push_back(around.getUpper());
  return sizes;
}

static std::string objectionToSum(LoopOp loop) {
  if (std::string why = objectionToUnits(loop); !why.empty())
    return why;
  LoopOp top = outermostLoop(loop);
  for (Value size : sizesOfCopies(loop))
    if (Operation *made = size.getDefiningOp(); !made || (top->isAncestor(made) && !getConstantIntValue(size)))
      return "how large a copy for each unit of loop '" + loop.getName().str() + "' is, is not known before the launch";
  return objectionToSize(loop.getResultTypes()[0], sizesOfCopies(loop));
}

static SmallVector<Value> placeOf(Value unit, LoopOp top) {
  SmallVector<Value> indices{unit};
  for (LoopOp around : perfectChain(top))
    indices.push_back(around.getCoordinate());
  return indices;
}

/// A copy of the nest, after it, in which the loop adds up the copies.
static void addCopies(LoopOp loop, WorkspaceOp copies) {
  Location loc = loop.getLoc();
  OpBuilder after(loop.getContext());
  after.setInsertionPointAfter(outermostLoop(loop));
  LoopOp own = copyNest(after, loop);
  OpBuilder b(own);
  auto sum = LoopOp::create(b, loc, own.getLoopName(), own.getUpper(), own.getInits(), own.getReduce());
  OpBuilder body = OpBuilder::atBlockEnd(sum.getBlock());
  SmallVector<Value> place = placeOf(sum.getCoordinate(), outermostLoop(own));
  Value part = ReadOp::create(body, loc, loop.getResultTypes()[0], copies, place, Value(), IntegerAttr());
  YieldOp::create(body, loc, combine(body, loc, *own.getReduce(), sum.getIterArgs()[0], part));
  own.replaceAllUsesWith(sum);
  own.erase();
}

/// Each unit keeps its sum in its copy; what follows the sum is for the nest after.
static void keepInCopies(LoopOp loop, WorkspaceOp copies) {
  SmallVector<Value> place = placeOf(Value(), outermostLoop(loop));
  while (loop->getNextNode() != loop->getBlock()->getTerminator())
    loop->getBlock()->getTerminator()->getPrevNode()->erase();
  makeUnits(loop, copies.getSizes()[0], [&](OpBuilder &b, Value unit, Value sum) {
    place[0] = unit;
    WriteOp::create(b, copies.getLoc(), sum, copies, place, Value(), IntegerAttr());
  });
}

//===- Shares of entries --------------------------------------------------===//

/// The number of the row whose parts the nest after the shares adds up, or null.
static Value finishedRow(ShareParts &parts) {
  SmallVector<Value> makers{parts.sum.getUpper()};
  for (size_t next = 0; next < makers.size(); ++next) {
    Operation *maker = makers[next].getDefiningOp();
    if (auto row = dyn_cast_or_null<LocateOp>(maker))
      return row.getDigits()[0];
    if (maker)
      llvm::append_range(makers, maker->getOperands());
  }
  return {};
}

static SmallVector<Value> sizesOfShares(ShareParts &parts) {
  SmallVector<Value> sizes(parts.workspace().getSizes());
  sizes[1] = parts.firstRow().getParents();
  return sizes;
}

static std::string objectionToShares(LoopOp shares) {
  std::optional<ShareParts> parts = partsOf(outermostLoop(shares));
  if (!parts || !finishedRow(*parts))
    return "'private' keeps what a loop carries, or the parts of rows of shares; there are none here";
  return objectionToSize(parts->part.getValue().getType(), sizesOfShares(*parts));
}

/// Each share keeps the part of a row at (share, row, …): the nest after reads it there.
static void keepAtRows(LoopOp shares) {
  ShareParts parts = *partsOf(outermostLoop(shares));
  WorkspaceOp before = parts.workspace();
  OpBuilder b(before);
  Value row = finishedRow(parts);
  WorkspaceOp copies = makeWorkspace(b, before.getLoc(), parts.part.getValue().getType(), sizesOfShares(parts));
  parts.part.getIndicesMutable()[1].assign(parts.row);
  parts.read.getIndicesMutable()[1].assign(row);
  before.getResult().replaceAllUsesWith(copies.getResult());
  before.erase();
}

//===- A loop that adds to where it finds its element ---------------------===//

/// The names of the axes of what it adds to: those of the output.
static SmallVector<StringRef> axesOfSum(func::FuncOp function) {
  ArrayRef<Attribute> axes = axesOf(function, function.getNumArguments() - 1);
  return llvm::map_to_vector(axes, [](Attribute name) { return cast<StringAttr>(name).getValue(); });
}

/// The size of each axis, at `b`: that of an operand that has it too.
static SmallVector<Value> sizesOfSum(OpBuilder &b, Location loc, func::FuncOp function) {
  SmallVector<Value> sizes;
  for (StringRef name : axesOfSum(function))
    for (BlockArgument argument : function.getArguments().drop_back()) {
      ArrayRef<Attribute> axes = axesOf(function, argument.getArgNumber());
      const auto *found = llvm::find(axes, StringAttr::get(function.getContext(), name));
      if (found == axes.end())
        continue;
      sizes.push_back(tensor::DimOp::create(b, loc, argument, found - axes.begin()));
      break;
    }
  return sizes;
}

static std::string objectionToPushed(LoopOp loop, PushedSum &sum) {
  Operation *made = loop.getUpper().getDefiningOp();
  if (made && outermostLoop(loop)->isAncestor(made) && !getConstantIntValue(loop.getUpper()))
    return "how many copies loop '" + loop.getName().str() + "' has is not known before the launch";
  if (sum.write.getIndices().size() != axesOfSum(loop->getParentOfType<func::FuncOp>()).size())
    return "another loop around has copies of its own already";
  return "";
}

/// for each unit and element: copy = neutral
static void beginCopies(OpBuilder b, LoopOp loop, WorkspaceOp copies, TypedAttr neutral) {
  Location loc = copies.getLoc();
  Value start = arith::ConstantOp::create(b, loc, neutral);
  SmallVector<Value> place;
  LoopOp top;
  LoopName name("copy", nestOf(b.getContext(), loop.getLoopName()));
  auto open = [&](const LoopName &name, Value size) {
    auto next = LoopOp::create(b, loc, name, size);
    top = top ? top : next;
    place.push_back(next.getCoordinate());
    OpBuilder end = OpBuilder::atBlockEnd(next.getBlock());
    b.setInsertionPoint(YieldOp::create(end, loc, ValueRange()));
  };
  open(name, copies.getSizes()[0]);
  for (auto [axis, size] : llvm::zip(axesOfSum(loop->getParentOfType<func::FuncOp>()), copies.getSizes().drop_front()))
    open({axis, join(name.path, pathOf(b.getContext(), PathKind::Phase, "copy"))}, size);
  WriteOp::create(b, loc, start, copies, place, Value(), IntegerAttr());
  top.setBegins(true);
}

/// for each element: y += its copies
static void addPushedCopies(OpBuilder b, LoopOp loop, WorkspaceOp copies, PushedSum &sum) {
  Location loc = copies.getLoc();
  Type element = sum.write.getValue().getType();
  PathAttr path = nestOf(b.getContext(), loop.getLoopName());
  SmallVector<Value> place;
  for (auto [axis, size] : llvm::zip(axesOfSum(loop->getParentOfType<func::FuncOp>()), copies.getSizes().drop_front())) {
    auto next = LoopOp::create(b, loc, {axis, path}, size);
    next.setFollows(place.empty());
    place.push_back(next.getCoordinate());
    OpBuilder end = OpBuilder::atBlockEnd(next.getBlock());
    b.setInsertionPoint(YieldOp::create(end, loc, ValueRange()));
  }
  Value before = ReadOp::create(b, loc, element, sum.write.getTensor(), place, Value(), IntegerAttr());
  auto units = LoopOp::create(b, loc, {loop.getLetters(), join(path, loop.getPathAttr())}, copies.getSizes()[0], before,
                              sum.kind);
  OpBuilder body = OpBuilder::atBlockEnd(units.getBlock());
  SmallVector<Value> own{units.getCoordinate()};
  llvm::append_range(own, place);
  Value copy = ReadOp::create(body, loc, element, copies, own, Value(), IntegerAttr());
  YieldOp::create(body, loc, combine(body, loc, sum.kind, units.getIterArgs()[0], copy));
  WriteOp::create(b, loc, units.getResult(0), sum.write.getTensor(), place, Value(), IntegerAttr());
}

static void pushToCopies(LoopOp loop, PushedSum sum, Location loc) {
  LoopOp top = outermostLoop(loop);
  OpBuilder b(top);
  std::optional<int64_t> known = getConstantIntValue(loop.getUpper()); // it may stand inside the nest
  SmallVector<Value> sizes{known ? arith::ConstantIndexOp::create(b, loc, *known).getResult() : loop.getUpper()};
  llvm::append_range(sizes, sizesOfSum(b, loc, top->getParentOfType<func::FuncOp>()));
  WorkspaceOp copies = makeWorkspace(b, loc, sum.write.getValue().getType(), sizes);
  beginCopies(b, loop, copies, neutralOf(sum.kind, sum.write.getValue().getType()));
  b.setInsertionPointAfter(top);
  addPushedCopies(b, loop, copies, sum);
  SmallVector<Value> place{loop.getCoordinate()};
  llvm::append_range(place, sum.write.getIndices());
  sum.read.getIndicesMutable().assign(place);
  sum.write.getIndicesMutable().assign(place);
  sum.read.getTensorMutable().assign(copies);
  sum.write.getTensorMutable().assign(copies);
}

//===----------------------------------------------------------------------===//

static std::string objection(LoopOp loop, Nest &) {
  if (std::optional<PushedSum> sum = pushedSum(loop))
    return objectionToPushed(loop, *sum);
  return loop.getNumResults() != 0 ? objectionToSum(loop) : objectionToShares(loop);
}

static void keepPrivate(LoopOp loop, Nest &, Location loc) {
  if (std::optional<PushedSum> sum = pushedSum(loop))
    return pushToCopies(loop, *sum, loc);
  if (loop.getNumResults() == 0)
    return keepAtRows(loop);
  OpBuilder b(outermostLoop(loop));
  SmallVector<Value> sizes = sizesOfCopies(loop);
  for (Value &size : sizes)
    if (auto known = getConstantIntValue(size)) // it may stand inside the nest
      size = arith::ConstantIndexOp::create(b, loc, *known);
  WorkspaceOp copies = makeWorkspace(b, loc, loop.getResultTypes()[0], sizes);
  addCopies(loop, copies);
  keepInCopies(loop, copies);
}

static const bool registered = registerRaceStrategy({"private", objection, keepPrivate});
