// SPDX-License-Identifier: Apache-2.0
/// \file
/// for j: load; release  -->  a function of blocks: one call runs from where the last one stopped to the next release.
///
/// Loops that release become branches; what a block needs of another is kept in the frame. Loops without a release
/// stay loops, and what they need stays in registers.
#include "Resumable.h"

#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::plain;

static constexpr int64_t kSlotBytes = 8;

static bool isConstant(Operation *op) { return op && op->hasTrait<OpTrait::ConstantLike>(); }

static bool releases(Operation *op) {
  return op->walk([](ReleaseOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

namespace {

class RoleFunction {
public:
  RoleFunction(func::FuncOp kernel, Region &role) : kernel(kernel), loc(role.getLoc()), b(kernel) { outline(role); }

  FailureOr<Resumable> run() {
    if (failed(branch()))
      return failure();
    split();
    keepValues();
    dropPlaces();
    made.frameBytes = slots;
    return made;
  }

private:
  void outline(Region &role);
  LogicalResult branch();
  void split();
  void keep(Value value);
  void keepValues();
  void dropPlaces();
  Value slot(OpBuilder &at, int64_t offset);
  Block &entry() { return made.function.getBody().front(); }

  func::FuncOp kernel;
  Location loc;
  OpBuilder b;
  Resumable made;
  Value frame;
  int64_t slots = kSlotBytes; // the first is the state
};

} // namespace

/// The body becomes a function of what it uses; constants and the first place of the ring are made there again.
void RoleFunction::outline(Region &role) {
  SetVector<Value> used;
  getUsedValuesDefinedAbove(role, used);
  SmallVector<Operation *> remade;
  SmallVector<Type> types;
  for (Value value : used) {
    Operation *op = value.getDefiningOp();
    if (isConstant(op) || isa_and_nonnull<RingOp>(op)) {
      remade.push_back(op);
    } else {
      made.operands.push_back(value);
      types.push_back(value.getType());
    }
  }
  types.push_back(LLVM::LLVMPointerType::get(b.getContext()));
  made.function = func::FuncOp::create(b, loc, (kernel.getName() + "_producer").str(), b.getFunctionType(types, {}));
  made.function.setPrivate();
  made.function->setAttr("llvm.linkage", LLVM::LinkageAttr::get(b.getContext(), LLVM::Linkage::Internal));
  Region &body = made.function.getBody();
  body.takeBody(role);
  OpBuilder first = OpBuilder::atBlockBegin(&entry());
  for (Operation *op : remade) {
    Operation *own = first.clone(*op);
    for (auto [before, after] : llvm::zip(op->getResults(), own->getResults()))
      replaceAllUsesInRegionWith(before, after, body);
  }
  for (Value value : made.operands)
    replaceAllUsesInRegionWith(value, entry().addArgument(value.getType(), loc), body);
  frame = entry().addArgument(types.back(), loc);
  Operation *end = entry().getTerminator();
  func::ReturnOp::create(b = OpBuilder(end), loc);
  end->erase();
}

/// Loops and tests around a release become branches.
LogicalResult RoleFunction::branch() {
  RewritePatternSet patterns(b.getContext());
  populateSCFToControlFlowConversionPatterns(patterns);
  ConversionTarget target(*b.getContext());
  target.addDynamicallyLegalDialect<scf::SCFDialect>(
      [](Operation *op) { return !releases(isa<scf::YieldOp>(op) ? op->getParentOp() : op); });
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyPartialConversion(made.function, target, std::move(patterns));
}

Value RoleFunction::slot(OpBuilder &at, int64_t offset) {
  return LLVM::GEPOp::create(at, loc, frame.getType(), at.getI8Type(), frame,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

/// Each release ends a call; the next one begins behind it.
void RoleFunction::split() {
  SmallVector<ReleaseOp> found;
  made.function.walk([&](ReleaseOp release) { found.push_back(release); });
  Block &dispatch = entry();
  Block *first = dispatch.splitBlock(dispatch.begin());
  SmallVector<Block *> rests;
  SmallVector<int32_t> states;
  for (auto [n, release] : llvm::enumerate(found)) {
    Block *block = release->getBlock();
    rests.push_back(block->splitBlock(std::next(release->getIterator())));
    states.push_back(static_cast<int32_t>(n) + 1);
    OpBuilder end = OpBuilder::atBlockEnd(block);
    Value state = arith::ConstantOp::create(end, loc, end.getI32IntegerAttr(states.back()));
    LLVM::StoreOp::create(end, loc, state, slot(end, 0));
    func::ReturnOp::create(end, loc);
  }
  OpBuilder start = OpBuilder::atBlockEnd(&dispatch);
  Value state = LLVM::LoadOp::create(start, loc, start.getI32Type(), slot(start, 0));
  SmallVector<ValueRange> none(rests.size());
  cf::SwitchOp::create(start, loc, state, first, ValueRange(), states, rests, none);
  for (Block &block : llvm::drop_begin(made.function.getBody()))
    for (Operation &op : llvm::make_early_inc_range(block))
      if (isConstant(&op) || isa<RingOp>(op))
        op.moveBefore(&dispatch, dispatch.begin());
}

/// The value goes to the frame where it is made, and comes back where other blocks use it.
void RoleFunction::keep(Value value) {
  llvm::SetVector<Operation *> users;
  for (Operation *user : value.getUsers()) {
    Operation *own = made.function.getBody().findAncestorOpInRegion(*user);
    if (own->getBlock() != value.getParentBlock())
      users.insert(own);
  }
  if (users.empty())
    return;
  bool isIndex = value.getType().isIndex();
  Type kept = isIndex ? b.getI64Type() : value.getType();
  auto cast = [&](OpBuilder &at, Value other, Type type) -> Value {
    return isIndex ? arith::IndexCastOp::create(at, loc, type, other).getResult() : other;
  };
  for (Operation *user : users) {
    OpBuilder at(user);
    Value loaded = cast(at, LLVM::LoadOp::create(at, loc, kept, slot(at, slots)), value.getType());
    user->walk([&](Operation *inner) { inner->replaceUsesOfWith(value, loaded); });
  }
  OpBuilder at = OpBuilder::atBlockBegin(value.getParentBlock());
  if (Operation *op = value.getDefiningOp())
    at.setInsertionPointAfter(op);
  LLVM::StoreOp::create(at, loc, cast(at, value, kept), slot(at, slots));
  slots += kSlotBytes;
}

void RoleFunction::keepValues() {
  SmallVector<Value> values;
  for (Block &block : llvm::drop_begin(made.function.getBody())) {
    llvm::append_range(values, block.getArguments());
    for (Operation &op : block)
      llvm::append_range(values, op.getResults());
  }
  for (Value value : values)
    if (!isa<RingType>(value.getType()))
      keep(value);
}

/// One place is as good as another: there is one stage.
void RoleFunction::dropPlaces() {
  OpBuilder start = OpBuilder::atBlockBegin(&entry());
  Value none = arith::ConstantOp::create(start, loc, start.getI32IntegerAttr(0));
  auto drop = [&](ValueRange values) {
    for (Value value : values)
      if (isa<RingType>(value.getType()))
        value.setType(none.getType());
  };
  SmallVector<Operation *> dead;
  made.function.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (isa<RingType>(operand.get().getType()))
        operand.set(none);
    if (isa<ReleaseOp, RingOp>(op))
      dead.push_back(op);
  });
  for (Operation *op : dead)
    op->erase();
  made.function.walk([&](Operation *op) { drop(op->getResults()); });
  made.function.walk([&](Block *block) { drop(block->getArguments()); });
}

FailureOr<Resumable> lacis::plain::makeResumable(func::FuncOp kernel, Region &role) {
  return RoleFunction(kernel, role).run();
}
