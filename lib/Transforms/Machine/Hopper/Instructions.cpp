// SPDX-License-Identifier: Apache-2.0
/// \file
/// The instructions of sm_90a that tiles need. Assembly stands where no operation takes 32-bit shared addresses.
#include "Instructions.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace lacis::hopper;

//===- Barriers -----------------------------------------------------------===//

void Instructions::fenceBarrierInit() { NVVM::FenceMbarrierInitOp::create(b, loc); }

void Instructions::wait(Value barrier, Value parity) {
  effect("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n@done bra ready;\n"
         "bra again;\nready:\n}",
         "r,r", {barrier, parity});
}

void Instructions::expectBytes(Value barrier, Value bytes) {
  effect("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r", {barrier, bytes});
}

void Instructions::synchronize(Value id, int64_t threads) {
  NVVM::BarrierOp::create(b, loc, TypeRange(), id, constant(threads), NVVM::BarrierReductionAttr(), Value());
}

//===- Copies -------------------------------------------------------------===//

void Instructions::copyBox(Value to, Value map, ValueRange place, Value barrier) {
  SmallVector<Value> operands{to, map};
  llvm::append_range(operands, llvm::reverse(place));
  operands.push_back(barrier);
  std::string text = "cp.async.bulk.tensor." + std::to_string(place.size()) +
                     "d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {$2";
  std::string kinds = "r,l,r";
  for (size_t axis = 1; axis < place.size(); ++axis) {
    text += ", $" + std::to_string(axis + 2);
    kinds += ",r";
  }
  effect(text + "}], [$" + std::to_string(place.size() + 2) + "];", kinds + ",r", operands);
}

void Instructions::copyRun(Value to, Value from, Value bytes, Value barrier) {
  effect("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,l,r,r",
         {to, from, bytes, barrier});
}

void Instructions::storeBox(Value map, ValueRange place, Value from) {
  SmallVector<Value> operands{map};
  llvm::append_range(operands, llvm::reverse(place));
  operands.push_back(from);
  if (place.size() == 2)
    effect("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [$0, {$1, $2}], [$3];", "l,r,r,r", operands);
  else
    effect("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [$0, {$1, $2, $3}], [$4];", "l,r,r,r,r", operands);
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

/// "=f,...,0,1,...": results in the registers of the first operands; `one` is their kind.
static std::string tied(size_t count, StringRef one = "f", bool isTied = true) {
  std::string text;
  for (size_t n = 0; n < count; ++n)
    text += (n ? ",=" : "=") + one.str();
  for (size_t n = 0; isTied && n < count; ++n)
    text += "," + std::to_string(n);
  return text;
}

static Type registersOf(OpBuilder &b, size_t count, Type type) {
  return LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(count, type));
}

/// `operandText` names the operands behind the accumulators by their numbers.
SmallVector<Value> Instructions::product(ValueRange acc, size_t count, StringRef shape, ValueRange operands,
                                         StringRef operandText, StringRef constraints, StringRef flags) {
  std::string begin = acc.empty() ? "0" : "1";
  std::string text = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(2 * count) + shape.str() + " {" +
                     numbered(0, count) + "}, " + operandText.str() + ", " + begin + ", 1, 1" + flags.str() + ";";
  SmallVector<Value> all(acc);
  llvm::append_range(all, operands);
  std::string allConstraints = tied(count, "f", !acc.empty()) + constraints.str();
  return unpack(assembly(registersOf(b, count, b.getF32Type()), text, allConstraints, all), count);
}

/// Where the operands of a product are numbered from: behind its results, and behind what these are tied to.
static size_t firstOperand(ValueRange acc, size_t count) { return count + acc.size(); }

SmallVector<Value> Instructions::product(ValueRange acc, size_t count, Factor a, Factor bTile, Type element) {
  std::string type = element.isF32() ? "tf32" : element.isBF16() ? "bf16" : "f16", depth = element.isF32() ? "8" : "16";
  std::string flags = std::string(a.transposed ? ", 1" : ", 0") + (bTile.transposed ? ", 1" : ", 0");
  size_t first = firstOperand(acc, count);
  return product(acc, count, "k" + depth + ".f32." + type + "." + type, {a.descriptor, bTile.descriptor},
                 numbered(first, 2), ",l,l", element.isF32() ? "" : flags);
}

SmallVector<Value> Instructions::product(ValueRange acc, size_t count, ValueRange a, Factor bTile, Type element) {
  std::string type = element.isBF16() ? "bf16" : "f16";
  size_t first = firstOperand(acc, count);
  SmallVector<Value> operands(a);
  operands.push_back(bTile.descriptor);
  return product(acc, count, "k16.f32." + type + "." + type, operands,
                 "{" + numbered(first, a.size()) + "}, " + numbered(first + a.size(), 1), ",r,r,r,r,l",
                 bTile.transposed ? ", 1" : ", 0");
}

Value Instructions::apart(Value address) {
  return assembly(address.getType(), "mov.b64 $0, $1;", "=l,l", address, /*hasEffects=*/false);
}

Value Instructions::here(Value number) { return assembly(number.getType(), "mov.b32 $0, $1;", "=r,r", number); }

Value Instructions::threadHere() { return assembly(b.getI32Type(), "mov.u32 $0, %tid.x;", "=r", {}); }

void Instructions::keep(ValueRange registers) {
  std::string constraints;
  for (size_t n = 0; n < registers.size(); ++n)
    constraints += n ? ",r" : "r";
  if (!registers.empty())
    assembly({}, "", constraints, registers);
}

SmallVector<Value> Instructions::settle(ValueRange values) {
  if (values.empty())
    return {};
  Type type = values.front().getType();
  Type structure = registersOf(b, values.size(), type);
  return unpack(assembly(structure, "", tied(values.size(), type.isF32() ? "f" : "r"), values), values.size());
}
