// SPDX-License-Identifier: Apache-2.0
/// \file
/// Each nest becomes a kernel: bound loops take their coordinates from the block, warp and lane.
#include "Combine.h"
#include "../Buffers/SharedArray.h"
#include "LaunchMapping.h"

namespace lacis {
#define GEN_PASS_DEF_LACISMAPTOGRID
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

constexpr int64_t kWarpSize = 32;

/// Threads along a unit: the constant size of the loops bound to it, 1 where none is.
FailureOr<int64_t> threadsOf(ArrayRef<scf::ForOp> loops, StringRef unit) {
  if (loops.empty())
    return 1;
  scf::ForOp loop = loops.back();
  if (loops.size() > 1)
    return loop.emitError("bind: two loops are bound to '") << unit << "', which has one size; fuse them";
  auto size = getConstantIntValue(loop.getUpperBound());
  if (!size || *size > 1024)
    return loop.emitError("bind: a loop bound to '") << unit << "' needs a constant size up to 1024";
  return *size;
}

constexpr const char *kAxes[] = {"x", "y", "z"};

class GridMapping {
public:
  /// `shares`: other nests have blocks of the same grid.
  GridMapping(func::FuncOp function, bool shares) : function(function), b(function.getBody()), shares(shares) {}

  FailureOr<Attribute> run() {
    for (unsigned axis = 0; axis < 3; ++axis) {
      std::string block = std::string("block.") + kAxes[axis], thread = std::string("thread.") + kAxes[axis];
      blocks[axis] = boundLoops(function, axis == 0 ? ArrayRef<StringRef>{block, "parallel"} : ArrayRef<StringRef>{block});
      threads[axis] = boundLoops(function, {StringRef(thread)});
      FailureOr<int64_t> size = threadsOf(threads[axis], thread);
      if (failed(size))
        return failure();
      sizes[axis] = *size;
    }
    warps = boundLoops(function, {"warp"});
    lanes = boundLoops(function, {"lane"});
    FailureOr<int64_t> warp = threadsOf(warps, "warp");
    if (failed(warp) || failed(checkLanes()))
      return failure();
    bool usesWarps = !warps.empty() || !lanes.empty();
    for (const auto &loops : threads)
      if (!loops.empty() && usesWarps)
        return scf::ForOp(loops.front()).emitError("bind: a nest has loops on 'thread.x', or on 'warp' and 'lane', not both");
    if (usesWarps)
      sizes[0] = *warp * (lanes.empty() ? 1 : kWarpSize);
    Attribute launch = record();
    auto nest = llvm::find_if(function.getBody().front(), [](Operation &op) { return isa<scf::ForOp>(op); });
    if (nest == function.getBody().front().end())
      return launch;
    b.setInsertionPoint(&*nest);
    if ((shares && failed(share(*nest))) || failed(place(nest->getLoc())))
      return failure();
    return launch;
  }

  Value getEnd() const { return end; }

private:
  /// Loops that share the lanes run 32 times together.
  LogicalResult checkLanes() {
    int64_t count = 1;
    for (scf::ForOp loop : lanes)
      count *= getConstantIntValue(loop.getUpperBound()).value_or(0);
    if (lanes.empty() || count == kWarpSize)
      return success();
    return lanes.front().emitError("bind: the loops bound to 'lane' run ")
           << count << " times together; a warp has exactly 32 lanes";
  }

  /// if start <= block < end: the nest, at unit block - start.
  LogicalResult share(Operation &nest) {
    Location loc = nest.getLoc();
    if (!blocks[1].empty() || !blocks[2].empty() || blocks[0].empty())
      return nest.emitError("bind: units of a nest that shares a launch are blocks along x");
    Type type = scf::ForOp(blocks[0].front()).getInductionVar().getType();
    SharedUnits shared = shareUnits(b, loc, type, blocks[0]);
    Value block = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), gpu::BlockIdOp::create(b, loc, gpu::Dimension::x));
    unit = arith::SubIOp::create(b, loc, widen(block, type, loc), shared.start);
    Value isOurs = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, unit, shared.units);
    auto guard = scf::IfOp::create(b, loc, isOurs, /*withElseRegion=*/false);
    nest.moveBefore(guard.thenBlock()->getTerminator());
    b.setInsertionPoint(&nest);
    end = shared.end;
    return success();
  }

  Attribute record() {
    function->setAttr("lacis.gpu_kernel", b.getUnitAttr());
    function->setAttr("lacis.block", b.getDenseI64ArrayAttr(sizes));
    SmallVector<Attribute> grid;
    for (const auto &loops : blocks)
      grid.push_back(productOfSizes(b, loops));
    return b.getDictionaryAttr({b.getNamedAttr("entry", b.getStringAttr(function.getName())),
                                b.getNamedAttr("grid", b.getArrayAttr(grid)),
                                b.getNamedAttr("block", b.getI64ArrayAttr(sizes)),
                                b.getNamedAttr("shared", b.getI64IntegerAttr(0))});
  }

  Value widen(Value value, Type type, Location loc) {
    return value.getType() == type ? value : arith::ExtUIOp::create(b, loc, type, value).getResult();
  }

  /// Each loop that is bound runs at one coordinate, its unit's.
  struct Unit {
    scf::ForOp loop;
    Value coordinate;
    LaneGroup lanes{};
  };

  void place(ArrayRef<scf::ForOp> loops, Value value, Location loc) {
    for (scf::ForOp loop : loops)
      units.push_back({loop, widen(value, loop.getInductionVar().getType(), loc)});
  }

  /// The inner of two loops that share the lanes has neighbouring ones; but the vectors whose sum it shares stay
  /// neighbours.
  void placeLanes(Value lane, Location loc) {
    auto constant = [&](int64_t value) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value)); };
    auto sumsVectors = [](scf::ForOp loop) { return llvm::any_of(loop.getResultTypes(), llvm::IsaPred<VectorType>); };
    for (size_t n = 1; n < lanes.size(); ++n)
      if (sumsVectors(lanes[n]))
        std::swap(lanes[n - 1], lanes[n]);
    int64_t stride = kWarpSize;
    for (scf::ForOp loop : lanes) {
      int64_t trip = *getConstantIntValue(loop.getUpperBound());
      stride /= trip;
      Value digit = stride == 1 ? lane : arith::DivUIOp::create(b, loc, lane, constant(stride)).getResult();
      if (trip * stride != kWarpSize)
        digit = arith::RemUIOp::create(b, loc, digit, constant(trip));
      units.push_back(
          {loop, widen(digit, loop.getInductionVar().getType(), loc), {lane, trip, stride, sumsVectors(loop)}});
    }
  }

  /// Lanes that share a sum all have it, and all store it; one of them adds it to what is there.
  void addOnce(scf::ForOp sum, Value lane) {
    SmallVector<LLVM::AtomicRMWOp> additions;
    function.walk([&](LLVM::AtomicRMWOp op) {
      if (!sum->isProperAncestor(op))
        additions.push_back(op);
    });
    for (LLVM::AtomicRMWOp op : additions) {
      OpBuilder at(op);
      Value zero = arith::ConstantOp::create(at, op.getLoc(), at.getIntegerAttr(lane.getType(), 0));
      Value isFirst = arith::CmpIOp::create(at, op.getLoc(), arith::CmpIPredicate::eq, lane, zero);
      auto guard = scf::IfOp::create(at, op.getLoc(), isFirst, /*withElseRegion=*/false);
      op->moveBefore(guard.thenBlock()->getTerminator());
    }
  }

  LogicalResult place(Location loc) {
    Type i32 = b.getI32Type();
    auto as32 = [&](Value value) { return arith::IndexCastUIOp::create(b, loc, i32, value).getResult(); };
    SmallVector<Value> thread(3);
    for (unsigned axis = 0; axis < 3; ++axis)
      if (axis == 0 || !threads[axis].empty())
        thread[axis] = as32(gpu::ThreadIdOp::create(b, loc, static_cast<gpu::Dimension>(axis)));
    Value size = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(lanes.empty() ? 1 : kWarpSize));
    place(warps, arith::DivUIOp::create(b, loc, thread[0], size), loc);
    warpLane = arith::RemUIOp::create(b, loc, thread[0], size);
    placeLanes(warpLane, loc);
    for (unsigned axis = 0; axis < 3; ++axis) {
      place(threads[axis], thread[axis], loc);
      if (blocks[axis].empty())
        continue;
      // The flat unit has the width of the loops: a grid has fewer than 2^31 blocks.
      Type type = scf::ForOp(blocks[axis].front()).getInductionVar().getType();
      Value flat = unit;
      if (!unit)
        flat = widen(as32(gpu::BlockIdOp::create(b, loc, static_cast<gpu::Dimension>(axis))), type, loc);
      for (auto [loop, coordinate] : llvm::zip(blocks[axis], decodeUnit(b, loc, flat, blocks[axis])))
        units.push_back({loop, coordinate});
    }
    for (scf::ForOp loop : boundLoops(function, {"threads"}))
      shareOut(loop, thread, loc);
    for (auto &[loop, coordinate, group] : units) {
      bool scans = loop->hasAttr("lacis.scan");
      if (loop.getNumResults() != 0 && !scans)
        addOnce(loop, coordinate);
      if (loop.getNumResults() == 0)
        inlineLoop(loop, coordinate);
      else if (scans) {
        if (failed(inlineLaneScan(loop, coordinate, group)))
          return failure();
      }
      else if (llvm::is_contained(warps, loop)) {
        if (failed(inlineWarpSum(loop, coordinate, warpLane, *getConstantIntValue(loop.getUpperBound()))))
          return failure();
      }
      else if (failed(inlineLaneSum(loop, coordinate, group)))
        return failure();
    }
    return success();
  }

  /// All threads of the block take turns at the iterations of a loop.
  void shareOut(scf::ForOp loop, ArrayRef<Value> thread, Location loc) {
    auto constant = [&](int64_t value) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value)); };
    Value number = thread[0];
    int64_t count = sizes[0];
    for (unsigned axis : {1, 2}) {
      if (thread[axis])
        number = arith::AddIOp::create(b, loc, number, arith::MulIOp::create(b, loc, thread[axis], constant(count)));
      count *= sizes[axis];
    }
    Type type = loop.getInductionVar().getType();
    loop.setLowerBound(widen(number, type, loc));
    loop.setStep(arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, count)));
    loop->removeAttr("lacis.bind");
    loop->removeAttr("lacis.size");
  }

  func::FuncOp function;
  OpBuilder b;
  SmallVector<scf::ForOp> blocks[3], threads[3], warps, lanes;
  SmallVector<int64_t> sizes{1, 1, 1};
  SmallVector<Unit> units;
  Value warpLane; // the thread's number in its warp
  bool shares;
  Value unit, end; // the block's unit, and where the units of the nest end, where nests share the grid
};

/// Nests that share a launch have the same threads.
LogicalResult checkThreads(const BesideNests &beside, func::FuncOp then) {
  for (func::FuncOp first : beside.getFunctions())
    if (first->getAttr("lacis.block") != then->getAttr("lacis.block"))
      return then.emitError("bind: nests that share a launch have blocks of ")
             << first->getAttr("lacis.block") << " and of " << then->getAttr("lacis.block") << " threads";
  return success();
}

/// Staged tiles, sums of warps and whatever else lies in static shared memory fit into a block's together.
LogicalResult checkSharedMemory(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  llvm::SmallDenseMap<StringRef, int64_t> arrays;
  function.walk([&](LLVM::AddressOfOp address) {
    auto global = module.lookupSymbol<LLVM::GlobalOp>(address.getGlobalName());
    auto type = global && global.getAddrSpace() == kSharedSpace ? dyn_cast<LLVM::LLVMArrayType>(global.getType())
                                                                : LLVM::LLVMArrayType();
    if (type)
      arrays[address.getGlobalName()] = static_cast<int64_t>(llvm::alignTo(type.getNumElements(), kSharedAlignment));
  });
  int64_t bytes = 0;
  for (auto &[name, size] : arrays)
    bytes += size;
  if (bytes <= kStaticSharedBytes)
    return success();
  return function.emitError("bind: staged tiles and sums of warps take ")
         << bytes << " bytes of a block's shared memory together, more than " << kStaticSharedBytes
         << "; split the staged loops smaller, or bind fewer warps";
}

struct MapToGrid : lacis::impl::LacisMapToGridBase<MapToGrid> {
  void runOnOperation() override {
    BesideNests beside;
    auto map = [&](func::FuncOp function) -> FailureOr<Attribute> {
      bool joins = isBeside(function);
      GridMapping grid(function, joins || !beside.empty());
      FailureOr<Attribute> launch = grid.run();
      if (failed(launch))
        return failure();
      if (joins) {
        beside.add(function, grid.getEnd(), cast<ArrayAttr>(cast<DictionaryAttr>(*launch).get("grid"))[0]);
        return Attribute();
      }
      if (!beside.empty() && failed(checkThreads(beside, function)))
        return failure();
      if (!beside.empty())
        *launch = beside.joinTo(function, *launch);
      if (failed(checkSharedMemory(function)))
        return failure();
      return launch;
    };
    if (failed(mapNests(getOperation(), map)))
      signalPassFailure();
  }
};

} // namespace
