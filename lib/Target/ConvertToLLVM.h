// SPDX-License-Identifier: Apache-2.0
/// \file
/// The way from the target stage to the LLVM dialect that backends share.
#ifndef LACIS_LIB_TARGET_CONVERTTOLLVM_H
#define LACIS_LIB_TARGET_CONVERTTOLLVM_H

#include <memory>

namespace mlir {
class DialectRegistry;
class LLVMTypeConverter;
class OpPassManager;
class Pass;
class RewritePatternSet;
class ConversionTarget;
} // namespace mlir

namespace lacis {

/// What a backend adds to the conversion: its own operations. May be null.
using PopulateToLLVM = void (*)(mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns,
                                mlir::ConversionTarget &target);

/// How a backend takes 2^x in f32 where `fastmath<afn>` says that an approximation will do.
enum class ApproximateExp2 {
  Native,  // one instruction
  Expanded // arithmetic like that of the exact function
};

/// Replaces transcendental functions by arithmetic, so that no library is called.
std::unique_ptr<mlir::Pass> createExpandMathPass(ApproximateExp2 exp2);

/// Converts every operation of the module to the LLVM dialect, or fails on the first that it cannot.
std::unique_ptr<mlir::Pass> createConvertToLLVMPass(PopulateToLLVM populate);

/// How a backend takes arithmetic on half types.
enum class HalfTypes {
  Native,   // the code generator has instructions or inline code for all of it
  Emulated, // arithmetic in f32, bf16 converted by integer operations
};

/// Both, with upstream's lowerings of structured control flow, vectors and half types around them.
void addToLLVMPasses(mlir::OpPassManager &pm, HalfTypes half, ApproximateExp2 exp2, PopulateToLLVM populate);

/// Dialects of the target stage that every backend takes, and their translations.
void registerCommonDialects(mlir::DialectRegistry &registry);

} // namespace lacis

#endif // LACIS_LIB_TARGET_CONVERTTOLLVM_H
