// SPDX-License-Identifier: Apache-2.0
/// \file
/// The instructions that tiles need of sm_80.
#include "Instructions.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace lacis::ampere;

//===- Copies -------------------------------------------------------------===//

void Instructions::wait(Value barrier, Value parity) {
  effect("{\n.reg .pred done;\nagain:\nmbarrier.test_wait.parity.shared::cta.b64 done, [$0], $1;\n@!done bra again;\n}",
         "r,r", {barrier, parity});
}

void Instructions::arriveWhenCopied(Value barrier) {
  effect("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", "r", barrier);
}

/// The address depends on the words: a mask of which no assembler knows that it is 0 takes their bits away.
void Instructions::arriveAfter(ValueRange words, Value barrier) {
  if (words.empty())
    return arrive(barrier);
  effect("{\n.reg .b32 none, at;\nmov.u32 none, %dynamic_smem_size;\nshr.u32 none, none, 31;\n"
         "and.b32 none, none, $1;\nadd.u32 at, none, $0;\nmbarrier.arrive.shared::cta.b64 _, [at];\n}",
         "r,r", {barrier, anyOf(words)});
}

void Instructions::waitCopies() { effect("cp.async.wait_all;", "", {}); }

void Instructions::copyChunk(Value to, Value from, Value size) {
  auto pointer = [&](unsigned space) { return LLVM::LLVMPointerType::get(b.getContext(), space); };
  Value target = LLVM::IntToPtrOp::create(b, loc, pointer(3), to);
  Value source = LLVM::AddrSpaceCastOp::create(b, loc, pointer(1), from);
  NVVM::CpAsyncOp::create(b, loc, target, source, kChunk, NVVM::LoadCacheModifierKind::CG, size);
}

//===- Registers ----------------------------------------------------------===//

Value Instructions::transposeMatrix(Value matrix) {
  return assembly(b.getI32Type(), "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r", matrix);
}

void Instructions::transposeQuad(MutableArrayRef<Value> words, Value lane) {
  auto select = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(b, loc, condition, yes, no);
  };
  for (size_t distance : {1, 2}) {
    Value bit = arith::AndIOp::create(b, loc, lane, constant(static_cast<int64_t>(distance)));
    Value upper = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit, constant(0));
    for (size_t low = 0; low < words.size(); ++low) {
      if (low & distance)
        continue;
      Value &first = words[low], &second = words[low + distance];
      Value got = shuffleXor(select(upper, first, second), static_cast<int64_t>(distance));
      first = select(upper, got, first);
      second = select(upper, second, got);
    }
  }
}

Value Instructions::loadWord(Value from, int64_t offset) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), 3);
  Value start = LLVM::IntToPtrOp::create(b, loc, pointer, from);
  Value place =
      LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), start, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  return LLVM::LoadOp::create(b, loc, b.getI32Type(), place);
}

Value Instructions::roundToTf32(Value word) {
  return assembly(b.getI32Type(), "cvt.rna.tf32.f32 $0, $1;", "=r,r", word, /*hasEffects=*/false);
}

void Instructions::product(MutableArrayRef<Value> acc, ValueRange a, ValueRange right, Type element) {
  auto registers = [&](ValueRange words) {
    return llvm::map_to_vector(words, [&](Value word) -> Value {
      if (!element.isF16())
        return word;
      return LLVM::BitcastOp::create(b, loc, VectorType::get({2}, element), word);
    });
  };
  bool isSingle = element.isF32();
  auto kind = isSingle ? NVVM::MMATypes::tf32 : element.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  int64_t depth = isSingle ? 8 : 16;
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(acc.size(), b.getF32Type()));
  Value result =
      NVVM::MmaOp::create(b, loc, type, registers(a), registers(right), ValueRange(acc), {16, 8, depth}, std::nullopt,
                          std::nullopt, std::array{kind, kind}, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  llvm::copy(unpack(result, acc.size()), acc.begin());
}
