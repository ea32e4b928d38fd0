// SPDX-License-Identifier: Apache-2.0
/// \file
/// load %p {nontemporal}  -->  ld.global.nc.L1::no_allocate
///
/// What is read once leaves the first-level cache to what is read again. LLVM has no instruction for that.
#include "Roles/WarpInstructions.h"

namespace lacis {
#define GEN_PASS_DEF_LACISSTREAMLOADS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

/// What one instruction loads, in words of 32 bits; nothing for other sizes.
static std::optional<unsigned> wordsOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  Type element = getElementTypeOrSelf(type);
  if (!element.isIntOrFloat())
    return std::nullopt;
  int64_t bits = element.getIntOrFloatBitWidth() * (vector ? vector.getNumElements() : 1);
  if (bits != 32 && bits != 64 && bits != 128)
    return std::nullopt;
  return unsigned(bits / 32);
}

namespace {

class StreamedLoad : WarpInstructions {
public:
  using WarpInstructions::WarpInstructions;

  Value load(Value from, Type type, unsigned words) {
    Value address = from;
    if (auto global = LLVM::LLVMPointerType::get(b.getContext(), unsigned(NVVM::NVVMMemorySpace::Global));
        from.getType() != global)
      address = LLVM::AddrSpaceCastOp::create(b, loc, global, from);
    std::string text = "ld.global.nc.L1::no_allocate", results, constraints;
    for (unsigned word = 0; word < words; ++word) {
      results += (word ? ", $" : "$") + std::to_string(word);
      constraints += "=r,";
    }
    text += words == 1 ? ".b32 " + results : ".v" + std::to_string(words) + ".b32 {" + results + "}";
    text += ", [$" + std::to_string(words) + "];";
    Type i32 = b.getI32Type();
    Type made = words == 1 ? i32 : LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(words, i32));
    Value loaded = assembly(made, text, constraints + "l", address, /*hasEffects=*/false);
    if (words != 1)
      loaded = vector::FromElementsOp::create(b, loc, VectorType::get({int64_t(words)}, i32), unpack(loaded, words));
    return type == loaded.getType() ? loaded : LLVM::BitcastOp::create(b, loc, type, loaded).getResult();
  }
};

struct StreamLoads : lacis::impl::LacisStreamLoadsBase<StreamLoads> {
  void runOnOperation() override {
    getOperation()->walk([](LLVM::LoadOp op) {
      std::optional<unsigned> words = wordsOf(op.getType());
      unsigned aligned = words ? unsigned(op.getAlignment().value_or(4)) : 0;
      if (!op.getNontemporal() || !words || aligned < 4 * *words)
        return;
      OpBuilder b(op);
      op.replaceAllUsesWith(StreamedLoad(b, op.getLoc()).load(op.getAddr(), op.getType(), *words));
      op.erase();
    });
  }
};

} // namespace
