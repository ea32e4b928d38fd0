// SPDX-License-Identifier: Apache-2.0
/// \file
/// Replaces transcendental functions by arithmetic, so that no library is called.
#include "MathFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace lacis;
using namespace mlir;

namespace {

/// Half types are computed in f32.
template <typename Op, Value (MathFunctions::*function)(Value)> struct Expand : OpRewritePattern<Op> {
  Expand(MLIRContext *context, ApproximateExp2 exp2) : OpRewritePattern<Op>(context), exp2(exp2) {}
  ApproximateExp2 exp2;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    Type type = op.getType();
    Type element = getElementTypeOrSelf(type);
    auto vector = dyn_cast<VectorType>(type);
    Type wideElement = element.isF64() ? element : rewriter.getF32Type();
    Type wide = vector ? Type(vector.clone(wideElement)) : wideElement;
    Value operand = op.getOperand();
    if (wide != type)
      operand = arith::ExtFOp::create(rewriter, op.getLoc(), wide, operand);
    MathFunctions functions(rewriter, op.getLoc(), wide, exp2);
    Value result = (functions.*function)(operand);
    if (wide != type)
      result = arith::TruncFOp::create(rewriter, op.getLoc(), type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// f32 with `fastmath<afn>`, before the exact functions are tried.
template <typename Op, Value (MathFunctions::*function)(Value)> struct Approximate : OpRewritePattern<Op> {
  Approximate(MLIRContext *context, ApproximateExp2 exp2) : OpRewritePattern<Op>(context, /*benefit=*/2), exp2(exp2) {}
  ApproximateExp2 exp2;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn) || !getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    MathFunctions functions(rewriter, op.getLoc(), op.getType(), exp2);
    rewriter.replaceOp(op, (functions.*function)(op.getOperand()));
    return success();
  }
};

class ExpandMath : public PassWrapper<ExpandMath, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandMath)
  explicit ExpandMath(ApproximateExp2 exp2) : exp2(exp2) {}
  StringRef getName() const override { return "lacis-expand-math"; }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, math::MathDialect, vector::VectorDialect>();
  }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<Expand<math::ExpOp, &MathFunctions::exp>, Expand<math::Exp2Op, &MathFunctions::exp2>,
                 Expand<math::ExpM1Op, &MathFunctions::expm1>, Expand<math::LogOp, &MathFunctions::log>,
                 Expand<math::Log2Op, &MathFunctions::log2>, Expand<math::Log10Op, &MathFunctions::log10>,
                 Expand<math::Log1pOp, &MathFunctions::log1p>, Expand<math::TanhOp, &MathFunctions::tanh>,
                 Expand<math::ErfOp, &MathFunctions::erf>, Expand<math::ErfcOp, &MathFunctions::erfc>,
                 Approximate<math::ExpOp, &MathFunctions::approximateExp>,
                 Approximate<math::TanhOp, &MathFunctions::approximateTanh>,
                 Approximate<math::Exp2Op, &MathFunctions::approximateExp2>>(&getContext(), exp2);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    if (getOperation()->walk([&](Operation *op) { return refuseLibraryCalls(op); }).wasInterrupted())
      signalPassFailure();
  }

private:
  /// What is left must be instructions on every processor.
  WalkResult refuseLibraryCalls(Operation *op) {
    if (!isa_and_nonnull<math::MathDialect>(op->getDialect()))
      return WalkResult::advance();
    if (exp2 == ApproximateExp2::Native && isa<math::Exp2Op>(op))
      return WalkResult::advance();
    if (isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::CountLeadingZerosOp,
            math::CountTrailingZerosOp, math::CtPopOp, math::FloorOp, math::FmaOp, math::IsFiniteOp, math::IsInfOp,
            math::IsNaNOp, math::IsNormalOp, math::RoundEvenOp, math::RsqrtOp, math::SqrtOp, math::TruncOp>(op))
      return WalkResult::advance();
    op->emitError("'") << op->getName() << "' has no code without a library; write it with exp, log, tanh, erf or sqrt";
    return WalkResult::interrupt();
  }

  ApproximateExp2 exp2;
};

} // namespace

std::unique_ptr<Pass> lacis::createExpandMathPass(ApproximateExp2 exp2) {
  return std::make_unique<ExpandMath>(exp2);
}
