# SPDX-License-Identifier: Apache-2.0
"""Lists of blocks of keys that are made on the device, as patterns: one kernel, for which nobody waits.

Arrays are sized by the shape of the lists alone, so a CUDA graph has them, and lists of another content take the same
kernels of attention.
"""

from __future__ import annotations

import functools

import torch

from ..emit.block_lists import block_lists
from ..formats import Format
from ..patterns import Pattern
from ..patterns.structure import Structure
from ..runtime.bound import BoundCall, run
from ..runtime.kernels import compile_on
from .kept import keep_columns

_ROWS = (
    "(h, i, j) -> (h : dense, i floordiv {0} : dense, j floordiv {1} : packed<?>, i mod {0} : dense, j mod {1} : dense)"
)
_COLUMNS = (
    "(h, j, i) -> (h : dense, j floordiv {1} : dense, i floordiv {0} : var2*crd, j mod {1} : dense, i mod {0} : dense)"
)
_CHUNK = 4  # numbers of 32 bits in the 16 bytes at whose multiples kernels read arrays


def pattern_of_lists(
    lists: torch.Tensor, heads: tuple[int, int], shape: tuple[int, int], sides: tuple[int, int], columns: bool = False
) -> Pattern:
    """The pattern [B * H, Sq, Sk] of int32 or int64 lists [B | 1, H | Hk | 1, nq, K] in any order.

    Numbers of no block count as none, a number that is there twice counts once. With `columns` the same launch makes
    what `columns_of` would, kept beside the pattern.

    >>> lists = torch.tensor([[[[2, 0, 2], [-1, 1, 9]]]])
    >>> pattern_of_lists(lists, (1, 1), (4, 6), (2, 2)).storage["crd2"].tolist()
    [[0, 2, -1], [1, -1, -1]]
    """
    made, by_columns = _patterns(lists, heads, shape, sides, columns)
    if by_columns is not None:
        keep_columns(made, by_columns)
    return made


def columns_of(pattern: Pattern) -> Pattern | None:
    """The rows of each column of such a pattern, as a pattern [B * H, Sk, Sq]; None of any other.

    >>> lists = torch.tensor([[[[0, 1], [1, -1]]]])
    >>> made = columns_of(pattern_of_lists(lists, (1, 1), (4, 4), (2, 2)))
    >>> made.storage["lo2"].tolist(), made.storage["hi2"].tolist(), made.storage["crd2"][:3].tolist()
    ([0, 1], [1, 3], [0, 0, 1])
    """
    tile = pattern.format.tile
    if len(pattern.shape) != 3 or len(tile) != 2 or pattern.format is not _format(_ROWS, tile):
        return None
    heads, *shape = pattern.shape
    crd = pattern.part().buffers["crd2"]
    lists = crd.view(1, heads, -(-shape[0] // tile[0]), crd.shape[-1])
    return _patterns(lists, (1, heads), shape, tile, columns=True)[1]


def _patterns(lists, heads, shape, sides, columns: bool) -> tuple[Pattern, Pattern | None]:
    """By rows and, where they are wanted, by columns."""
    call = _bound(lists.shape, lists.dtype, lists.device, *heads, *shape, sides, columns)
    with torch.no_grad():
        return call(lists)


class _Bound:
    """The kernel, bound to all but lists of one shape, and where its output has which array."""

    def __init__(self, given, dtype, device, batch: int, heads: int, height: int, width: int, sides, columns: bool):
        rows, kept, count = *given[2:], -(-width // sides[1])
        above = batch * heads
        all_kept, all_columns = above * rows * kept, above * count
        room, ends = (-(-n // _CHUNK) * _CHUNK for n in (all_kept, all_columns))
        self._rows = (above * rows, kept), (kept, 1)
        bounds = [("lo2", all_columns, 2 * room), ("hi2", all_columns, 2 * room + ends)]
        self._columns = [*bounds, ("crd2", all_kept, room)] if columns else []
        self._slots, self._device = all_kept, device
        self._by_rows = _format(_ROWS, sides), (above, height, width)
        self._by_columns = _format(_COLUMNS, sides), (above, width, height)
        sizes = torch.empty(batch, heads, count, int(columns), 0, dtype=torch.int32, device=device)
        bits = 64 if dtype == torch.int64 else 32
        key = compile_on(block_lists(bits, device.type != "cpu"), device).key
        self._call = BoundCall([sizes], key, (), len(given), [2 * (room + ends) if columns else room])

    def __call__(self, lists: torch.Tensor) -> tuple[Pattern, Pattern | None]:
        made = run()(lists, self._call.number)
        by_rows = self._pattern(*self._by_rows, {"crd2": made.as_strided(*self._rows)})
        if not self._columns:
            return by_rows, None
        arrays = {name: made.as_strided((count,), (1,), start) for name, count, start in self._columns}
        return by_rows, self._pattern(*self._by_columns, arrays)

    def _pattern(self, format: Format, shape, arrays: dict[str, torch.Tensor]) -> Pattern:
        structure = Structure(format, shape, arrays, self._slots, self._device)
        pattern = Pattern(format, {"": structure}, token="")  # who made it has no name for it: each call makes another
        pattern.uneven = (False,) * 3  # to count would wait for the device
        return pattern


_bound = functools.lru_cache(maxsize=64)(_Bound)


@functools.cache
def _format(text: str, sides: tuple[int, int]) -> Format:
    return Format.parse(text.format(*sides))
