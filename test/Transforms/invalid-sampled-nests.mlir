// SPDX-License-Identifier: Apache-2.0
// On sm_75 no rule completes tiles, so a schedule of them is taken as it is.
// DEFINE: %{tiles} = not lacis-opt - -lacis-to-tiles="target=cuda arch=sm_75" 2>&1 | FileCheck %s
// RUN: sed 's/#lacis.jam<loop = "i0_j011">,//' %s | %{tiles} --check-prefix=OPEN
// RUN: sed 's/#lacis.bind<.*"warpgroup">,//' %s | %{tiles} --check-prefix=UNIT
// RUN: sed 's/#lacis.balance<.*>,$//' %s | %{tiles} --check-prefix=LISTS
// RUN: sed 's/#lacis.regroup<.*#union>,//' %s | %{tiles} --check-prefix=OWN
// RUN: sed 's/layout = #union/layout = #arg0/' %s | %{tiles} --check-prefix=LEVELS
// RUN: sed 's/layout = #union/layout = #halves/' %s | %{tiles} --check-prefix=BLOCKS
// RUN: sed 's/layout = #union/layout = #tall/' %s | %{tiles} --check-prefix=PANEL
// RUN: sed 's/"i0_j0", factor = 32/"i0_j0", factor = 4/; s/"i0_j01", factor = 16/"i0_j01", factor = 2/' %s | %{tiles} --check-prefix=ROOM
// RUN: sed 's/#lacis.pipeline<.*4>, //' %s | %{tiles} --check-prefix=AHEAD
// RUN: sed 's/#lacis.stage<operand = "out", place = "shared">,//' %s | %{tiles} --check-prefix=STAGED
// RUN: sed 's/layout = #union/layout = #flat/; s/"i0_j0", factor = 32/"i0_j0", factor = 6/; s/"i0_j01", factor = 16/"i0_j01", factor = 3/' %s | %{tiles} --check-prefix=ODD
// RUN: sed 's/layout = #union/layout = #broad/; /^#arg0/s/32/128/g' %s | %{tiles} --check-prefix=BROAD
// RUN: sed 's/(i, j, b) -> (b, j)>/(i, j, b) -> (b, i)>/' %s | %{tiles} --check-prefix=LETTERS
// RUN: sed 's/linalg.yield %rounded/%no = arith.negf %rounded : bf16 linalg.yield %no/' %s | %{tiles} --check-prefix=SUM
// RUN: sed 's/%rounded = /%more = arith.negf %value : f32 %rounded = /; s/truncf %value/truncf %more/; s/: 128, 128>/: 8, 8>/; s/: 32, 128>/: 32, 8>/g' %s | %{tiles} --check-prefix=PADDING

// One step is another than in the schedule that makes tiles of a sampled product.
// OPEN: error: tiles: loop 'i0_j011' is neither tensorized, nor bound to 'warpgroup', nor jammed
// UNIT: error: tiles: no loop is bound to 'warpgroup'; bind the one whose rounds multiply side by side
// LISTS: error: tiles: nothing says who works on which blocks; balance loop 'i0_j00'
// OWN: error: tiles: the pattern is walked in its own layout; regroup it
// LEVELS: error: {{.*}}has not the levels panel, step, bitmap of blocks, link, and block
// BLOCKS: error: tiles: the tiles of the layout are the stored blocks, of 32 x 32, and so are the loops that are tensorized
// PANEL: error: tiles: a panel has 256 rows; 64 of each of 2 consumers, or 64 of all of them
// ROOM: error: tiles: a share has room for 4 blocks, and a step of the layout for 8
// AHEAD: error: tiles: loop 'b0' loads nothing ahead; pipeline it
// STAGED: error: tiles: operand "out" is not staged in 'shared'
// LETTERS: error: tensorize: the nest is no product of tiles: it is no product of two dense matrices, sampled where blocks are stored
// SUM: error: tensorize: the nest is no product of tiles: what follows the sum is no arithmetic on numbers and on vectors along 'j', rounded last
// PADDING: error: tensorize: the nest is no product of tiles: blocks may reach behind the sizes, where what follows the sum stores no zeros
// ODD: error: tiles: 3 steps of a share are not to be divided by 2 consumers
// BROAD: error: tiles: stored blocks of more than 64 rows are a step of the layout each

#arg0 = #lacis.format<(i, j) -> (i floordiv 32 : dense, j floordiv 32 : compressed, i mod 32 : dense, j mod 32 : dense)>
#union = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed, (i floordiv 32 mod 4, j floordiv 32 mod 2) : bitmap, link, i mod 32 : dense, j mod 32 : dense)>
#halves = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed, (i floordiv 16 mod 8, j floordiv 16 mod 4) : bitmap, link, i mod 16 : dense, j mod 16 : dense)>
#tall = #lacis.format<(i, j) -> (i floordiv 256 : dense, j floordiv 32 : compressed, (i floordiv 32 mod 8, j floordiv 32 mod 1) : bitmap, link, i mod 32 : dense, j mod 32 : dense)>
#flat = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 32 : compressed, (i floordiv 32 mod 2, j floordiv 32 mod 1) : bitmap, link, i mod 32 : dense, j mod 32 : dense)>
#broad = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 256 : compressed, (i floordiv 128 mod 1, j floordiv 128 mod 2) : bitmap, link, i mod 128 : dense, j mod 128 : dense)>
func.func @small(%arg0: !lacis.pattern<?x?, #arg0> {lacis.name = "0", lacis.divisible = array<i64: 128, 128>}, %arg1: tensor<?x?xbf16> {lacis.name = "1", lacis.divisible = array<i64: 32, 128>}, %out: tensor<?x?xbf16> {lacis.name = "out", lacis.divisible = array<i64: 32, 128>}) -> (tensor<?x?xbf16, #arg0> {lacis.name = "0"})
    attributes {lacis.kernel, lacis.steps = [
      #lacis.split<loop = "i0_j0", factor = 32>, #lacis.split<loop = "i0_j01", factor = 16>, #lacis.split<loop = "b", factor = 64>,
      #lacis.regroup<operand = "0", layout = #union>, #lacis.balance<loop = "i0_j00", raster = 1, groups = 1>,
      #lacis.bind<loop = "i0_j010", unit = "warpgroup">, #lacis.jam<loop = "i0_j011">,
      #lacis.stage<operand = "out", place = "shared">, #lacis.stage<operand = "1", place = "shared">,
      #lacis.pipeline<loop = "b0", stages = 4>, #lacis.tensorize<loops = ["i1", "j1", "b1"]>]} {
  %init = lacis.zeros %arg0 : !lacis.pattern<?x?, #arg0> to tensor<?x?xf32, #arg0>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j, b) -> (b, j)>, affine_map<(i, j, b) -> (b, i)>, affine_map<(i, j, b) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["i", "j", "b"]}
      ins(%arg1, %out : tensor<?x?xbf16>, tensor<?x?xbf16>) outs(%init : tensor<?x?xf32, #arg0>) {
  ^bb0(%in0: bf16, %in1: bf16, %acc: f32):
    %wide0 = arith.extf %in0 : bf16 to f32
    %wide1 = arith.extf %in1 : bf16 to f32
    %product1 = arith.mulf %wide0, %wide1 : f32
    %next = arith.addf %acc, %product1 : f32
    linalg.yield %next : f32
  } -> tensor<?x?xf32, #arg0>
  %target = lacis.zeros %arg0 : !lacis.pattern<?x?, #arg0> to tensor<?x?xbf16, #arg0>
  %result = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%sum : tensor<?x?xf32, #arg0>) outs(%target : tensor<?x?xbf16, #arg0>) {
  ^bb0(%value: f32, %old: bf16):
    %rounded = arith.truncf %value : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<?x?xbf16, #arg0>
  return %result : tensor<?x?xbf16, #arg0>
}
