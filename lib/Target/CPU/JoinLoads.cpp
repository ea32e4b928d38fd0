// SPDX-License-Identifier: Apache-2.0
/// \file
/// a = load i16 x[p]; b = load i16 x[p + 1]  -->  w = load i32 x[p]; a = trunc w; b = trunc (w >> 16)
///
/// A round of a sparse loop is as long as its loads take: a coordinate, a place in a row and the row's begin are three
/// before the value. Numbers without a sign alone, whose upper half is one shift. Figures: docs/cpu.md.
#include "JoinLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/SwapByteOrder.h"

using namespace mlir;

namespace {

/// An element of an array: `array[index + offset]`.
struct Place {
  Value array, index;
  int64_t offset;
};

/// Where a load of 8 or 16 bits without a sign reads; nothing for other loads.
std::optional<Place> placeOf(LLVM::LoadOp load) {
  auto address = load.getAddr().getDefiningOp<LLVM::GEPOp>();
  bool isPlain = !load.getVolatile_() && load.getOrdering() == LLVM::AtomicOrdering::not_atomic;
  bool isNarrow = load.getType().isInteger(8) || load.getType().isInteger(16);
  bool isMagnitude = llvm::all_of(load->getUsers(), [](Operation *user) { return isa<arith::ExtUIOp>(user); });
  if (!isPlain || !isNarrow || !isMagnitude || !address || address.getElemType() != load.getType() ||
      address.getDynamicIndices().size() != 1 || address.getRawConstantIndices().size() != 1)
    return std::nullopt;
  Value index = address.getDynamicIndices()[0];
  if (auto extended = index.getDefiningOp<arith::ExtSIOp>()) // positions do not overflow
    index = extended.getIn();
  auto sum = index.getDefiningOp<arith::AddIOp>();
  APInt offset;
  if (sum && matchPattern(sum.getRhs(), m_ConstantInt(&offset)))
    return Place{address.getBase(), sum.getLhs(), offset.getSExtValue()};
  return Place{address.getBase(), index, 0};
}

/// Does nothing between two operations of a block write?
bool readsBetween(Operation *first, Operation *last) {
  for (Operation *op = first->getNextNode(); op != last; op = op->getNextNode())
    if (!isa<LLVM::LoadOp>(op) && !isMemoryEffectFree(op))
      return false;
  return true;
}

void join(LLVM::LoadOp low, LLVM::LoadOp high) {
  OpBuilder b(low);
  Location loc = low.getLoc();
  unsigned bits = low.getType().getIntOrFloatBitWidth();
  Type word = b.getIntegerType(2 * bits);
  Value both = LLVM::LoadOp::create(b, loc, word, low.getAddr(), /*alignment=*/bits / 8);
  Value shift = arith::ConstantOp::create(b, loc, b.getIntegerAttr(word, bits));
  Value above = arith::ShRUIOp::create(b, loc, both, shift);
  low.replaceAllUsesWith(arith::TruncIOp::create(b, loc, low.getType(), both).getResult());
  high.replaceAllUsesWith(arith::TruncIOp::create(b, loc, high.getType(), above).getResult());
  low.erase();
  high.erase();
}

class JoinLoads : public PassWrapper<JoinLoads, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(JoinLoads)
  StringRef getName() const override { return "lacis-join-loads"; }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect>();
  }

  void runOnOperation() override {
    if (!llvm::sys::IsLittleEndianHost) // the first one is in the lower half
      return;
    getOperation()->walk([](Block *block) { joinIn(*block); });
  }

private:
  static void joinIn(Block &block) {
    llvm::MapVector<std::tuple<Value, Value, Type>, SmallVector<std::pair<int64_t, LLVM::LoadOp>>> arrays;
    for (auto load : block.getOps<LLVM::LoadOp>())
      if (std::optional<Place> place = placeOf(load))
        arrays[{place->array, place->index, load.getType()}].push_back({place->offset, load});
    for (auto &[array, loads] : arrays) {
      llvm::stable_sort(loads, llvm::less_first());
      for (size_t n = 0; n + 1 < loads.size(); ++n) {
        auto [low, high] = std::pair(loads[n], loads[n + 1]);
        bool areNeighbours = high.first == low.first + 1 && low.second->isBeforeInBlock(high.second);
        if (!areNeighbours || !readsBetween(low.second, high.second))
          continue;
        join(low.second, high.second);
        ++n;
      }
    }
  }
};

} // namespace

std::unique_ptr<Pass> lacis::createJoinLoadsPass() { return std::make_unique<JoinLoads>(); }
