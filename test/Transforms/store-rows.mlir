// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s
// RUN: lacis-compile %s --target=cpu --emit=target -o - | FileCheck %s --check-prefix=PLAIN

// A number for each row goes to the end of the last axis at most: the first thread of a quad stores both of its rows.
// CHECK: st.global.b32
// CHECK: st.global.b32
// PLAIN: llvm.store
!row = !lacis.acc<64x1xf32>
!x = tensor<?x64xbf16>
!t = !lacis.tile<64x64xbf16>

module attributes {lacis.stage = "tiles"} {
  func.func @rows(%x: !x {lacis.name = "x", lacis.axes = ["i", "d"]},
                  %y: tensor<?x?xf32> {lacis.name = "y", lacis.axes = ["i", "d"], lacis.output}) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : index  %c64 = arith.constant 64 : index  %zero = arith.constant 0.0 : f32
    %n = tensor.dim %y, %c0 : tensor<?x?xf32>
    lacis.loop "h" %h to %n {
      %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>>
      lacis.roles producer {
        %t = lacis.acquire %ring : !lacis.ring<2, <64x64xbf16>> -> !t
        lacis.load_tile %x[%c0, %c0] to %t : !x[index, index] to !t
        %next = lacis.release %ring : !lacis.ring<2, <64x64xbf16>>
        lacis.yield
      } consumers 1 (%c : index) {
        %t = lacis.acquire %ring : !lacis.ring<2, <64x64xbf16>> -> !t
        %s = lacis.mma %t, %t : !t, !t into !lacis.acc<64x64xf32>
        %done = lacis.complete %s : !lacis.acc<64x64xf32> -> !lacis.acc<64x64xf32>
        %next = lacis.release %ring : !lacis.ring<2, <64x64xbf16>>
        %sum = lacis.reduce_rows "sum" %done : !lacis.acc<64x64xf32> -> !row
        lacis.store_rows %sum to %y[%h, %c64] : !row to tensor<?x?xf32>[index, index]
        lacis.yield
      }
      lacis.yield
    } bind<block.x>
    return
  }
}
