// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-linalg-to-loops | FileCheck %s

// The output's loops are outside; the levels that are not located become loops that carry the sum.
// CHECK-LABEL: func.func @csr(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<?x?xf32, #lacis.format{{.*}} %[[X:[^:]*]]: tensor<?xf32>{{.*}} %[[Y:[^:]*]]: tensor<?xf32>
// CHECK:         lacis.loop "i" %[[I:.*]] to
// CHECK:           %[[ROW:.*]] = lacis.locate %[[W]][0] at %{{.*}}(%[[I]])
// CHECK:           %[[SUM:.*]] = lacis.level_loop "j" %[[W]][1] at %[[ROW]] (%[[POS:.*]], %[[J:.*]]) iter(%[[ACC:.*]] =
// CHECK:             %[[A:.*]] = lacis.value %[[W]] at %[[POS]]
// CHECK:             %[[V:.*]] = lacis.read %[[X]][%[[J]]]
// CHECK:             arith.mulf %[[A]], %[[V]]
// CHECK:           lacis.write %[[SUM]] to %[[Y]][%[[I]]]
#format = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>]
func.func @csr(%w: tensor<?x?xf32, #format>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %w, %c0 : tensor<?x?xf32, #format>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #format>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %m = arith.mulf %a, %v : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Blocks give each axis a loop a digit; a size that the block need not divide is guarded on both axes,
// and padding inside a block is not multiplied.
// CHECK-LABEL: func.func @bsr(
// CHECK:         lacis.loop "i0" %[[I0:.*]] to
// CHECK:           lacis.loop "i1" %[[I1:.*]] to %c4
// CHECK:             scf.if
// CHECK:               lacis.locate %{{.*}}[0] at %{{.*}}(%[[I0]])
// CHECK:               lacis.level_loop "j0"
// CHECK:                 lacis.locate %{{.*}}[2] at %{{.*}}(%[[I1]])
// CHECK:                 lacis.loop "j1"
// CHECK:                   scf.if
// CHECK:                     lacis.entry
// CHECK:                     arith.select
#format = #lacis.format<(i, j) -> (i floordiv 4 : dense, j floordiv 4 : compressed, i mod 4 : dense, j mod 4 : dense)>
#maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>]
func.func @bsr(%w: tensor<?x?xf32, #format>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %w, %c0 : tensor<?x?xf32, #format>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #format>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %m = arith.mulf %a, %v : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// expected-error @+1 {{a kernel returns one tensor, made by 'linalg.generic'; a chain of statements several}}
func.func @refused(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
