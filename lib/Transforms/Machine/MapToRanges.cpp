// SPDX-License-Identifier: Apache-2.0
/// \file
/// Each nest becomes a function over a range of units; a thread of the CPU runs one range.
#include "LaunchMapping.h"

namespace lacis {
#define GEN_PASS_DEF_LACISMAPTORANGES
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

/// One nest; where others have units of the same range, its own are [start, end).
struct RangeMapping {
  func::FuncOp function;
  bool shares;
  Value end;

  /// Appends %lo and %hi, and runs the loops bound to threads for the units between; workers on tiles are blocks.
  Attribute run() {
    OpBuilder b(function.getContext());
    Type i64 = b.getI64Type();
    unsigned count = function.getNumArguments();
    for (unsigned n = 0; n < 2; ++n)
      (void)function.insertArgument(count + n, i64, DictionaryAttr(), function.getLoc());
    SmallVector<scf::ForOp> loops = boundLoops(function, {"parallel", "block.x", "block.y", "block.z"});
    SizeAttr units = productOfSizes(b, loops);
    Attribute launch = b.getDictionaryAttr({b.getNamedAttr("entry", b.getStringAttr(function.getName())),
                                            b.getNamedAttr("units", units)});
    auto nest = llvm::find_if(function.getBody().front(), [](Operation &op) { return isa<scf::ForOp>(op); });
    if (nest == function.getBody().front().end())
      return launch;
    b.setInsertionPoint(&*nest);
    Location loc = nest->getLoc();
    Value one = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(1));
    auto [lo, hi] = rangeOf(b, loc, loops);
    auto range = scf::ForOp::create(b, loc, lo, hi, one);
    b.setInsertionPointToStart(range.getBody());
    SmallVector<Value> coordinates = decodeUnit(b, loc, range.getInductionVar(), loops);
    nest->moveBefore(range.getBody()->getTerminator());
    for (auto [loop, coordinate] : llvm::zip(loops, coordinates))
      inlineLoop(loop, coordinate);
    return launch;
  }

private:
  std::pair<Value, Value> rangeOf(OpBuilder &b, Location loc, ArrayRef<scf::ForOp> loops) {
    Value hi = function.getArguments().back(), lo = function.getArguments().drop_back().back();
    if (!shares)
      return {lo, hi};
    SharedUnits shared = shareUnits(b, loc, b.getI64Type(), loops);
    end = shared.end;
    auto from = [&](Value value) { return arith::SubIOp::create(b, loc, value, shared.start).getResult(); };
    Value zero = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
    return {arith::MaxSIOp::create(b, loc, from(lo), zero), arith::MinSIOp::create(b, loc, from(hi), shared.units)};
  }
};

struct MapToRanges : lacis::impl::LacisMapToRangesBase<MapToRanges> {
  void runOnOperation() override {
    BesideNests beside;
    auto map = [&](func::FuncOp function) -> FailureOr<Attribute> {
      bool joins = isBeside(function);
      RangeMapping range{function, joins || !beside.empty(), {}};
      Attribute launch = range.run();
      if (joins) {
        beside.add(function, range.end, cast<DictionaryAttr>(launch).get("units"));
        return Attribute();
      }
      return beside.empty() ? launch : beside.joinTo(function, launch);
    };
    if (failed(mapNests(getOperation(), map)))
      signalPassFailure();
  }
};

} // namespace
