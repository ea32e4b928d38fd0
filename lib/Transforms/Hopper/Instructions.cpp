// SPDX-License-Identifier: Apache-2.0
/// \file
/// The instructions of sm_90a that tiles need. Assembly stands where no operation takes 32-bit shared addresses.
#include "Instructions.h"

using namespace mlir;
using namespace lacis::hopper;

//===- Arithmetic ---------------------------------------------------------===//

Value Instructions::constant(int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value Instructions::constant64(int64_t value) { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value)); }

Value Instructions::add(Value a, Value c) { return arith::AddIOp::create(b, loc, a, c); }

Value Instructions::multiply(Value a, int64_t c) { return arith::MulIOp::create(b, loc, a, constant(c)); }

Value Instructions::equal(Value a, int64_t c) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, a, constant(c));
}

Value Instructions::threadId() { return NVVM::ThreadIdXOp::create(b, loc, b.getI32Type()); }

static Value shuffle(OpBuilder &b, Location loc, Value value, Value lane, Value all, Value clamp, NVVM::ShflKind kind) {
  return NVVM::ShflOp::create(b, loc, value.getType(), all, value, lane, clamp, kind, UnitAttr());
}

Value Instructions::uniform(Value value) {
  return shuffle(b, loc, value, constant(0), constant(-1), constant(31), NVVM::ShflKind::idx);
}

Value Instructions::shuffleXor(Value value, int64_t lanes) {
  return shuffle(b, loc, value, constant(lanes), constant(-1), constant(31), NVVM::ShflKind::bfly);
}

Value Instructions::assembly(Type result, StringRef text, StringRef constraints, ValueRange operands) {
  auto dialect = LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT);
  auto made = LLVM::InlineAsmOp::create(b, loc, result ? TypeRange(result) : TypeRange(), operands, text, constraints,
                                        /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                        dialect, ArrayAttr());
  return result ? made.getRes() : Value();
}

static SmallVector<Value> unpack(OpBuilder &b, Location loc, Value structure, size_t count) {
  SmallVector<Value> values;
  for (size_t n = 0; n < count; ++n)
    values.push_back(LLVM::ExtractValueOp::create(b, loc, structure, static_cast<int64_t>(n)));
  return values;
}

void Instructions::effect(StringRef text, StringRef constraints, ValueRange operands) {
  std::string all = constraints.str() + (constraints.empty() ? "" : ",") + "~{memory}";
  assembly({}, text, all, operands);
}

Value Instructions::opaqueTrue() {
  Value bytes = assembly(b.getI32Type(), "mov.u32 $0, %dynamic_smem_size;", "=r", {});
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bytes, constant(0));
}

//===- Barriers -----------------------------------------------------------===//

void Instructions::initBarrier(Value barrier, int64_t arrivals) {
  effect("mbarrier.init.shared::cta.b64 [$0], $1;", "r,r", {barrier, constant(arrivals)});
}

void Instructions::fenceBarrierInit() { NVVM::FenceMbarrierInitOp::create(b, loc); }

void Instructions::wait(Value barrier, Value parity) {
  effect("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n@done bra ready;\n"
         "bra again;\nready:\n}",
         "r,r", {barrier, parity});
}

void Instructions::expectBytes(Value barrier, Value bytes) {
  effect("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r", {barrier, bytes});
}

void Instructions::arrive(Value barrier) { effect("mbarrier.arrive.shared::cta.b64 _, [$0];", "r", barrier); }

void Instructions::arriveIf(Value condition, Value barrier) {
  Value flag = arith::ExtUIOp::create(b, loc, b.getI32Type(), condition);
  effect("{\n.reg .pred here;\nsetp.ne.b32 here, $1, 0;\n@here mbarrier.arrive.shared::cta.b64 _, [$0];\n}", "r,r",
         {barrier, flag});
}

void Instructions::synchronize() { NVVM::BarrierOp::create(b, loc); }

void Instructions::synchronize(Value id, int64_t threads) {
  NVVM::BarrierOp::create(b, loc, TypeRange(), id, constant(threads), NVVM::BarrierReductionAttr(), Value());
}

//===- Copies -------------------------------------------------------------===//

void Instructions::copyBox(Value to, Value map, Value column, Value row, Value barrier) {
  effect("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {$2, $3}], [$4];",
         "r,l,r,r,r", {to, map, column, row, barrier});
}

void Instructions::copyRun(Value to, Value from, Value bytes, Value barrier) {
  effect("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,l,r,r",
         {to, from, bytes, barrier});
}

void Instructions::storeBox(Value map, Value column, Value row, Value from) {
  effect("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [$0, {$1, $2}], [$3];", "l,r,r,r",
         {map, column, row, from});
}

void Instructions::commitStores() { NVVM::CpAsyncBulkCommitGroupOp::create(b, loc); }

void Instructions::waitStores(int64_t groups, bool read) {
  NVVM::CpAsyncBulkWaitGroupOp::create(b, loc, groups, read ? b.getUnitAttr() : UnitAttr());
}

void Instructions::fenceSharedStores() {
  NVVM::FenceProxyOp::create(b, loc, NVVM::ProxyKind::async_shared,
                             NVVM::SharedSpaceAttr::get(b.getContext(), NVVM::SharedSpace::shared_cta));
}

void Instructions::storeMatrices(Value to, ValueRange registers, bool transposed) {
  SmallVector<Value> operands{to};
  llvm::append_range(operands, registers);
  std::string text = std::string("stmatrix.sync.aligned.m8n8.x4") + (transposed ? ".trans" : "") +
                     ".shared.b16 [$0], {$1, $2, $3, $4};";
  effect(text, "r,r,r,r,r", operands);
}

SmallVector<Value> Instructions::loadMatrices(Value from, bool transposed) {
  auto structure = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, b.getI32Type()));
  std::string text = std::string("ldmatrix.sync.aligned.m8n8.x4") + (transposed ? ".trans" : "") +
                     ".shared.b16 {$0, $1, $2, $3}, [$4];";
  return unpack(b, loc, assembly(structure, text, "=r,=r,=r,=r,r,~{memory}", from), 4);
}

//===- Products -----------------------------------------------------------===//

void Instructions::setRegisters(int64_t count, bool increase) {
  NVVM::SetMaxRegisterOp::create(
      b, loc, count, increase ? NVVM::SetMaxRegisterAction::increase : NVVM::SetMaxRegisterAction::decrease);
}

void Instructions::fenceProducts() { NVVM::WgmmaFenceAlignedOp::create(b, loc); }

void Instructions::commitProducts() { NVVM::WgmmaGroupSyncAlignedOp::create(b, loc); }

void Instructions::waitProducts(int64_t groups) { NVVM::WgmmaWaitGroupSyncOp::create(b, loc, groups); }

/// "$from, $from+1, ..."
static std::string numbered(size_t from, size_t count) {
  std::string text;
  for (size_t n = 0; n < count; ++n)
    text += (n ? ", $" : "$") + std::to_string(from + n);
  return text;
}

/// "=f,...,0,1,...": results in the registers of the first operands.
static std::string tied(size_t count) {
  std::string text;
  for (size_t n = 0; n < count; ++n)
    text += n ? ",=f" : "=f";
  for (size_t n = 0; n < count; ++n)
    text += "," + std::to_string(n);
  return text;
}

SmallVector<Value> Instructions::product(ValueRange acc, Factor a, Factor bTile, Type element) {
  size_t count = acc.size();
  std::string type = element.isBF16() ? "bf16" : "f16";
  std::string flags = std::string(a.transposed ? "1" : "0") + ", " + (bTile.transposed ? "1" : "0");
  std::string text = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(2 * count) + "k16.f32." + type + "." + type +
                     " {" + numbered(0, count) + "}, $" + std::to_string(2 * count) + ", $" +
                     std::to_string(2 * count + 1) + ", 1, 1, 1, " + flags + ";";
  auto structure = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(count, b.getF32Type()));
  SmallVector<Value> operands(acc);
  operands.append({a.descriptor, bTile.descriptor});
  return unpack(b, loc, assembly(structure, text, tied(count) + ",l,l", operands), count);
}

SmallVector<Value> Instructions::settle(ValueRange values) {
  auto structure = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(values.size(), b.getF32Type()));
  return unpack(b, loc, assembly(structure, "", tied(values.size()), values), values.size());
}

Value Instructions::pack(Value low, Value high, Type element) {
  std::string type = element.isBF16() ? "bf16x2" : "f16x2";
  auto dialect = LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT);
  return LLVM::InlineAsmOp::create(b, loc, TypeRange(b.getI32Type()), ValueRange{high, low},
                                   "cvt.rn." + type + ".f32 $0, $1, $2;", "=r,f,f", /*has_side_effects=*/false,
                                   /*is_align_stack=*/false, LLVM::TailCallKind::None, dialect, ArrayAttr())
      .getRes();
}
