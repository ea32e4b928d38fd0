# SPDX-License-Identifier: Apache-2.0
"""A kernel that adds up the products of each row of two dense tensors."""

from __future__ import annotations

# A lane has 16 bytes of a row of half a float32 each; the 16 warps of a block have neighbouring rows.
_ELEMENTS, _WARPS, _LANES = 8, 16, 32
_STEPS = """
    #lacis.bind<loop = "z", unit = "block.x">, #lacis.bind<loop = "h", unit = "block.x">,
    #lacis.bind<loop = "n", unit = "block.x">,
    #lacis.split<loop = "i", factor = {rows}>, #lacis.bind<loop = "i0", unit = "block.x">,
    #lacis.split<loop = "i1", factor = {side}>, #lacis.bind<loop = "i10", unit = "warp">,
    #lacis.bind<loop = "i11", unit = "lane">, #lacis.split<loop = "e", factor = {elements}>,
    #lacis.vectorize<loop = "e1", width = {elements}>, #lacis.bind<loop = "e0", unit = "lane">"""
_TEXT = """
!rows = tensor<?x?x?x?x{width}x{type}>
!sums = tensor<?x?x?x?xf32>
func.func @row_products(%a: !rows {{lacis.name = "a"}}, %b: !rows {{lacis.name = "b"}})
    -> (!sums {{lacis.name = "out"}}) attributes {{lacis.kernel, lacis.steps = [{steps}]}} {{
  %c0 = arith.constant 0 : index  %c1 = arith.constant 1 : index  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index  %zero = arith.constant 0.0 : f32
  %z = tensor.dim %a, %c0 : !rows  %h = tensor.dim %a, %c1 : !rows
  %i = tensor.dim %a, %c2 : !rows  %n = tensor.dim %a, %c3 : !rows
  %empty = tensor.empty(%z, %h, %i, %n) : !sums
  %init = linalg.fill ins(%zero : f32) outs(%empty : !sums) -> !sums
  %sums = linalg.generic {{
      indexing_maps = [affine_map<(z, h, n, i, e) -> (z, h, i, n, e)>, affine_map<(z, h, n, i, e) -> (z, h, i, n, e)>,
                       affine_map<(z, h, n, i, e) -> (z, h, i, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"],
      lacis.loops = ["z", "h", "n", "i", "e"], lacis.name = "s"}}
      ins(%a, %b : !rows, !rows) outs(%init : !sums) {{
  ^bb0(%x: {type}, %y: {type}, %sum: f32):
    %wide = arith.extf %x : {type} to f32  %other = arith.extf %y : {type} to f32
    %product = arith.mulf %wide, %other : f32  %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  }} -> !sums
  return %sums : !sums
}}
"""


def row_products(element: str, width: int, on_gpu: bool) -> str:
    """The text for parts of rows, `width` elements of a half type, a power of two from 16 to 256 on a GPU.

    Rows are [batch, heads, rows, parts, width], of any strides.
    """
    side = _LANES * _ELEMENTS // width
    steps = _STEPS.format(rows=_WARPS * side, side=side, elements=_ELEMENTS) if on_gpu else ""
    return _TEXT.format(width=width, type=element, steps=steps)
