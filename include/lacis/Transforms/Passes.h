// SPDX-License-Identifier: Apache-2.0
/// \file
/// Declarations of the passes and their registration.
#ifndef LACIS_TRANSFORMS_PASSES_H
#define LACIS_TRANSFORMS_PASSES_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

namespace lacis {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

#endif // LACIS_TRANSFORMS_PASSES_H
