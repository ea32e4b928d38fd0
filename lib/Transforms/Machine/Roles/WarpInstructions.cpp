// SPDX-License-Identifier: Apache-2.0
/// \file
/// The instructions that tiles need on every GPU from sm_80 on. Assembly stands where no operation takes 32-bit shared
/// addresses.
#include "WarpInstructions.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace lacis;

//===- Arithmetic ---------------------------------------------------------===//

Value WarpInstructions::constant(int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value WarpInstructions::constant64(int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
}

Value WarpInstructions::constantLike(Value a, int64_t value) {
  return a.getType().isInteger(64) ? constant64(value) : constant(value);
}

Value WarpInstructions::add(Value a, Value c) { return arith::AddIOp::create(b, loc, a, c); }

Value WarpInstructions::multiply(Value a, int64_t c) { return arith::MulIOp::create(b, loc, a, constantLike(a, c)); }

Value WarpInstructions::equal(Value a, int64_t c) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, a, constantLike(a, c));
}

Value WarpInstructions::threadId() { return NVVM::ThreadIdXOp::create(b, loc, b.getI32Type()); }

static Value shuffle(OpBuilder &b, Location loc, Value value, Value lane, Value all, Value clamp, NVVM::ShflKind kind) {
  return NVVM::ShflOp::create(b, loc, value.getType(), all, value, lane, clamp, kind, UnitAttr());
}

Value WarpInstructions::uniform(Value value) {
  if (value.getType().isInteger(64)) { // a shuffle moves words
    auto halfFrom = [&](int64_t bit) -> Value {
      Value shifted = arith::ShRUIOp::create(b, loc, value, constant64(bit));
      Value word = uniform(arith::TruncIOp::create(b, loc, b.getI32Type(), shifted));
      return arith::ExtUIOp::create(b, loc, b.getI64Type(), word);
    };
    Value upper = arith::ShLIOp::create(b, loc, halfFrom(32), constant64(32));
    return arith::OrIOp::create(b, loc, upper, halfFrom(0));
  }
  return shuffle(b, loc, value, constant(0), constant(-1), constant(31), NVVM::ShflKind::idx);
}

Value WarpInstructions::shuffleXor(Value value, int64_t lanes) {
  return shuffle(b, loc, value, constant(lanes), constant(-1), constant(31), NVVM::ShflKind::bfly);
}

Value WarpInstructions::assembly(Type result, StringRef text, StringRef constraints, ValueRange operands,
                                 bool hasEffects) {
  auto dialect = LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT);
  auto made =
      LLVM::InlineAsmOp::create(b, loc, result ? TypeRange(result) : TypeRange(), operands, text, constraints,
                                hasEffects, /*is_align_stack=*/false, LLVM::TailCallKind::None, dialect, ArrayAttr());
  return result ? made.getRes() : Value();
}

SmallVector<Value> WarpInstructions::unpack(Value structure, size_t count) {
  SmallVector<Value> values;
  for (size_t n = 0; n < count; ++n)
    values.push_back(LLVM::ExtractValueOp::create(b, loc, structure, static_cast<int64_t>(n)));
  return values;
}

void WarpInstructions::effect(StringRef text, StringRef constraints, ValueRange operands) {
  std::string all = constraints.str() + (constraints.empty() ? "" : ",") + "~{memory}";
  assembly({}, text, all, operands);
}

Value WarpInstructions::opaqueTrue() {
  Value bytes = assembly(b.getI32Type(), "mov.u32 $0, %dynamic_smem_size;", "=r", {});
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bytes, constant(-1)); // 0 where there are no rings
}

void WarpInstructions::synchronize() { NVVM::BarrierOp::create(b, loc); }

//===- Barriers in shared memory ------------------------------------------===//

void WarpInstructions::initBarrier(Value barrier, int64_t arrivals) {
  effect("mbarrier.init.shared::cta.b64 [$0], $1;", "r,r", {barrier, constant(arrivals)});
}

void WarpInstructions::arrive(Value barrier) { effect("mbarrier.arrive.shared::cta.b64 _, [$0];", "r", barrier); }

void WarpInstructions::arrive(Value barrier, int64_t count) {
  effect("mbarrier.arrive.shared::cta.b64 _, [$0], " + std::to_string(count) + ";", "r", barrier);
}

void WarpInstructions::arriveIf(Value condition, Value barrier) {
  Value flag = arith::ExtUIOp::create(b, loc, b.getI32Type(), condition);
  effect("{\n.reg .pred here;\nsetp.ne.b32 here, $1, 0;\n@here mbarrier.arrive.shared::cta.b64 _, [$0];\n}", "r,r",
         {barrier, flag});
}

//===- Matrices -----------------------------------------------------------===//

SmallVector<Value> WarpInstructions::loadMatrices(Value from, bool transposed) {
  auto structure = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, b.getI32Type()));
  Value address = LLVM::IntToPtrOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext(), 3), from);
  Value loaded =
      NVVM::LdMatrixOp::create(b, loc, structure, address, 4, transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
                               NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8), NVVM::LdStMatrixEltType::B16);
  return unpack(loaded, 4);
}

/// The sleep has an effect, so that the assembler keeps it, and with it the test that reads all words.
void WarpInstructions::waitForLoads(ValueRange words) {
  if (words.empty())
    return;
  effect("{\n.reg .pred rare;\nsetp.eq.u32 rare, $0, 66051;\n@rare nanosleep.u32 20;\n}", "r", anyOf(words));
}

/// Assembly, because the compiler would put an arithmetic operation off to the only use of its result.
Value WarpInstructions::anyOf(ValueRange words) {
  Value any = words.front();
  for (words = words.drop_front(); !words.empty(); words = words.drop_front(std::min<size_t>(2, words.size()))) {
    Value second = words.size() > 1 ? words[1] : words[0];
    any = assembly(b.getI32Type(), "lop3.b32 $0, $1, $2, $3, 254;", "=r,r,r,r", {any, words[0], second},
                   /*hasEffects=*/false);
  }
  return any;
}

Value WarpInstructions::pack(Value low, Value high, Type element) {
  std::string type = element.isBF16() ? "bf16x2" : "f16x2";
  return assembly(b.getI32Type(), "cvt.rn." + type + ".f32 $0, $1, $2;", "=r,f,f", {high, low}, /*hasEffects=*/false);
}
