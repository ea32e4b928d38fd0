// Copies in vectors that lie strided in the layout of panels: written one by one, and read one by one up to a tail.
// RUN: lacis-opt %s -lacis-to-loops -lacis-apply-steps=target=cpu -lacis-to-buffers | FileCheck %s

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#in = #lacis.format<(b, j) -> (b floordiv 8 : dense, j : dense, b mod 8 : dense)>
#out = #lacis.format<(b, i) -> (b floordiv 8 : dense, i : dense, b mod 8 : dense)>

// CHECK-LABEL: func.func @copies
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK: arith.muli
// CHECK-COUNT-4: llvm.store {{.*}} : f32
// CHECK: arith.cmpi slt
// CHECK: scf.if {{.*}} -> (f32)
// CHECK: llvm.load {{.*}} -> f32
// CHECK: llvm.intr.masked.store {{.*}} : vector<4xf32>
func.func @copies(%w: tensor<?x?xf32, #csr> {lacis.name = "w"},
                  %x: tensor<?x?xf32> {lacis.name = "x", lacis.divisible = array<i64: 1, 4>}) -> tensor<?x?xf32>
    attributes {lacis.kernel, lacis.steps = [
      #lacis.relayout<operand = "x", layout = #in>, #lacis.split<loop = "x.j", factor = 4>,
      #lacis.reorder<loops = ["x.b1", "x.j1"]>, #lacis.vectorize<loop = "x.j1", width = 4>,
      #lacis.relayout<operand = "y", layout = #out>, #lacis.split<loop = "y.i", factor = 4>,
      #lacis.reorder<loops = ["y.b1", "y.i1"]>, #lacis.vectorize<loop = "y.i1", width = 4>]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %w, %c0 : tensor<?x?xf32, #csr>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, j)>, affine_map<(b, i, j) -> (b, i)>],
      iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #csr>, tensor<?x?xf32>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %p = arith.mulf %a, %v : f32
    %r = arith.addf %acc, %p : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
