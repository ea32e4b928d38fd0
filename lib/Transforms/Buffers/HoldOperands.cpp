// SPDX-License-Identifier: Apache-2.0
/// \file
/// for j: for k: y += x[j] * z[k]  -->  for j: t = x[j]; for k: y += t * z[k], t in registers of the thread
#include "Footprint.h"
#include "lacis/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace lacis {
#define GEN_PASS_DEF_LACISHOLDOPERANDS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

/// The loads at the beginning of the rounds of one loop.
class HeldLoop {
public:
  explicit HeldLoop(LoopOpInterface round)
      : round(round), loc(round->getLoc()), footprint(round, /*ofThread=*/true),
        b(OpBuilder::atBlockBegin(&round->getRegion(0).front())) {}

  LogicalResult run();

private:
  LogicalResult hold(ReadOp read);
  Value load(ReadOp read);

  LoopOpInterface round;
  Location loc;
  Footprint footprint;
  OpBuilder b;
  SmallVector<std::pair<ReadOp, Value>> held;
};

} // namespace

/// The element, read at the beginning of the round; zero where it lies outside of the operand, and nobody uses it.
Value HeldLoop::load(ReadOp read) {
  Operation *nest = round;
  while (!isa<func::FuncOp>(nest->getParentOp()))
    nest = nest->getParentOp();
  OpBuilder top(nest);
  auto workspace = read.getTensor().getDefiningOp<WorkspaceOp>();
  SmallVector<Value> indices;
  Value inside;
  for (auto [axis, index] : llvm::enumerate(read.getIndices())) {
    indices.push_back(footprint.again(b, index));
    Value size = workspace ? workspace.getSizes()[axis]
                           : tensor::DimOp::create(top, loc, read.getTensor(), static_cast<int64_t>(axis)).getResult();
    Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, indices.back(), size);
    inside = inside ? arith::AndIOp::create(b, loc, inside, below).getResult() : below;
  }
  Value count = read.getCount() ? footprint.again(b, read.getCount()) : Value();
  auto guard = scf::IfOp::create(b, loc, read.getType(), inside, /*withElseRegion=*/true);
  OpBuilder then = guard.getThenBodyBuilder(), otherwise = guard.getElseBodyBuilder();
  auto own = ReadOp::create(then, loc, read.getType(), read.getTensor(), indices, count, read.getAlongAttr());
  own.setStagedAttr(read.getStagedAttr());
  scf::YieldOp::create(then, loc, own.getResult());
  Value zero = arith::ConstantOp::create(otherwise, loc, otherwise.getZeroAttr(read.getType()));
  scf::YieldOp::create(otherwise, loc, zero);
  return guard.getResult(0);
}

LogicalResult HeldLoop::hold(ReadOp read) {
  SmallVector<Value> places(read.getIndices());
  if (read.getCount())
    places.push_back(read.getCount());
  for (auto [axis, index] : llvm::enumerate(places))
    if (!footprint.isCommon(index))
      return emitError(loc) << "stage: the operand is read at coordinates that change within a round of loop "
                            << '"' << round.getName() << "\" (axis " << axis
                            << "); a register holds one element: name a loop inside of those, or jam or vectorize them";
  auto isSameRead = [&](auto &pair) {
    ReadOp other = pair.first;
    return other.getTensor() == read.getTensor() && other.getType() == read.getType() &&
           other.getAlongAttr() == read.getAlongAttr() && other->getNumOperands() == read->getNumOperands() &&
           llvm::all_of(llvm::zip(other->getOperands(), read->getOperands()),
                        [](auto both) { return isSameValue(std::get<0>(both), std::get<1>(both)); });
  };
  auto *found = llvm::find_if(held, isSameRead);
  Value value = found == held.end() ? load(read) : found->second;
  held.push_back({read, value});
  return success();
}

LogicalResult HeldLoop::run() {
  SmallVector<ReadOp> reads;
  round->walk([&](ReadOp read) {
    if (read.getHeld() == round.getName())
      reads.push_back(read);
  });
  for (ReadOp read : reads)
    if (failed(hold(read)))
      return failure();
  for (auto [read, value] : held) {
    read.getResult().replaceAllUsesWith(value);
    read.erase();
  }
  round.setHolds(false);
  return success();
}

namespace {

struct HoldOperands : lacis::impl::LacisHoldOperandsBase<HoldOperands> {
  void runOnOperation() override {
    SmallVector<LoopOpInterface> rounds;
    getOperation().walk([&](LoopOpInterface loop) {
      if (loop.getHolds())
        rounds.push_back(loop);
    });
    for (LoopOpInterface round : rounds)
      if (failed(HeldLoop(round).run()))
        return signalPassFailure();
  }
};

} // namespace
