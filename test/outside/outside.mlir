// SPDX-License-Identifier: Apache-2.0
// RUN: %outside lacis-opt %s | FileCheck %s
// RUN: not lacis-opt %s 2>&1 | FileCheck %s --check-prefix=WITHOUT

// Kinds from outside of the core's folders stand in the grammar where their folder is linked in, and nowhere else.

// CHECK-LABEL: @mine
// CHECK-SAME:  (i : dense, j : even*mirrored)>
// CHECK-SAME:  (i : even*crd, j : even*mirrored<pad=false, pos=i64>)>
// WITHOUT: error: unknown level kind 'even'
func.func private @mine(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : even*mirrored)>>,
                        tensor<?x?xf32, #lacis.format<(i, j) -> (i : even*crd, j : even*mirrored<pad=false, pos=i64>)>>)
