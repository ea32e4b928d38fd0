// SPDX-License-Identifier: Apache-2.0
/// \file
/// The instructions of sm_90a that tiles need; the only place with inline assembly.
#ifndef LACIS_LIB_TRANSFORMS_HOPPER_INSTRUCTIONS_H
#define LACIS_LIB_TRANSFORMS_HOPPER_INSTRUCTIONS_H

#include "lacis/Transforms/Passes.h"

namespace lacis::hopper {

/// Emits at the insertion point of `b`. Addresses of shared memory are i32 values, counted from its start.
class Instructions {
public:
  Instructions(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  mlir::Value constant(int64_t value);
  mlir::Value constant64(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value c);
  mlir::Value add(mlir::Value a, int64_t c) { return c == 0 ? a : add(a, constant(c)); }
  mlir::Value multiply(mlir::Value a, int64_t c);
  mlir::Value equal(mlir::Value a, int64_t c);

  mlir::Value threadId();
  /// The value of lane 0, known to be the same in the whole warp.
  mlir::Value uniform(mlir::Value value);
  /// True, which no compiler knows.
  mlir::Value opaqueTrue();
  mlir::Value shuffleXor(mlir::Value value, int64_t lanes);

  void initBarrier(mlir::Value barrier, int64_t arrivals);
  void fenceBarrierInit();
  void wait(mlir::Value barrier, mlir::Value parity);
  void expectBytes(mlir::Value barrier, mlir::Value bytes);
  void arrive(mlir::Value barrier);
  void arriveIf(mlir::Value condition, mlir::Value barrier);
  /// All threads of the block; or `threads` of them, at the barrier number `id`.
  void synchronize();
  void synchronize(mlir::Value id, int64_t threads);

  /// A box of a tensor map to shared memory, complete at `barrier`; elements, innermost first.
  void copyBox(mlir::Value to, mlir::Value map, mlir::Value column, mlir::Value row, mlir::Value barrier);
  void copyRun(mlir::Value to, mlir::Value from, mlir::Value bytes, mlir::Value barrier);
  void storeBox(mlir::Value map, mlir::Value column, mlir::Value row, mlir::Value from);
  void commitStores();
  /// Until at most `groups` groups of stores are under way; `read`: still read shared memory.
  void waitStores(int64_t groups, bool read);
  void fenceSharedStores();
  /// Four 8x8 matrices of 16-bit elements, two a register.
  void storeMatrices(mlir::Value to, mlir::ValueRange registers, bool transposed);
  llvm::SmallVector<mlir::Value> loadMatrices(mlir::Value from, bool transposed);

  void setRegisters(int64_t count, bool increase);
  void fenceProducts();
  void commitProducts();
  void waitProducts(int64_t groups);
  /// An operand of a product: a descriptor of shared memory, with its rows along the contraction where transposed.
  struct Factor {
    mlir::Value descriptor;
    bool transposed;
  };
  /// Adds one product of 64 x columns x 16. Returns the new accumulators.
  llvm::SmallVector<mlir::Value> product(mlir::ValueRange acc, Factor a, Factor b, mlir::Type element);
  /// The same values, which no instruction may read any earlier.
  llvm::SmallVector<mlir::Value> settle(mlir::ValueRange values);
  /// Two floats rounded to 16 bits, the first in the lower half.
  mlir::Value pack(mlir::Value low, mlir::Value high, mlir::Type element);

private:
  mlir::Value assembly(mlir::Type result, llvm::StringRef text, llvm::StringRef constraints, mlir::ValueRange operands);
  void effect(llvm::StringRef text, llvm::StringRef constraints, mlir::ValueRange operands);

  mlir::OpBuilder &b;
  mlir::Location loc;
};

} // namespace lacis::hopper

#endif // LACIS_LIB_TRANSFORMS_HOPPER_INSTRUCTIONS_H
