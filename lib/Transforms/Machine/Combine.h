// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the partial results of a sum, on lanes of a vector or of a warp, are brought together.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_COMBINE_H
#define LACIS_LIB_TRANSFORMS_MACHINE_COMBINE_H

#include "lacis/Transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace lacis {

/// The lanes of a warp that one loop takes: `trip` of them, `stride` apart. Loops that share the warp may leave others
/// elsewhere, so only these exchange their sums.
struct LaneGroup {
  mlir::Value lane; // the number in the warp
  int64_t trip, stride;
  bool alone = false; // the lanes between them are of a loop outside, which may not run
};

/// The lanes that run with this one: those of its group, and of the groups between them that are inside of it.
mlir::Value membersOf(mlir::OpBuilder &b, mlir::Location loc, const LaneGroup &group);

/// The value that another of the members has: of the lane whose number differs in the bits of `offset` (`bfly`), or is
/// smaller by it (`up`).
mlir::Value exchange(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Value members, mlir::Value offset,
                     mlir::NVVM::ShflKind kind = mlir::NVVM::ShflKind::bfly);

/// Runs one coordinate of a loop that carries a segmented sum (`lacis.scan`) on each lane of a group: what a lane carries
/// on is its own value where a segment begins in it, else that of the lane before and its own.
llvm::LogicalResult inlineLaneScan(mlir::scf::ForOp loop, mlir::Value coordinate, const LaneGroup &group);

/// Runs one coordinate of a loop that carries a sum on each lane of a group: every lane sums from the neutral element,
/// then the sums of the group are exchanged and added in a fixed order.
llvm::LogicalResult inlineLaneSum(mlir::scf::ForOp loop, mlir::Value coordinate, const LaneGroup &group);

/// Takes a loop whose sum warps share out of the guards that only some lanes pass; refuses where it stays in such a place.
llvm::LogicalResult liftOutOfGuards(mlir::scf::ForOp loop);

/// Runs one coordinate of a loop that carries a sum on each of `warps` warps: they leave their sums in shared memory. These
/// are added in the order of the warps. Where stores that follow need few sums each, every warp does a part of all that
/// follows in the block, else the first does it.
llvm::LogicalResult inlineWarpSum(mlir::scf::ForOp loop, mlir::Value coordinate, mlir::Value lane, int64_t warps);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_MACHINE_COMBINE_H
