# SPDX-License-Identifier: Apache-2.0
"""A kernel that adds up the products of each row of two dense tensors."""

from __future__ import annotations

# A lane has 16 bytes of a row of half a float32 each; the 16 warps of a block have neighbouring rows.
_ELEMENTS, _WARPS, _LANES = 8, 16, 32
_STEPS = """
    #lacis.split<loop = "i", factor = {rows}>, #lacis.bind<loop = "i0", unit = "block.x">,
    #lacis.split<loop = "i1", factor = {side}>, #lacis.bind<loop = "i10", unit = "warp">,
    #lacis.bind<loop = "i11", unit = "lane">, #lacis.split<loop = "e", factor = {elements}>,
    #lacis.vectorize<loop = "e1", width = {elements}>, #lacis.bind<loop = "e0", unit = "lane">"""
_TEXT = """
!rows = tensor<?x{width}x{type}>
func.func @row_products(%a: !rows {{lacis.name = "a"}}, %b: !rows {{lacis.name = "b"}})
    -> (tensor<?xf32> {{lacis.name = "out"}}) attributes {{lacis.kernel, lacis.steps = [{steps}]}} {{
  %c0 = arith.constant 0 : index  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : !rows
  %empty = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %sums = linalg.generic {{
      indexing_maps = [affine_map<(i, e) -> (i, e)>, affine_map<(i, e) -> (i, e)>, affine_map<(i, e) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "e"], lacis.name = "s"}}
      ins(%a, %b : !rows, !rows) outs(%init : tensor<?xf32>) {{
  ^bb0(%x: {type}, %y: {type}, %sum: f32):
    %wide = arith.extf %x : {type} to f32  %other = arith.extf %y : {type} to f32
    %product = arith.mulf %wide, %other : f32  %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  }} -> tensor<?xf32>
  return %sums : tensor<?xf32>
}}
"""


def row_products(element: str, width: int, on_gpu: bool) -> str:
    """The text for rows of `width` elements of a half type, a power of two from 16 to 256 on a GPU."""
    side = _LANES * _ELEMENTS // width
    steps = _STEPS.format(rows=_WARPS * side, side=side, elements=_ELEMENTS) if on_gpu else ""
    return _TEXT.format(width=width, type=element, steps=steps)
