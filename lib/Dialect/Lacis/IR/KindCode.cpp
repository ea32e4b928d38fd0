// SPDX-License-Identifier: Apache-2.0
/// \file
/// Puts the code of a method of a user's kind, or of a user's binding, where a level is lowered: indices get the
/// kernel's width, elements of arrays become loads.
#include "lacis/Dialect/Lacis/IR/BindingOps.h"
#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace lacis;

namespace {
class KindCode {
public:
  explicit KindCode(LevelBuilder &level) : level(level) {}

  /// The operations of a block but for its terminator; what that has is what `valuesOf` answers.
  void put(Block &block) {
    for (Operation &op : block.without_terminator())
      put(op);
  }
  void set(ValueRange from, ValueRange to) { mapping.map(from, to); }
  SmallVector<Value> valuesOf(Operation *terminator) {
    return llvm::map_to_vector(terminator->getOperands(), [&](Value value) { return mapping.lookup(value); });
  }

private:
  Type typeOf(Value value) { return value.getType().isIndex() ? level.indexType() : value.getType(); }
  void put(Operation &op);
  void putCast(Operation &op);
  void clone(Operation &op);
  void cloneRegion(Region &from, Region &to);

  LevelBuilder &level;
  IRMapping mapping;
};
} // namespace

/// Between indices, which are integers now, and integers of other widths.
void KindCode::putCast(Operation &op) {
  Value value = mapping.lookup(op.getOperand(0));
  Type type = typeOf(op.getResult(0));
  unsigned from = value.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (from > to)
    value = arith::TruncIOp::create(level.b, op.getLoc(), type, value);
  else if (from < to && isa<arith::IndexCastUIOp>(op))
    value = arith::ExtUIOp::create(level.b, op.getLoc(), type, value);
  else if (from < to)
    value = arith::ExtSIOp::create(level.b, op.getLoc(), type, value);
  mapping.map(op.getResult(0), value);
}

void KindCode::put(Operation &op) {
  if (auto field = dyn_cast<FieldOp>(op))
    return mapping.map(field.getResult(), level.load(field.getArray(), mapping.lookup(field.getIndex())));
  if (auto size = dyn_cast<LevelSizeOp>(op))
    return mapping.map(size.getResult(), level.size());
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
    return putCast(op);
  auto constant = dyn_cast<arith::ConstantOp>(op);
  if (constant && constant.getType().isIndex())
    return mapping.map(constant.getResult(), level.constant(cast<IntegerAttr>(constant.getValue()).getInt()));
  clone(op);
}

void KindCode::clone(Operation &op) {
  OperationState state(level.loc, op.getName());
  state.addOperands(valuesOf(&op));
  for (Value result : op.getResults())
    state.types.push_back(typeOf(result));
  state.attributes.append(op.getAttrs().begin(), op.getAttrs().end());
  state.propertiesAttr = op.getPropertiesAsAttribute();
  for (unsigned n = 0; n < op.getNumRegions(); ++n)
    state.addRegion();
  Operation *made = level.b.create(state);
  mapping.map(op.getResults(), made->getResults());
  for (auto [from, to] : llvm::zip(op.getRegions(), made->getRegions()))
    cloneRegion(from, to);
}

void KindCode::cloneRegion(Region &from, Region &to) {
  if (from.empty())
    return;
  OpBuilder::InsertionGuard guard(level.b);
  Block *block = level.b.createBlock(&to);
  for (BlockArgument argument : from.getArguments())
    mapping.map(argument, block->addArgument(typeOf(argument), level.loc));
  for (Operation &op : from.front())
    put(op);
}

namespace {
/// What the code of a binding sees: no level, and 64 bits.
struct BindingBuilder : LevelBuilder {
  using LevelBuilder::LevelBuilder;
  LevelAttr getLevel() override { return {}; }
  Type indexType() override { return b.getI64Type(); }
  Value constant(int64_t value) override { return arith::ConstantIntOp::create(b, loc, value, 64); }
  Value load(StringRef, Value) override { return {}; }
  Value size() override { return {}; }
  Value width() override { return {}; }
  Operation *symbols() override { return nullptr; }
};
} // namespace

SmallVector<Value> lacis::putInverse(OpBuilder &b, Location loc, BindingOp binding, Value own) {
  BindingBuilder builder(b, loc);
  KindCode code(builder);
  Block &body = binding.getInverse().front();
  code.set(body.getArguments(), own);
  code.put(body);
  return code.valuesOf(body.getTerminator());
}

SmallVector<Value> LevelBuilder::call(FlatSymbolRefAttr kind, StringRef method, ValueRange arguments) {
  auto definition = SymbolTable::lookupNearestSymbolFrom<KindOp>(symbols(), kind);
  Block *body = definition ? definition.getMethod(method) : nullptr;
  assert(body && "who asks for a method has seen that the kind has it");
  KindCode code(*this);
  code.set(body->getArguments(), arguments);
  code.put(*body);
  return code.valuesOf(body->getTerminator());
}
