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

/// Appends %lo and %hi, and runs the loops bound to threads for the units between; workers on tiles are blocks.
FailureOr<Attribute> mapNest(func::FuncOp function) {
  OpBuilder b(function.getContext());
  Type i64 = b.getI64Type();
  unsigned count = function.getNumArguments();
  for (unsigned n = 0; n < 2; ++n)
    (void)function.insertArgument(count + n, i64, DictionaryAttr(), function.getLoc());
  SmallVector<scf::ForOp> loops = boundLoops(function, {"parallel", "block.x"});
  ArrayAttr units = productOfSizes(b, loops);
  Attribute launch = b.getDictionaryAttr({b.getNamedAttr("entry", b.getStringAttr(function.getName())),
                                     b.getNamedAttr("units", units)});
  auto nest = llvm::find_if(function.getBody().front(), [](Operation &op) { return isa<scf::ForOp>(op); });
  if (nest == function.getBody().front().end())
    return launch;
  b.setInsertionPoint(&*nest);
  Location loc = nest->getLoc();
  Value one = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(1));
  auto range = scf::ForOp::create(b, loc, function.getArgument(count), function.getArgument(count + 1), one);
  b.setInsertionPointToStart(range.getBody());
  SmallVector<Value> coordinates = decodeUnit(b, loc, range.getInductionVar(), loops);
  nest->moveBefore(range.getBody()->getTerminator());
  for (auto [loop, coordinate] : llvm::zip(loops, coordinates))
    inlineLoop(loop, coordinate);
  return launch;
}

struct MapToRanges : lacis::impl::LacisMapToRangesBase<MapToRanges> {
  void runOnOperation() override {
    if (failed(mapNests(getOperation(), mapNest)))
      signalPassFailure();
  }
};

} // namespace
