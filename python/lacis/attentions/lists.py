# SPDX-License-Identifier: Apache-2.0
"""Lists of blocks of keys that are made on the device, as patterns: two kernels, for which nobody waits.

Arrays are sized by the shape of the lists alone, so a CUDA graph has them, and lists of another content take the same
kernels of attention.
"""

from __future__ import annotations

import functools

import torch

from ..emit.block_lists import columns_of_lists, ordered_lists
from ..formats import Format
from ..patterns import Pattern
from ..patterns.structure import Structure
from ..runtime import library
from ..runtime.kernels import compile_on

_ROWS = (
    "(h, i, j) -> (h : dense, i floordiv {0} : dense, j floordiv {1} : packed<?>, i mod {0} : dense, j mod {1} : dense)"
)
_COLUMNS = (
    "(h, j, i) -> (h : dense, j floordiv {1} : dense, i floordiv {0} : var2*crd, j mod {1} : dense, i mod {0} : dense)"
)


def pattern_of_lists(lists: torch.Tensor, heads: tuple[int, int], shape: tuple[int, int], sides) -> Pattern:
    """The pattern [B * H, Sq, Sk] of int32 or int64 lists [B | 1, H | Hk | 1, nq, K] in any order.

    Numbers of no block count as none, a number that is there twice counts once.

    >>> lists = torch.tensor([[[[2, 0, 2], [-1, 1, 9]]]])
    >>> pattern_of_lists(lists, (1, 1), (4, 6), (2, 2)).storage["crd2"].tolist()
    [[0, 2, -1], [1, -1, -1]]
    """
    batch, count = heads
    rows, width = lists.shape[2:]
    operands = [lists, _numbers(-(-shape[1] // sides[1]), lists.device)]
    with torch.no_grad():
        crd = library.einsum(operands, [], [batch, count, rows, width], _ordered(lists.dtype, lists.device))
    return _pattern(_ROWS, sides, (batch * count, *shape), {"crd2": crd.view(batch * count * rows, width)})


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
    heads, rows, columns = pattern.shape
    crd = pattern.part().buffers["crd2"]
    sizes = [heads, -(-columns // tile[1])]
    given = crd.view(heads, -(-rows // tile[0]), crd.shape[-1])
    with torch.no_grad():
        made, lo, hi = library.chain(
            [given], [], list(given.shape), _columns(crd.device), [], [(sizes, torch.int32), (sizes, torch.int32)]
        )
    arrays = {"lo2": lo.view(-1), "hi2": hi.view(-1), "crd2": made.view(-1)}
    return _pattern(_COLUMNS, tile, (heads, columns, rows), arrays)


def _pattern(text: str, sides, shape, arrays: dict[str, torch.Tensor]) -> Pattern:
    format, crd = _format(text, tuple(sides)), arrays["crd2"]
    made = Pattern(format, {"": Structure(format, shape, arrays, crd.numel(), crd.device)})
    made.uneven = (False,) * 3  # to count would wait for the device
    return made


@functools.cache
def _format(text: str, sides: tuple[int, int]) -> Format:
    return Format.parse(text.format(*sides))


@functools.lru_cache(maxsize=64)
def _numbers(count: int, device: torch.device) -> torch.Tensor:
    """Says to a kernel how many blocks there are, by its length."""
    return torch.empty(count, dtype=torch.int32, device=device)


@functools.cache
def _ordered(dtype: torch.dtype, device: torch.device) -> str:
    return compile_on(ordered_lists(64 if dtype == torch.int64 else 32, device.type != "cpu"), device).key


@functools.cache
def _columns(device: torch.device) -> str:
    return compile_on(columns_of_lists(device.type != "cpu"), device).key
