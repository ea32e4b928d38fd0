// SPDX-License-Identifier: Apache-2.0
/// \file
/// The instructions that tiles need on every GPU from sm_80 on.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_ROLES_WARPINSTRUCTIONS_H
#define LACIS_LIB_TRANSFORMS_MACHINE_ROLES_WARPINSTRUCTIONS_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

/// Emits at the insertion point of `b`. Addresses of shared memory are i32 values, counted from its start.
class WarpInstructions {
public:
  WarpInstructions(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  mlir::Value constant(int64_t value);
  mlir::Value constant64(int64_t value);
  // Constants are of the type of `a`.
  mlir::Value add(mlir::Value a, mlir::Value c);
  mlir::Value add(mlir::Value a, int64_t c) { return c == 0 ? a : add(a, constantLike(a, c)); }
  mlir::Value multiply(mlir::Value a, int64_t c);
  mlir::Value equal(mlir::Value a, int64_t c);

  mlir::Value threadId();
  /// The value of lane 0, of 32 or 64 bits, known to be the same in the whole warp.
  mlir::Value uniform(mlir::Value value);
  /// True, which no compiler knows.
  mlir::Value opaqueTrue();
  mlir::Value shuffleXor(mlir::Value value, int64_t lanes);
  /// All threads of the block.
  void synchronize();

  void initBarrier(mlir::Value barrier, int64_t arrivals);
  void arrive(mlir::Value barrier);
  void arrive(mlir::Value barrier, int64_t count);
  void arriveIf(mlir::Value condition, mlir::Value barrier);

  /// Four 8x8 matrices of 16-bit elements, two a register.
  llvm::SmallVector<mlir::Value> loadMatrices(mlir::Value from, bool transposed);
  /// Waits until loads are complete. `words`, i32, has one register of each load, or what depends on it. The assembler
  /// orders a load from shared memory before the first use of its registers, and before nothing else. Without a use, an
  /// arrive that follows can be issued while the load is under way.
  void waitForLoads(mlir::ValueRange words);
  /// The bits of all words together, which depend on each of them.
  mlir::Value anyOf(mlir::ValueRange words);
  /// Two floats rounded to 16 bits, the first in the lower half.
  mlir::Value pack(mlir::Value low, mlir::Value high, mlir::Type element);

protected:
  mlir::Value constantLike(mlir::Value a, int64_t value);
  mlir::Value assembly(mlir::Type result, llvm::StringRef text, llvm::StringRef constraints, mlir::ValueRange operands,
                       bool hasEffects = true);
  void effect(llvm::StringRef text, llvm::StringRef constraints, mlir::ValueRange operands);
  llvm::SmallVector<mlir::Value> unpack(mlir::Value structure, size_t count);

  mlir::OpBuilder &b;
  mlir::Location loc;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_MACHINE_ROLES_WARPINSTRUCTIONS_H
