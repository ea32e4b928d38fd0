// SPDX-License-Identifier: Apache-2.0
/// \file
/// for j: s += extf(x)  -->  for j: s' += extf(evens of x), extf(odds of x);  s = s' in order
///
/// Two bfloat16 lie in a word of 32 bits: a shift makes float32 of the even one and a mask of the odd one, where
/// lanes in order take a shuffle and a shift each. Sums do not ask for the order of their lanes, so that all values
/// between the widened operands of a loop and what stores its results hold the evens first, then the odds.
/// Figures: docs/cpu.md.
#include "WidenHalves.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace {

/// Lanes from which on the evens fill a register of their own: 64 bytes of bfloat16.
constexpr int64_t kLanes = 32;

VectorType vectorType(Value value) { return dyn_cast<VectorType>(value.getType()); }

/// Has the same value in every lane.
bool isSplat(Value value) {
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    return isa<SplatElementsAttr>(constant);
  auto broadcast = value.getDefiningOp<vector::BroadcastOp>();
  return broadcast && !isa<VectorType>(broadcast.getSourceType());
}

/// Each lane of the result is made of the same lane of the operands.
bool isLanewise(Operation *op) {
  return op && OpTrait::hasElementwiseMappableTraits(op) && isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
}

/// Widens lanes that lie in order in memory.
bool isSeed(Operation *op) {
  auto widen = dyn_cast_or_null<arith::ExtFOp>(op);
  auto from = widen ? vectorType(widen.getIn()) : VectorType();
  return from && from.getRank() == 1 && from.getElementType().isBF16() && from.getNumElements() >= kLanes &&
         from.getNumElements() % 2 == 0 &&
         cast<VectorType>(widen.getType()).getElementType().isF32() && !isLanewise(widen.getIn().getDefiningOp());
}

/// How many loops stand around it.
unsigned depthOf(Operation *op) {
  unsigned depth = 0;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>())
    ++depth;
  return depth;
}

/// All values that must have one order of lanes because a seed has it, and the borders where lanes are in order again.
class Component {
public:
  explicit Component(Value seed) : lanes(vectorType(seed).getNumElements()) { take(seed); }

  /// Finds all; false where one of them cannot change its order, or a border lies as deep in loops as all seeds do.
  bool find() {
    for (size_t next = 0; next < values.size(); ++next)
      if (!followSource(values[next]) || !followUses(values[next]))
        return false;
    unsigned depth = 0;
    for (Value value : values)
      if (isSeed(value.getDefiningOp()))
        depth = std::max(depth, depthOf(value.getDefiningOp()));
    return llvm::all_of(borders, [&](OpOperand *use) { return depthOf(use->getOwner()) < depth; });
  }

  void rewrite() {
    for (Value value : values)
      if (isSeed(value.getDefiningOp()))
        widenHalves(cast<arith::ExtFOp>(value.getDefiningOp()));
    for (OpOperand *use : borders) {
      OpBuilder b(use->getOwner());
      SmallVector<int64_t> order; // lane 2 n comes from the evens, 2 n + 1 from the odds
      for (int64_t lane = 0; lane < lanes; ++lane)
        order.push_back(lane / 2 + lane % 2 * (lanes / 2));
      Value value = use->get();
      use->set(vector::ShuffleOp::create(b, use->getOwner()->getLoc(), value, value, order));
    }
  }

  ArrayRef<Value> getValues() const { return values.getArrayRef(); }

private:
  bool take(Value value) {
    if (isSplat(value))
      return true;
    auto type = vectorType(value);
    if (!type || type.getRank() != 1 || type.getNumElements() != lanes)
      return false;
    values.insert(value);
    return true;
  }

  bool takeAll(ValueRange taken) {
    return llvm::all_of(taken, [&](Value value) { return take(value); });
  }

  /// The values that one carried by a loop is joined with.
  bool takeCarried(scf::ForOp loop, unsigned number) {
    return take(loop.getInitArgs()[number]) && take(loop.getRegionIterArg(number)) &&
           take(loop.getYieldedValues()[number]) && take(loop.getResult(number));
  }

  bool takeYielded(scf::IfOp choice, unsigned number) {
    return take(choice.thenYield().getOperand(number)) && take(choice.elseYield().getOperand(number)) &&
           take(choice.getResult(number));
  }

  bool followSource(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      return loop && takeCarried(loop, argument.getArgNumber() - loop.getNumInductionVars());
    }
    Operation *op = value.getDefiningOp();
    unsigned number = cast<OpResult>(value).getResultNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return takeCarried(loop, number);
    if (auto choice = dyn_cast<scf::IfOp>(op))
      return takeYielded(choice, number);
    return isSeed(op) || (isLanewise(op) && takeOperands(op));
  }

  /// A scalar condition selects all lanes alike.
  bool takeOperands(Operation *op) {
    return llvm::all_of(op->getOperands(), [&](Value operand) { return !vectorType(operand) || take(operand); });
  }

  bool followUses(Value value) {
    return llvm::all_of(value.getUses(), [&](OpOperand &use) {
      Operation *op = use.getOwner();
      if (isLanewise(op))
        return takeOperands(op) && takeAll(op->getResults());
      if (auto loop = dyn_cast<scf::ForOp>(op))
        return takeCarried(loop, use.getOperandNumber() - loop.getNumControlOperands());
      if (isa<scf::YieldOp>(op)) {
        if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp()))
          return takeCarried(loop, use.getOperandNumber());
        auto choice = dyn_cast<scf::IfOp>(op->getParentOp());
        return choice && takeYielded(choice, use.getOperandNumber());
      }
      borders.insert(&use);
      return true;
    });
  }

  /// float32 of the even lanes, then of the odd ones.
  void widenHalves(arith::ExtFOp widen) {
    OpBuilder b(widen);
    Location loc = widen.getLoc();
    auto words = VectorType::get({lanes / 2}, b.getI32Type()), floats = VectorType::get({lanes / 2}, b.getF32Type());
    auto constant = [&](int32_t bits) {
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(words, b.getI32IntegerAttr(bits)));
    };
    Value pairs = vector::BitCastOp::create(b, loc, words, widen.getIn());
    Value evens = arith::ShLIOp::create(b, loc, pairs, constant(16));
    Value odds = arith::AndIOp::create(b, loc, pairs, constant(int32_t(0xffff0000u)));
    SmallVector<int64_t> both = llvm::to_vector(llvm::seq<int64_t>(lanes));
    Value joined = vector::ShuffleOp::create(b, loc, vector::BitCastOp::create(b, loc, floats, evens),
                                             vector::BitCastOp::create(b, loc, floats, odds), both);
    widen.replaceAllUsesWith(joined);
    widen.erase();
  }

  int64_t lanes;
  llvm::SetVector<Value> values;
  llvm::SetVector<OpOperand *> borders;
};

class WidenHalves : public PassWrapper<WidenHalves, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WidenHalves)
  StringRef getName() const override { return "lacis-widen-halves"; }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, vector::VectorDialect>();
  }

  void runOnOperation() override {
    SmallVector<Component> found;
    llvm::DenseSet<Value> known;
    getOperation()->walk([&](arith::ExtFOp widen) {
      if (!isSeed(widen) || known.contains(widen))
        return;
      Component component(widen);
      bool holds = component.find();
      known.insert_range(component.getValues());
      if (holds)
        found.push_back(std::move(component));
    });
    for (Component &component : found)
      component.rewrite();
  }
};

} // namespace

std::unique_ptr<Pass> lacis::createWidenHalvesPass() { return std::make_unique<WidenHalves>(); }
