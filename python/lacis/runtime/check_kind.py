# SPDX-License-Identifier: Apache-2.0
"""Tries a level kind of the user's on random fibres: what its methods say must agree, on tensors and in kernels."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from ..errors import DataError
from ..formats import Format, LevelKind, kind_texts
from ..packing import PackedTensor, pack
from .einsum import einsum
from .kernels import compile_kernel

_SHAPES = ((7, 33), (1, 5), (15, 1), (3, 65), (0, 5), (5, 0))
_DENSITIES = (0.0, 0.1, 0.6, 1.0)


def check_kind(kind: type[LevelKind], masks: Iterable[torch.Tensor] | None = None, target: str = "cpu") -> None:
    """Raise `DataError` unless a level kind does on random fibres what it says.

    What `place` stores is read again, entry by entry; the arrays are well formed; a kernel for `target` finds the same
    coordinates as the methods on tensors; `seek` and `find`, where it has them, agree with a look at all positions.
    `masks` are bool tensors [rows, columns], the entries of the rows that are tried: random ones by default, which a
    kind that cannot store every entry refuses.

    A kind that passes can still be wrong elsewhere: unchecked kernels follow what its arrays say (see `LACIS_DEBUG`).

    >>> import lacis
    >>> @lacis.kind(name="checked_slots")
    ... class Slots(lacis.LevelKind):
    ...     crd = lacis.array("i32", per="position")
    ...     end = lacis.array("i32", per="parent", plus=1)
    ...     def bounds(self, at): return self.end[at.parent], self.end[at.parent + 1]
    ...     def coordinate(self, at, lo, pos): return self.crd[pos]
    ...     def place(self, fibre):
    ...         count = fibre.first.numel()
    ...         arrays = {"end": fibre.starts(), "crd": fibre.crd[fibre.first]}
    ...         return lacis.Placed(fibre.ends - 1, count, (count,), arrays)
    >>> check_kind(Slots, target="eager")
    """
    format = Format.parse(f"(i, j) -> (i : dense, j : {kind._symbol})")
    for number, mask in enumerate(_random_masks() if masks is None else masks):
        values = torch.randn(mask.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(number))
        dense = torch.where(mask, values.abs() + 1, 0)
        packed = pack(dense, format, mask)
        _same(kind, "what 'place' stores is read as other entries", packed.to_dense(), dense)
        packed.validate()
        if packed.nnz != int(mask.sum()):
            raise DataError(
                f"kind '{kind._symbol}': {packed.nnz} positions hold {int(mask.sum())} entries; say fills = True"
            )
        x = torch.ones(mask.shape[1], dtype=torch.float64)
        if not mask.numel():
            continue
        _same(kind, "a kernel adds up other entries", einsum("ij,j->i", packed, x, target=target), dense.sum(1))
        for method in ("seek", "find"):
            if method in kind.methods():
                _check_search(kind, method, packed, dense, target)


def _random_masks():
    generator = torch.Generator().manual_seed(0)
    for shape in _SHAPES:
        for density in _DENSITIES:
            yield torch.rand(shape, generator=generator) < density


def _same(kind, what: str, found: torch.Tensor, wanted: torch.Tensor) -> None:
    bad = ((found - wanted).abs() > 1e-9 * wanted.abs()).nonzero()
    if len(bad):
        raise DataError(f"kind '{kind._symbol}': {what}, at {bad[0].tolist()} of a tensor {list(wanted.shape)}")


def _check_search(kind, method: str, packed: PackedTensor, dense: torch.Tensor, target: str) -> None:
    """The values that `find` leads to, or how many entries lie before each coordinate, which `seek` answers."""
    if method == "find":
        wanted = dense
    else:
        before = torch.cumsum(dense != 0, 1)
        wanted = torch.cat([torch.zeros_like(before[:, :1]), before], 1)[:, : dense.shape[1]].double()
    if target != "cpu" or not dense.numel():
        return
    kernel = compile_kernel(_PROBE.format(kind="\n".join(kind_texts(str(packed.format))), body=_BODIES[method],
                                          format=packed.pattern.typed_text), target)  # fmt: skip
    arrays = [packed.array("", "", name) for name in kernel.storage]
    shape = list(packed.shape)
    _same(kind, f"'{method}' answers another position", kernel([], arrays, shape, shape), wanted)


# Every coordinate of every row is looked for.
_PROBE = """
#w = {format}
module attributes {{lacis.stage = "loops"}} {{
{kind}
  func.func @probe(%w: tensor<?x?xf64, #w> {{lacis.axes = ["i", "j"], lacis.name = "0"}},
                   %y: tensor<?x?xf64> {{lacis.axes = ["i", "j"], lacis.name = "out", lacis.output}})
      attributes {{lacis.kernel, lacis.steps = []}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %rows = tensor.dim %w, %c0 : tensor<?x?xf64, #w>
    %columns = tensor.dim %w, %c1 : tensor<?x?xf64, #w>
    lacis.loop "i" %i to %rows {{
      %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf64, #w>
      lacis.loop "j" %j to %columns {{
{body}
        lacis.write %found to %y[%i, %j] : f64 to tensor<?x?xf64>
        lacis.yield
      }}
      lacis.yield
    }} bind<parallel>
    return
  }}
}}
"""
_BODIES = {
    "find": """
        %at, %is = lacis.find %w[1] at %row(%j) : tensor<?x?xf64, #w>
        %found = scf.if %is -> (f64) {
          %value = lacis.value %w at %at : tensor<?x?xf64, #w> -> f64
          scf.yield %value : f64
        } else {
          %none = arith.constant 0.0 : f64
          scf.yield %none : f64
        }""",
    "seek": """
        %lo, %hi = lacis.bounds %w[1] at %row : tensor<?x?xf64, #w>
        %at = lacis.seek %w[1] from %lo to %hi of %j : tensor<?x?xf64, #w>
        %number = arith.subi %at, %lo : index
        %integer = arith.index_cast %number : index to i64
        %found = arith.sitofp %integer : i64 to f64""",
}
