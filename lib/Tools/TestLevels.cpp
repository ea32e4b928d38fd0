// SPDX-License-Identifier: Apache-2.0
/// \file
/// Test passes of lacis-opt alone: what a format answers, and the code that a level emits.
#include "TestPasses.h"

#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace lacis;

namespace {

/// Loads, sizes and widths are `test` operations.
class TestBuilder : public LevelBuilder {
public:
  TestBuilder(OpBuilder &b, Location loc, LevelAttr level) : LevelBuilder(b, loc), level(level) {}
  LevelAttr getLevel() override { return level; }
  Type indexType() override { return b.getI32Type(); }
  Value constant(int64_t value) override { return arith::ConstantIntOp::create(b, loc, indexType(), value); }
  Value size() override { return make("test.size", {}); }
  Value width() override { return make("test.width", {}); }
  Operation *symbols() override { return b.getInsertionBlock()->getParentOp(); }
  Value load(StringRef buffer, Value index) override { return make(("test." + buffer).str(), index); }
  void use(StringRef name, ValueRange values) {
    OperationState state(loc, name);
    state.addOperands(llvm::to_vector(llvm::make_filter_range(values, [](Value value) { return !!value; })));
    b.create(state);
  }

private:
  Value make(StringRef name, ValueRange operands) {
    OperationState state(loc, name, operands, indexType());
    return b.create(state)->getResult(0);
  }

  LevelAttr level;
};

/// `func @f(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = …}` gets what the level emits.
struct TestLevels : PassWrapper<TestLevels, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestLevels)
  StringRef getArgument() const override { return "lacis-test-levels"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<math::MathDialect>(); }
  StringRef getDescription() const override { return "Emits the code of the level that a function names."; }

  void runOnOperation() override {
    auto level = getOperation()->getAttrOfType<LevelAttr>("lacis.level");
    if (!level)
      return;
    if (!level.hasCode()) {
      getOperation().emitError() << "level kind '" << level.getKindName() << "' has no code yet";
      return signalPassFailure();
    }
    OpBuilder b(&getOperation().getBody().front(), getOperation().getBody().front().begin());
    TestBuilder builder(b, getOperation().getLoc(), level);
    Value parent = getOperation().getArgument(0), crd = getOperation().getArgument(2);
    if (Value slots = level.getExtent().emitSlots(builder, getOperation().getArgument(1)))
      builder.use("test.slots", slots);
    auto [lo, hi] = level.getExtent().emitBounds(builder, parent);
    builder.use("test.bounds", {lo, hi});
    SmallVector<Value> state = level.getCoordinate().emitOpen(builder, parent, lo);
    Coordinate coordinate = level.getCoordinate().emitNext(builder, lo, lo, state);
    builder.use("test.coordinate", {coordinate.crd, coordinate.valid});
    if (!coordinate.state.empty())
      builder.use("test.state", coordinate.state);
    builder.use("test.seek", level.getCoordinate().emitSeek(builder, lo, hi, crd));
    if (level.getCoordinate().canFind()) {
      auto [position, found] = level.getCoordinate().emitFind(builder, parent, crd);
      builder.use("test.find", {position, found});
    }
    if (level.getExtent().coversDomain())
      builder.use("test.locate", level.getExtent().emitLocate(builder, parent, crd));
  }
};

/// A remark for each tensor argument: its stored block, its arrays, its companions.
struct TestFormats : PassWrapper<TestFormats, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestFormats)
  StringRef getArgument() const override { return "lacis-test-formats"; }
  StringRef getDescription() const override { return "Says what the formats of a function's arguments answer."; }

  void runOnOperation() override {
    for (Type type : getOperation().getArgumentTypes())
      if (auto format = dyn_cast_or_null<FormatAttr>(cast<RankedTensorType>(type).getEncoding()))
        describe(format);
  }

  void describe(FormatAttr format) {
    auto remark = getOperation().emitRemark() << "tile levels: " << format.getNumTileLevels() << "; arrays:";
    for (auto [number, level] : llvm::enumerate(format.getLevels()))
      for (const BufferSpec &buffer : level.getBuffers())
        remark << ' ' << buffer.name << number << ' ' << buffer.elementType;
    for (unsigned axis = 0; axis < format.getAxes().size(); ++axis)
      if (FormatAttr companion = format.companion(axis))
        getOperation().emitRemark() << "by '" << format.getAxes()[axis].getValue() << "': " << companion;
  }
};

} // namespace

void lacis::registerTestPasses() {
  PassRegistration<TestLevels>();
  PassRegistration<TestFormats>();
}
