// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loops and positions: lacis loops become scf loops whose bounds and coordinates the levels emit.
#include "LoopLowering.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;

SmallVector<Value> LoopLowering::mapped(ValueRange values) {
  return llvm::map_to_vector(values, [&](Value value) { return mapping.lookupOrDefault(value); });
}

SmallVector<Value> LoopLowering::yielded(Block &block) { return mapped(block.getTerminator()->getOperands()); }

StorageLevel LoopLowering::storageLevel(OpBuilder &b, Location loc, Value tensor, unsigned level) {
  TensorSource source = sourceOf(tensor, workspaces);
  return StorageLevel(b, loc, arguments, source, formatOf(tensor), level, source);
}

LogicalResult LoopLowering::lower(OpBuilder &b, Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(lowerOperation(b, op)))
      return failure();
  return success();
}

LogicalResult LoopLowering::lowerOperation(OpBuilder &b, Operation &op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<PartOp, WalkOp, RegroupOp, BalanceOp>([](auto) { return success(); })
      .Case([&](WorkspaceOp workspace) { return lowerWorkspace(b, workspace), success(); })
      .Case([&](LoopOp loop) { return lowerLoop(b, loop); })
      .Case([&](LevelLoopOp loop) { return lowerLevelLoop(b, loop); })
      .Case([&](scf::IfOp guard) { return lowerIf(b, guard); })
      .Case([&](LocateOp locate) { return lowerLocate(b, locate), success(); })
      .Case([&](LookupOp lookup) { return lowerLookup(b, lookup), success(); })
      .Case([&](SolveOp solve) { return lowerSolve(b, solve), success(); })
      .Case([&](PositionsOp positions) {
        mapping.map(positions.getResult(), arguments.positions(b, positions, workspaces));
        return success();
      })
      .Case([&](OwnerOp owner) { return lowerOwner(b, owner), success(); })
      .Case([&](BoundsOp bounds) { return lowerBounds(b, bounds), success(); })
      .Case([&](FindOp find) { return lowerFind(b, find), success(); })
      .Case([&](SeekOp seek) { return lowerSeek(b, seek), success(); })
      .Case([&](CoordinateOp coordinate) { return lowerCoordinate(b, coordinate), success(); })
      .Case([&](ValueOp value) { return lowerValue(b, value), success(); })
      .Case([&](EntryOp entry) { return lowerEntry(b, entry), success(); })
      .Case([&](SetOp set) { return lowerSet(b, set), success(); })
      .Case([&](LanesOp lanes) { return lowerLanes(b, lanes), success(); })
      .Case([&](ReadOp read) { return lowerRead(b, read); })
      .Case([&](WriteOp write) { return lowerWrite(b, write); })
      .Case([&](CopyTransposedOp copy) { return lowerCopyTransposed(b, copy); })
      .Case<RolesOp, MapOp>([&](Operation *regions) { return lowerRegions(b, *regions); })
      .Case([&](PresenceOp presence) { return lowerPresence(b, presence); })
      .Case([&](OriginOp origin) { return lowerOrigin(b, origin), success(); })
      .Case([&](LoadTileOp load) { return lowerLoadTile(b, load); })
      .Case([&](LoadRunOp load) { return lowerLoadRun(b, load), success(); })
      .Case([&](LoadRowsOp load) { return lowerLoadVector(b, load), success(); })
      .Case([&](LoadColumnsOp load) { return lowerLoadVector(b, load), success(); })
      .Case([&](StoreRowsOp store) { return lowerStoreRows(b, store), success(); })
      .Case([&](LoadAccOp load) { return lowerLoadAcc(b, load), success(); })
      .Case([&](StoreAccOp store) { return lowerStoreAcc(b, store), success(); })
      .Case([&](StoreTileOp store) { return lowerStoreTile(b, store); })
      .Case([&](StoreBlocksOp store) { return lowerStoreBlocks(b, store); })
      .Case([&](tensor::DimOp dim) {
        auto [source, axis] = dimensionOf(dim, workspaces);
        mapping.map(dim.getResult(), arguments.dim(source, axis));
        return success();
      })
      .Default([&](Operation *other) { return cloneConverted(b, *other); });
}

/// Scalar and vector arithmetic stays; indices get the kernel's width.
LogicalResult LoopLowering::cloneConverted(OpBuilder &b, Operation &op) {
  if (op.getNumRegions() != 0)
    return op.emitError("'") << op.getName() << "' has no place inside a nest";
  if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && constant.getType().isIndex()) {
    int64_t value = cast<IntegerAttr>(constant.getValue()).getInt();
    Type type = arguments.getIndexType();
    mapping.map(constant.getResult(), arith::ConstantOp::create(b, op.getLoc(), b.getIntegerAttr(type, value)));
    return success();
  }
  if (isa<arith::IndexCastOp>(op)) { // indices have become integers
    Value value = mapping.lookup(op.getOperand(0));
    mapping.map(op.getResult(0), castInteger(b, op.getLoc(), value, convert(op.getResult(0).getType())));
    return success();
  }
  Operation *clone = b.clone(op, mapping);
  for (Value result : clone->getResults())
    result.setType(convert(result.getType()));
  return success();
}

LogicalResult LoopLowering::lowerIf(OpBuilder &b, scf::IfOp op) {
  auto made = scf::IfOp::create(b, op.getLoc(), op.getResultTypes(), mapping.lookup(op.getCondition()),
                                /*addThenBlock=*/true, /*addElseBlock=*/op.elseBlock() != nullptr);
  for (unsigned side = 0; side < 2; ++side) {
    Region &region = op->getRegion(side);
    if (region.empty())
      continue;
    OpBuilder inner = OpBuilder::atBlockEnd(&made->getRegion(side).front());
    if (failed(lower(inner, region.front())))
      return failure();
    scf::YieldOp::create(inner, op.getLoc(), yielded(region.front()));
  }
  mapping.map(op.getResults(), made.getResults());
  return success();
}

/// Rounds that run at once; those with sums of their own are a pass of its own (InterleaveSums.cpp), and so are those
/// that load ahead (LoadAhead.cpp).
static void annotateRounds(Operation *loop, LoopOpInterface marked) {
  Builder b(loop->getContext());
  if (std::optional<uint64_t> stages = marked.getPipeline())
    loop->setAttr("lacis.pipeline", b.getI64IntegerAttr(*stages));
  std::optional<uint64_t> factor = marked.getUnroll();
  if (std::optional<uint64_t> sums = marked.getSums()) {
    loop->setAttr("lacis.sums", b.getI64IntegerAttr(*sums));
    loop->setAttr("lacis.rounds", b.getI64IntegerAttr(factor.value_or(1)));
    return;
  }
  if (!factor)
    return;
  std::string text =
      "#llvm.loop_annotation<unroll = <disable = false, count = " + std::to_string(*factor) + " : i32>>";
  loop->setAttr("llvm.loop_annotation", parseAttribute(text, loop->getContext()));
}

/// The condition under which a nest is launched, as a factor of its size; null where there is none.
SizeAttr LoopLowering::conditionOf(LoopOp outermost) {
  std::optional<Case> found = isa<func::FuncOp>(outermost->getParentOp()) ? caseOf(outermost) : std::nullopt;
  if (!found)
    return {};
  auto function = cast<func::FuncOp>(outermost->getParentOp());
  return arguments.condition(sourceOf(function.getArgument(found->argument), workspaces), found->axis, found->above,
                             found->upto);
}

LogicalResult LoopLowering::lowerLoop(OpBuilder &b, LoopOp loop) {
  Location loc = loop.getLoc();
  Type index = arguments.getIndexType();
  Value zero = arith::ConstantOp::create(b, loc, b.getIntegerAttr(index, 0));
  Value one = arith::ConstantOp::create(b, loc, b.getIntegerAttr(index, 1));
  auto made = scf::ForOp::create(b, loc, zero, mapping.lookup(loop.getUpper()), one, mapped(loop.getInits()));
  made.getBody()->clear();
  if (std::optional<ParallelUnit> unit = loop.getBind()) {
    made->setAttr("lacis.bind", b.getStringAttr(stringifyParallelUnit(*unit)));
    SizeAttr size = arguments.sizeOf(loop.getUpper(), workspaces);
    if (!size)
      return loop.emitError("bind: the size of loop '") << loop.getName() << "' is not known before the launch";
    made->setAttr("lacis.size", size);
  }
  if (ReductionAttr reduce = loop.getReduceAttr())
    made->setAttr("lacis.reduce", reduce);
  if (loop.getScan())
    made->setAttr("lacis.scan", b.getUnitAttr());
  if (SizeAttr condition = conditionOf(loop))
    made->setAttr("lacis.when", condition);
  if (isApart(outermostLoop(loop))) // each loop says so: those that run once are left out
    made->setAttr("lacis.beside", b.getUnitAttr());
  made->setAttr("lacis.name", StringAttr::get(loop.getContext(), loop.getName()));
  annotateRounds(made, loop);
  mapping.map(loop.getCoordinate(), made.getInductionVar());
  for (auto [before, after] : llvm::zip(loop.getIterArgs(), made.getRegionIterArgs()))
    mapping.map(before, after);
  OpBuilder inner = OpBuilder::atBlockEnd(made.getBody());
  if (failed(lower(inner, *loop.getBlock())))
    return failure();
  scf::YieldOp::create(inner, loc, yielded(*loop.getBlock()));
  mapping.map(loop.getResults(), made.getResults());
  return success();
}

/// The body at one position; padding passes the carried values on. `state` is what the coordinate of the next position
/// must know of those before.
FailureOr<SmallVector<Value>> LoopLowering::lowerPosition(OpBuilder &b, LevelLoopOp loop, StorageLevel &level,
                                                          Value lo, Value position, ValueRange carried,
                                                          SmallVector<Value> &state) {
  Location loc = loop.getLoc();
  LevelAttr attr = formatOf(loop.getTensor()).getLevels()[loop.getLevel()];
  Coordinate found;
  if (!attr.getDigits().empty())
    found = attr.getCoordinate().emitNext(level, lo, position, state);
  state = found.state;
  mapping.map(loop.getPosition(), position);
  SmallVector<Value> digits = splitDigits(b, loc, level, attr.getDigits(), found.crd);
  for (auto [before, after] : llvm::zip(loop.getCoordinates(), digits))
    mapping.map(before, after);
  for (auto [before, after] : llvm::zip(loop.getIterArgs(), carried))
    mapping.map(before, after);
  if (!found.valid) {
    if (failed(lower(b, *loop.getBlock())))
      return failure();
    return yielded(*loop.getBlock());
  }
  auto guard = scf::IfOp::create(b, loc, carried.getTypes(), found.valid, /*addThenBlock=*/true,
                                 /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock());
  if (failed(lower(then, *loop.getBlock())))
    return failure();
  scf::YieldOp::create(then, loc, yielded(*loop.getBlock()));
  OpBuilder otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
  scf::YieldOp::create(otherwise, loc, carried);
  return SmallVector<Value>(guard.getResults());
}

/// So many positions side by side that none of them pays for a loop.
static constexpr int64_t kFewPositions = 4;

/// One position after the other, without a loop.
LogicalResult LoopLowering::lowerFewPositions(OpBuilder &b, LevelLoopOp loop, Value lo, int64_t trip,
                                              SmallVector<Value> carried, SmallVector<Value> state) {
  StorageLevel level = storageLevel(b, loop.getLoc(), loop.getTensor(), loop.getLevel());
  for (int64_t number = 0; number < trip; ++number) {
    Value place = level.constant(number);
    Value position = number ? arith::AddIOp::create(b, loop.getLoc(), lo, place).getResult() : lo;
    auto result = lowerPosition(b, loop, level, lo, position, carried, state);
    if (failed(result))
      return failure();
    carried = std::move(*result);
  }
  mapping.map(loop.getResults(), carried);
  return success();
}

LogicalResult LoopLowering::lowerLevelLoop(OpBuilder &b, LevelLoopOp loop) {
  Location loc = loop.getLoc();
  StorageLevel level = storageLevel(b, loc, loop.getTensor(), loop.getLevel());
  LevelAttr attr = formatOf(loop.getTensor()).getLevels()[loop.getLevel()];
  Value parent = mapping.lookup(loop.getParent());
  auto [lo, hi] = attr.getExtent().emitBounds(level, parent);
  SmallVector<Value> inits = mapped(loop.getInits()), state = attr.getCoordinate().emitOpen(level, parent, lo);
  std::optional<int64_t> trip = attr.getExtent().getTrip();
  if (trip == 1 && loop.getPipeline())
    return loop.emitError("pipeline: loop '") << loop.getName() << "' has one round, which has none to load ahead";
  if (!state.empty() && loop.getPipeline())
    return loop.emitError("pipeline: loop '")
           << loop.getName() << "' walks coordinates that follow from those before them; nothing is known ahead";
  if (trip == 1 || (trip && *trip <= kFewPositions && !loop.getUnroll() && !loop.getPipeline()))
    return lowerFewPositions(b, loop, lo, *trip, std::move(inits), std::move(state));
  Value one = arith::ConstantOp::create(b, loc, b.getIntegerAttr(arguments.getIndexType(), 1));
  size_t count = inits.size();
  llvm::append_range(inits, state);
  auto made = scf::ForOp::create(b, loc, lo, hi, one, inits);
  made.getBody()->clear();
  made->setAttr("lacis.name", StringAttr::get(loop.getContext(), loop.getName()));
  if (ReductionAttr reduce = loop.getReduceAttr(); reduce && state.empty())
    made->setAttr("lacis.reduce", reduce);
  annotateRounds(made, loop);
  OpBuilder inner = OpBuilder::atBlockEnd(made.getBody());
  StorageLevel inside = storageLevel(inner, loc, loop.getTensor(), loop.getLevel());
  ValueRange arguments = made.getRegionIterArgs();
  state.assign(arguments.begin() + count, arguments.end());
  auto result = lowerPosition(inner, loop, inside, lo, made.getInductionVar(), arguments.take_front(count), state);
  if (failed(result))
    return failure();
  llvm::append_range(*result, state);
  scf::YieldOp::create(inner, loc, *result);
  mapping.map(loop.getResults(), made.getResults().take_front(count));
  return success();
}
