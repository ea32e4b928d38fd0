// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-verify-stage=stage=lacis

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @drops(%n: index) -> tensor<?x?xf32, #csr> {
  // expected-error @+1 {{'tensor.empty' would change or drop a format}}
  %e = tensor.empty(%n, %n) : tensor<?x?xf32, #csr>
  return %e : tensor<?x?xf32, #csr>
}

// -----

#panels = #lacis.format<(b) -> (b floordiv 4 : dense, b mod 4 : dense)>
func.func @too_late(%n: index) {
  // expected-error @+1 {{'lacis.workspace' belongs to a later stage than the algebra}}
  %w = lacis.workspace(%n) : tensor<?xf32, #panels>
  return
}
