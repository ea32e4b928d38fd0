// SPDX-License-Identifier: Apache-2.0
// Every pass, in the order of the pipeline.

#ifndef LACIS_TRANSFORMS_PASSES_TD
#define LACIS_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

// A text loads the dialects that it speaks, a pass those that it may make, whatever stood in the text.
class LacisPass<string name, string op = "::mlir::func::FuncOp"> : Pass<name, op> {
  let dependentDialects = ["::lacis::LacisDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::cf::ControlFlowDialect", "::mlir::func::FuncDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::gpu::GPUDialect"];
}

def LacisVerifyStage : Pass<"lacis-verify-stage"> {
  let summary = "Checks what a stage promises: algebra, loops, tiles, buffers or target.";
  let options = [Option<"stage", "stage", "std::string", "\"lacis\"", "the stage the module has reached">,
                 Option<"mark", "mark", "bool", "true", "record the stage on the module">];
}

def LacisResolveKinds : LacisPass<"lacis-resolve-kinds", "::mlir::ModuleOp"> {
  let summary = "Looks up what the operations `lacis.kind` say of the kinds that formats name.";
}

def LacisLowerPatterns : LacisPass<"lacis-lower-patterns"> {
  let summary = "Turns pattern arguments into tensors with the format, whose values nobody reads.";
}

def LacisLowerSums : LacisPass<"lacis-lower-sums"> {
  let summary = "Turns a product with a sum into a chain of products, one for each part.";
}

def LacisChooseWalks : LacisPass<"lacis-choose-walks"> {
  let summary = "Chooses how the levels of an operand own the elements of the output, or walks its companion index.";
  let options = [Option<"rows", "rows", "bool", "false",
                        "where coordinates are narrow, sampled products go row by row and links are places in rows">];
}

def LacisLinalgToLoops : LacisPass<"lacis-linalg-to-loops"> {
  let summary = "Derives the named loop nest of an expression from the levels of its operands.";
}

def LacisApplySteps : LacisPass<"lacis-apply-steps"> {
  let summary = "Completes the schedule with the target's default steps and applies it to the nest.";
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "the target: cpu, cuda, cuda:sm_90a">];
}

def LacisFormTiles : LacisPass<"lacis-form-tiles"> {
  let summary = "Turns a nest whose loops are marked for tensor cores into roles that load and multiply tiles.";
}

def LacisDistributeWarpTiles : LacisPass<"lacis-distribute-warp-tiles"> {
  let summary = "Distributes loops that are tensorized for a warp over its lanes, which read and multiply pieces of tiles.";
}

def LacisVectorizeLoops : LacisPass<"lacis-vectorize-loops"> {
  let summary = "Turns loops marked `vectorize` into vector operations; the loops inside stay scalar.";
}

def LacisUnrollAndJam : LacisPass<"lacis-unroll-and-jam"> {
  let summary = "Replicates loops marked `jam`, sharing the loops inside.";
}

def LacisHoldOperands : LacisPass<"lacis-hold-operands"> {
  let summary = "A thread loads what it reads of operands once a round of the loops marked for it, into registers.";
}

def LacisStageOperands : LacisPass<"lacis-stage-operands"> {
  let summary = "Threads of a block load tiles of operands into shared memory at the loops marked for it.";
  let options = [Option<"target", "target", "std::string", "\"cuda\"", "the target: cpu, cuda, cuda:sm_90a">];
}

def LacisLowerLevels : LacisPass<"lacis-lower-levels", "::mlir::ModuleOp"> {
  let summary = "Explodes encoded tensors into buffers: the one place where levels become loads.";
  let options = [Option<"outline", "outline", "bool", "false",
                        "what nests do in the same way becomes a function that they call">];
}

def LacisTightenLoops : LacisPass<"lacis-tighten-loops"> {
  let summary = "Loops whose whole body is guarded by a bound of their coordinate stop there, without the guard.";
}

def LacisInterleaveSums : LacisPass<"lacis-interleave-sums"> {
  let summary = "Loops marked for several sums run as many rounds at once, each adding to a sum of its own.";
}

def LacisLoadAhead : LacisPass<"lacis-load-ahead"> {
  let summary = "Loops marked `pipeline` load into registers what later rounds add up.";
}

def LacisCheckAccesses : LacisPass<"lacis-check-accesses", "::mlir::ModuleOp"> {
  let summary = "Guards every access of a kernel marked `lacis.checked` by the size of its array, and records the first outside.";
}

def LacisMapToRanges : LacisPass<"lacis-map-to-ranges", "::mlir::ModuleOp"> {
  let summary = "One function a nest over a range of parallel units, for threads of a CPU.";
}

def LacisMapToGrid : LacisPass<"lacis-map-to-grid", "::mlir::ModuleOp"> {
  let summary = "One kernel a nest over a grid of blocks, warps and lanes.";
}

def LacisStreamLoads : LacisPass<"lacis-stream-loads", "::mlir::ModuleOp"> {
  let summary = "Loads that are marked `nontemporal` pass by the first-level cache of a GPU.";
}

def LacisOverlapLaunches : LacisPass<"lacis-overlap-launches", "::mlir::ModuleOp"> {
  let summary = "A kernel waits for the one before it, and may be started while that one ends.";
}

def LacisLowerTilesHopper : LacisPass<"lacis-lower-tiles-hopper", "::mlir::ModuleOp"> {
  let summary = "Roles and tiles for sm_90a: warpgroups, bulk copies behind barriers, asynchronous products.";
}

def LacisLowerTilesAmpere : LacisPass<"lacis-lower-tiles-ampere", "::mlir::ModuleOp"> {
  let summary = "Roles and tiles from sm_80 on: warps, asynchronous copies behind barriers, products of a warp.";
  let options = [Option<"shared", "shared", "int64_t", "166912", "bytes of shared memory that one block may have">];
}

def LacisLowerTilesPlain : LacisPass<"lacis-lower-tiles-plain", "::mlir::ModuleOp"> {
  let summary = "Roles and tiles for any machine: roles that take turns, loops over tiles and accumulators in memory.";
}

#endif // LACIS_TRANSFORMS_PASSES_TD
