// RUN: lacis-opt %s -lacis-lower-levels -lacis-map-to-ranges | FileCheck %s --check-prefix=CPU
// RUN: lacis-opt %s -lacis-lower-levels -lacis-map-to-grid | FileCheck %s --check-prefix=GPU

// The size of the bound loop is on record as an argument, and the pointers say where they come from.
// CPU:      lacis.artifact = {args = [
// CPU-SAME:   kind = "dim", operand = 0
// CPU-SAME:   kind = "storage", name = "pos1", operand = 0
// CPU-SAME:   launches = [{entry = "sums_0", units = #lacis.size<arg [[N:[0-9]+]]>}]
// CPU:      func.func @sums_0(
// CPU:        %[[UNIT:.*]] = arith.trunci
// CPU:        llvm.getelementptr
// CPU:        scf.for {{.*}} iter_args
// CPU:        llvm.store

// GPU:      launches = [{block = [1, 1, 1], entry = "sums_0", grid = [
// GPU:      func.func @sums_0(
// GPU-SAME:   lacis.block = array<i64: 1, 1, 1>, lacis.gpu_kernel
// GPU:        gpu.block_id x
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @sums(%w: tensor<?x?xf32, #csr> {lacis.axes = ["i", "j"]},
                %y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}) attributes {lacis.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %w, %c0 : tensor<?x?xf32, #csr>
  lacis.loop "i" %i to %n {
    %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %sum = lacis.level_loop "j" %w[1] at %row (%pos, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %a = lacis.value %w at %pos : tensor<?x?xf32, #csr> -> f32
      %s = arith.addf %acc, %a : f32
      lacis.yield %s : f32
    }
    lacis.write %sum to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  } bind<parallel>
  return
}
