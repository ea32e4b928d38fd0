// SPDX-License-Identifier: Apache-2.0
/// \file
/// The instructions that tiles need of sm_90a alone.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_INSTRUCTIONS_H
#define LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_INSTRUCTIONS_H

#include "../Roles/WarpInstructions.h"

namespace lacis::hopper {

/// Emits at the insertion point of `b`. Addresses of shared memory are i32 values, counted from its start.
class Instructions : public WarpInstructions {
public:
  using WarpInstructions::synchronize;
  using WarpInstructions::WarpInstructions;

  void fenceBarrierInit();
  void wait(mlir::Value barrier, mlir::Value parity);
  void expectBytes(mlir::Value barrier, mlir::Value bytes);
  /// `threads` threads of the block, at the barrier number `id`.
  void synchronize(mlir::Value id, int64_t threads);

  /// A box of a tensor map to shared memory, complete at `barrier`, from row and column on, or of a batch from matrix, row
  /// and column.
  void copyBox(mlir::Value to, mlir::Value map, mlir::ValueRange place, mlir::Value barrier);
  void copyRun(mlir::Value to, mlir::Value from, mlir::Value bytes, mlir::Value barrier);
  void storeBox(mlir::Value map, mlir::ValueRange place, mlir::Value from);
  void commitStores();
  /// Until at most `groups` groups of stores are under way; `read`: still read shared memory.
  void waitStores(int64_t groups, bool read);
  void fenceSharedStores();
  /// Four 8x8 matrices of 16-bit elements, two a register.
  void storeMatrices(mlir::Value to, mlir::ValueRange registers, bool transposed);

  void setRegisters(int64_t count, bool increase);
  void fenceProducts();
  void commitProducts();
  void waitProducts(int64_t groups);
  /// An operand of a product: a descriptor of shared memory, with its rows along the contraction where transposed.
  struct Factor {
    mlir::Value descriptor;
    bool transposed;
  };
  /// Adds one product of 64 x columns x 16. Returns the new accumulators, `count` of them; where `acc` is empty the sum
  /// begins at 0.
  llvm::SmallVector<mlir::Value> product(mlir::ValueRange acc, size_t count, Factor a, Factor b, mlir::Type element);
  /// The same with the rows of the first operand in four registers, two elements each.
  llvm::SmallVector<mlir::Value> product(mlir::ValueRange acc, size_t count, mlir::ValueRange a, Factor b,
                                         mlir::Type element);
  /// The same address; what is added to it is added there, and not kept from an earlier sum.
  mlir::Value apart(mlir::Value address);
  /// The same number; what is computed of it is computed behind here, and not kept over what stands before.
  mlir::Value here(mlir::Value number);
  /// The number of the thread, read here.
  mlir::Value threadHere();
  /// Keeps registers from other use up to here.
  void keep(mlir::ValueRange registers);
  /// The same values, which no instruction may read any earlier.
  llvm::SmallVector<mlir::Value> settle(mlir::ValueRange values);

private:
  llvm::SmallVector<mlir::Value> product(mlir::ValueRange acc, size_t count, llvm::StringRef shape,
                                         mlir::ValueRange operands, llvm::StringRef operandText,
                                         llvm::StringRef constraints, llvm::StringRef flags);
};

} // namespace lacis::hopper

#endif // LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_INSTRUCTIONS_H
