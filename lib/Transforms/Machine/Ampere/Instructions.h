// SPDX-License-Identifier: Apache-2.0
/// \file
/// The instructions that tiles need of sm_80: asynchronous copies behind barriers, and products of one warp.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_INSTRUCTIONS_H
#define LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_INSTRUCTIONS_H

#include "../Roles/WarpInstructions.h"

namespace lacis::ampere {

constexpr int64_t kChunk = 16; // bytes of one copy

class Instructions : public WarpInstructions {
public:
  using WarpInstructions::WarpInstructions;

  /// Until the phase of that parity is complete.
  void wait(mlir::Value barrier, mlir::Value parity);
  /// One arrival of this thread, once its copies so far are there.
  void arriveWhenCopied(mlir::Value barrier);
  /// One arrival of this thread, after all `words` are computed.
  void arriveAfter(mlir::ValueRange words, mlir::Value barrier);
  void waitCopies();
  /// Starts to copy 16 bytes of global memory, `size` of them read and the others zero.
  void copyChunk(mlir::Value to, mlir::Value from, mlir::Value size);
  /// The transpose of an 8x8 matrix of 16-bit elements that lies over the warp.
  mlir::Value transposeMatrix(mlir::Value matrix);
  /// Lane t of a quad has words 0 to 3, and gets word t of lanes 0 to 3.
  void transposeQuad(llvm::MutableArrayRef<mlir::Value> words, mlir::Value lane);
  /// 32 bits of shared memory, `offset` bytes behind `from`.
  mlir::Value loadWord(mlir::Value from, int64_t offset);
  /// A float32 number, to the nearest with 10 bits of the mantissa.
  mlir::Value roundToTf32(mlir::Value word);
  /// Adds a product of 16 x 8 x 16, or x 8 of float32 numbers in TF32, to the four pieces `acc`.
  void product(llvm::MutableArrayRef<mlir::Value> acc, mlir::ValueRange a, mlir::ValueRange b, mlir::Type element);
};

} // namespace lacis::ampere

#endif // LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_INSTRUCTIONS_H
