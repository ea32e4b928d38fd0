// SPDX-License-Identifier: Apache-2.0
/// \file
/// A product with A = A1 + A2 becomes a chain: the second product accumulates on the first.
#include "lacis/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace lacis {
#define GEN_PASS_DEF_LACISLOWERSUMS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

SumAttr sumOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? dyn_cast_or_null<SumAttr>(type.getEncoding()) : nullptr;
}

/// One generic for each part; each takes the result of the one before as its initial value.
void splitGeneric(linalg::GenericOp generic, OpOperand &operand) {
  OpBuilder b(generic);
  SumAttr sum = sumOf(operand.get());
  auto type = cast<RankedTensorType>(operand.get().getType());
  Value carried = generic.getOutputs()[0];
  for (auto [name, format] : llvm::zip(sum.getNames(), sum.getFormats())) {
    auto partType = RankedTensorType::get(type.getShape(), type.getElementType(), format);
    Value part = PartOp::create(b, generic.getLoc(), partType, operand.get(), name);
    auto clone = cast<linalg::GenericOp>(b.clone(*generic));
    clone->setOperand(operand.getOperandNumber(), part);
    clone.getOutputsMutable().assign(carried);
    carried = clone.getResult(0);
  }
  generic.getResult(0).replaceAllUsesWith(carried);
  generic.erase();
}

struct LowerSums : lacis::impl::LacisLowerSumsBase<LowerSums> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> generics;
    getOperation().walk([&](linalg::GenericOp generic) { generics.push_back(generic); });
    for (linalg::GenericOp generic : generics)
      for (OpOperand *operand : generic.getDpsInputOperands())
        if (sumOf(operand->get())) {
          splitGeneric(generic, *operand);
          break;
        }
  }
};

} // namespace
