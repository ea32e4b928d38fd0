// SPDX-License-Identifier: Apache-2.0
/// \file
/// Each nest becomes a kernel: bound loops take their coordinates from the block, warp and lane.
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
    return loop.emitError("bind: two loops are bound to '") << unit << "'";
  auto size = getConstantIntValue(loop.getUpperBound());
  if (!size || *size > 1024)
    return loop.emitError("bind: a loop bound to '") << unit << "' needs a constant size up to 1024";
  return *size;
}

class GridMapping {
public:
  explicit GridMapping(func::FuncOp function) : function(function), b(function.getBody()) {}

  FailureOr<Attribute> run() {
    SmallVector<scf::ForOp> blocks = boundLoops(function, {"block.x", "parallel"});
    SmallVector<scf::ForOp> warps = boundLoops(function, {"warp"}), lanes = boundLoops(function, {"lane"});
    SmallVector<scf::ForOp> threads = boundLoops(function, {"thread.x"});
    FailureOr<int64_t> warp = threadsOf(warps, "warp"), lane = threadsOf(lanes, "lane"),
                       thread = threadsOf(threads, "thread.x");
    if (failed(warp) || failed(lane) || failed(thread))
      return failure();
    if (!lanes.empty() && *lane != kWarpSize)
      return lanes.front().emitError("bind: a loop bound to 'lane' runs exactly 32 times");
    if (!threads.empty() && (!warps.empty() || !lanes.empty()))
      return threads.front().emitError("bind: 'thread.x' excludes 'warp' and 'lane'");
    int64_t size = !threads.empty() ? *thread : *warp * (lanes.empty() ? 1 : kWarpSize);
    Attribute launch = record(blocks, size);
    auto nest = llvm::find_if(function.getBody().front(), [](Operation &op) { return isa<scf::ForOp>(op); });
    if (nest == function.getBody().front().end())
      return launch;
    b.setInsertionPoint(&*nest);
    place(blocks, warps, lanes, threads, nest->getLoc());
    return launch;
  }

private:
  Attribute record(ArrayRef<scf::ForOp> blocks, int64_t threads) {
    function->setAttr("lacis.gpu_kernel", b.getUnitAttr());
    function->setAttr("lacis.block", b.getDenseI64ArrayAttr({threads, 1, 1}));
    ArrayAttr one = productOfSizes(b, {});
    return b.getDictionaryAttr({b.getNamedAttr("entry", b.getStringAttr(function.getName())),
                                b.getNamedAttr("grid", b.getArrayAttr({productOfSizes(b, blocks), one, one})),
                                b.getNamedAttr("block", b.getI64ArrayAttr({threads, 1, 1})),
                                b.getNamedAttr("shared", b.getI64IntegerAttr(0))});
  }

  Value as(Value value, Type type, Location loc) { return arith::IndexCastUIOp::create(b, loc, type, value); }

  void place(ArrayRef<scf::ForOp> blocks, ArrayRef<scf::ForOp> warps, ArrayRef<scf::ForOp> lanes,
             ArrayRef<scf::ForOp> threads, Location loc) {
    Type i32 = b.getI32Type();
    Value block = as(gpu::BlockIdOp::create(b, loc, gpu::Dimension::x), i32, loc);
    Value thread = as(gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x), i32, loc);
    // The flat unit has the width of the loops: a grid has fewer than 2^31 blocks.
    Type index = blocks.empty() ? i32 : scf::ForOp(blocks.front()).getInductionVar().getType();
    auto widen = [&](Value value, Type type) {
      return value.getType() == type ? value : arith::ExtUIOp::create(b, loc, type, value).getResult();
    };
    SmallVector<Value> units = decodeUnit(b, loc, widen(block, index), blocks);
    Value size = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(lanes.empty() ? 1 : kWarpSize));
    Value warp = arith::DivUIOp::create(b, loc, thread, size);
    Value lane = arith::RemUIOp::create(b, loc, thread, size);
    auto inlineAt = [&](ArrayRef<scf::ForOp> loops, Value value) {
      for (scf::ForOp loop : loops)
        inlineLoop(loop, widen(value, loop.getInductionVar().getType()));
    };
    inlineAt(warps, warp);
    inlineAt(lanes, lane);
    inlineAt(threads, thread);
    for (auto [loop, unit] : llvm::zip(blocks, units))
      inlineLoop(loop, unit);
  }

  func::FuncOp function;
  OpBuilder b;
};

struct MapToGrid : lacis::impl::LacisMapToGridBase<MapToGrid> {
  void runOnOperation() override {
    if (failed(mapNests(getOperation(), [](func::FuncOp function) { return GridMapping(function).run(); })))
      signalPassFailure();
  }
};

} // namespace
