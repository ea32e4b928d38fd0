// SPDX-License-Identifier: Apache-2.0
// On sm_75 no rule completes tiles, so a schedule of them is taken as it is.
// DEFINE: %{tiles} = not lacis-opt - -lacis-to-tiles="target=cuda arch=sm_75" 2>&1 | FileCheck %s
// RUN: sed 's/"i1", "b1"]>]/"i1"]>]/' %s | %{tiles} --check-prefix=OPEN
// RUN: sed -e 's/"b", factor = 256>,/"b", factor = 256>, #lacis.split<loop = "b1", factor = 64>,/' -e 's/"b1"\]/"b10", "b11"]/' %s | %{tiles} --check-prefix=COLUMNS
// RUN: sed -e 's/<?x?xbf16>/<512x?xbf16>/g; s/<?x?xf32>/<512x?xf32>/g; s/empty(%b, %i)/empty(%i)/; s/"b1"/"b2"/g; s/"b0"/"b1"/g; s/"b2"/"b0"/g' %s | %{tiles} --check-prefix=NEIGHBOURS
// RUN: sed 's/layout = #pairs/layout = #bsr/' %s | %{tiles} --check-prefix=LEVELS
// RUN: sed 's/"i0", factor = 2/"i0", factor = 4/' %s | %{tiles} --check-prefix=PANEL
// RUN: sed 's/layout = #pairs/layout = #turned/' %s | %{tiles} --check-prefix=TURNED
// RUN: sed 's/xbf16, #bsr>/xbf16, #narrow>/' %s | %{tiles} --check-prefix=PARTS
// RUN: sed 's/#lacis.pipeline<.*>,$//' %s | %{tiles} --check-prefix=AHEAD
// RUN: sed 's/#lacis.stage<operand = "w", place = "shared">,//' %s | %{tiles} --check-prefix=STAGED
// RUN: sed 's/layout = #pairs/layout = #wide/' %s | %{tiles} --check-prefix=WIDE
// RUN: sed 's/#lacis.balance<.*16>, //' %s | %{tiles} --check-prefix=WORK
// RUN: sed 's/#lacis.regroup<.*#pairs>,//' %s | %{tiles} --check-prefix=GROUP
// DEFINE: %{open} = sed -e 's/, #lacis.pipeline<.*>,$//' -e 's/#lacis.tensorize<.*>]} {/]} {/'
// RUN: %{open} %s | %{tiles} --check-prefix=LAYOUT
// RUN: %{open} -e 's/#lacis.regroup<.*#pairs>,//' %s | %{tiles} --check-prefix=GROUPS
// RUN: %{open} -e 's/#lacis.regroup<.*#pairs>,//; s/#lacis.bind<[^>]*>,//' %s | %{tiles} --check-prefix=LISTS

// One step or one type is another than in the schedule that makes tiles.
// OPEN: error: tiles: loop 'b1' is neither tensorized, nor bound to 'warpgroup', nor jammed
// COLUMNS: error: tiles: the columns of a tile are one loop over 'b'; tensorize that
// NEIGHBOURS: error: tiles: rounds of loop 'b0' are no neighbours along 'b'; tensorize the innermost loop over it
// LEVELS: error: {{.*}}has not the levels panel, step, bitmap of tiles, and tile
// PANEL: error: tiles: the layout has 2 tiles of 64 rows in a panel; the loops make 4 of 64
// TURNED: error: tiles: the rows of a tile lie as those of a stored block, in
// PARTS: error: tiles: tiles of 64 x 64 that link to the values are parts of stored blocks
// AHEAD: error: tiles: loop 'j0' loads nothing ahead; pipeline it
// WIDE: error: tiles: a step has 128 columns in several tiles, which are more than a line of 64 elements of the dense operand
// STAGED: error: tiles: operand "w" is not staged in 'shared'
// WORK: error: tiles: nothing says who works on which tile; balance the second loop of the nest
// GROUP: error: tiles: the stored operand is walked in its own layout; regroup it
// LAYOUT: error: regroup: only tiles walk another layout of "w", and no loop is tensorized; tensorize the loops of a tile, or leave the step out
// LISTS: error: balance: only tiles are handed out in lists, as those of loop 'b0' would be, and no loop is tensorized
// GROUPS: error: bind: only tiles are multiplied by a 'warpgroup', which loop 'i01' is bound to, and no loop is tensorized

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
#pairs = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed, i floordiv 64 mod 2 : bitmap, link, i mod 64 : dense, j mod 64 : dense)>
#turned = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed, i floordiv 64 mod 2 : bitmap, link, j mod 64 : dense, i mod 64 : dense)>
#wide = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 128 : compressed, (i floordiv 64 mod 2, j floordiv 64 mod 2) : bitmap, link, i mod 64 : dense, j mod 64 : dense)>
#narrow = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 32 : compressed, i mod 64 : dense, j mod 32 : dense)>
func.func @product(%w: tensor<?x?xbf16, #bsr> {lacis.name = "w", lacis.divisible = array<i64: 64, 8>},
                   %x: tensor<?x?xbf16> {lacis.name = "x"},
                   %old: tensor<?x?xbf16> {lacis.name = "residual"}) -> tensor<?x?xbf16>
    attributes {lacis.steps = [
      #lacis.split<loop = "i0", factor = 2>, #lacis.split<loop = "b", factor = 256>,
      #lacis.reorder<loops = ["i00", "b0", "i01", "i1", "b1"]>, #lacis.regroup<operand = "w", layout = #pairs>,
      #lacis.balance<loop = "b0", raster = 4, groups = 16>, #lacis.bind<loop = "i01", unit = "warpgroup">,
      #lacis.stage<operand = "w", place = "shared">, #lacis.stage<operand = "x", place = "shared">,
      #lacis.stage<operand = "residual", place = "shared">, #lacis.pipeline<loop = "j0", stages = 4>,
      #lacis.tensorize<loops = ["j1", "i1", "b1"]>]} {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %x, %c0 : tensor<?x?xbf16>
  %i = tensor.dim %w, %c0 : tensor<?x?xbf16, #bsr>
  %empty = tensor.empty(%b, %i) : tensor<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, j)>,
                                          affine_map<(b, i, j) -> (b, i)>],
                         iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "i", "j"]}
      ins(%w, %x : tensor<?x?xbf16, #bsr>, tensor<?x?xbf16>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%v: bf16, %e: bf16, %acc: f32):
    %vw = arith.extf %v : bf16 to f32
    %ew = arith.extf %e : bf16 to f32
    %product = arith.mulf %vw, %ew : f32
    %next = arith.addf %acc, %product : f32
    linalg.yield %next : f32
  } -> tensor<?x?xf32>
  %target = tensor.empty(%b, %i) : tensor<?x?xbf16>
  %result = linalg.generic {indexing_maps = [affine_map<(b, i) -> (b, i)>, affine_map<(b, i) -> (b, i)>,
                                             affine_map<(b, i) -> (b, i)>],
                            iterator_types = ["parallel", "parallel"], lacis.loops = ["b", "i"]}
      ins(%sum, %old : tensor<?x?xf32>, tensor<?x?xbf16>) outs(%target : tensor<?x?xbf16>) {
  ^bb0(%value: f32, %before: bf16, %none: bf16):
    %active = arith.maximumf %value, %zero : f32
    %wide = arith.extf %before : bf16 to f32
    %all = arith.addf %active, %wide : f32
    %rounded = arith.truncf %all : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<?x?xbf16>
  return %result : tensor<?x?xbf16>
}
