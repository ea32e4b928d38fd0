# SPDX-License-Identifier: Apache-2.0
"""What attention takes as a pattern, as a `Pattern` with axes for the heads."""

from __future__ import annotations

import copy
import dataclasses
import functools
import sys
import weakref
from collections.abc import Callable

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from ..errors import DataError
from ..formats import Format
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.build import build_pattern, for_tensor
from ..patterns.mask import check_bool
from ..patterns.recent import RecentPatterns
from ..patterns.seen import changes
from ..patterns.structure import Structure
from ..patterns.uneven import uneven_axes
from ..sparsifiers import PatternRule
from .lists import pattern_of_lists

_GRID = Format.parse("(h, i, j) -> (h : dense, i : dense, j : compressed)")
_BLOCKS = "({h}i, j) -> ({h_}i floordiv {0} : dense, j floordiv {1} : compressed, i mod {0} : dense, j mod {1} : dense)"
_KEPT: weakref.WeakKeyDictionary[PatternRule, RecentPatterns] = weakref.WeakKeyDictionary()
_OF_LISTS = WeakTensorKeyDictionary()  # patterns of block masks by their `kv_indices`, then by shape


@dataclasses.dataclass
class Chosen:
    """A pattern [*lead, Sq, Sk], where `lead` is (B * H,), (H,) of one batch, or (B, H), and masks on it."""

    pattern: Pattern
    masks: list[Callable]

    @property
    def lead(self) -> tuple[int, ...]:
        return tuple(self.pattern.shape[:-2])

    @property
    def letters(self) -> str:
        return "bh"[-len(self.lead) :]

    def places(self, heads: int, coordinates) -> tuple:
        """(b, h, i, j) of the coordinates of entries."""
        *lead, i, j = coordinates
        b, h = lead if len(lead) == 2 else (lead[0] // heads, lead[0] % heads)
        return b, h, i, j


def choose(given, q: torch.Tensor, k: torch.Tensor) -> Chosen:
    """The pattern of `lacis.attention`, from all that it may be; q is [B, H, Sq, D], k [B, Hk, Sk, D].

    Raises `DataError` for what is no pattern, and for one of other lengths.
    """
    if isinstance(given, type) and issubclass(given, PatternRule):
        given = given()
    if isinstance(given, (Pattern, PackedTensor)):
        return Chosen(_of_pattern(given if isinstance(given, Pattern) else given.pattern, q, k), [])
    if isinstance(given, PatternRule):
        return _of_rule(given, q, k)
    if isinstance(given, torch.Tensor) and given.dtype == torch.bool:
        return Chosen(_of_layout(given, q, k), [])
    if isinstance(given, torch.Tensor) and given.dtype in (torch.int32, torch.int64):
        return Chosen(_of_lists(given, q, k), [])
    flex = sys.modules.get("torch.nn.attention.flex_attention")
    if flex is not None and isinstance(given, flex.BlockMask):
        return _of_block_mask(given, q, k)
    raise DataError(
        f"attention: a pattern is a lacis.Pattern, a rule like lacis.Causal(), a BlockMask of flex_attention, a bool "
        f"layout [H | 1, nq, nk], or int32 lists of blocks [B, H, nq, K], not {_said(given)}"
    )


def _said(given) -> str:
    return f"a tensor of {given.dtype}" if isinstance(given, torch.Tensor) else type(given).__name__


def _of_pattern(pattern: Pattern, q, k) -> Pattern:
    batch, heads, rows, columns = *q.shape[:3], k.shape[2]
    shape = tuple(pattern.shape)
    if pattern.device != q.device:
        raise DataError(f"attention: the pattern is on {pattern.device}, q on {q.device}; move one of them")
    if shape == (rows, columns):
        return pattern.batched([batch * heads], "h")
    if shape == (heads, rows, columns):
        return pattern if batch == 1 else pattern.batched([batch], "b")
    if shape == (batch, heads, rows, columns):
        return pattern
    raise DataError(
        f"attention: the pattern is {list(shape)}; for q {list(q.shape)} and k {list(k.shape)} it must be "
        f"[{rows}, {columns}], with [{heads}] or [{batch}, {heads}] before"
    )


def _of_rule(rule: PatternRule, q, k) -> Chosen:
    rows, columns = q.shape[2], k.shape[2]
    shape, made = (*q.shape[:3], columns), None
    if rule.blocks is not None:
        pattern = _of_lists(rule.blocks(q, k), q, k, (rule.block, rule.block), sound=True)
    else:
        said = _fields_of(rule)
        if rule.pure and not any(isinstance(field, _Seen) for _, field in said):
            rule = _first_of(_Said(type(rule), said, rule))

        def make():
            layout = rule.layout(q.shape[1], rows, columns, rule.block)
            pattern = _of_layout(layout, q, k, rule.sides(rule.block), name=type(rule).__name__)
            return pattern, rule.mask_of_shape(shape, rule.block, q.device)

        if rule not in _KEPT:
            _KEPT[rule] = RecentPatterns()
        pattern, made = _KEPT[rule].found((said, *shape, q.device), q.device, make)
    mask = rule.entry_mask(rows, columns, rule.block) if made is None else made
    return Chosen(pattern, [] if mask is None else [mask])


class _Seen:
    """A tensor as it is now; equal to itself until it changes."""

    def __init__(self, tensor: torch.Tensor):
        self.tensor, self.now = tensor, None if tensor.is_inference() else changes(tensor)

    def __eq__(self, other):
        return isinstance(other, _Seen) and self.tensor is other.tensor and self.now == other.now is not None

    def __hash__(self):
        return id(self.tensor)


def _fields_of(rule: PatternRule) -> tuple:
    """What its answers follow from, its tensors as they are now. What else it keeps to itself counts if it is pure."""
    found = []
    for name, value in vars(rule).items():
        if isinstance(value, torch.Tensor):
            found.append((name, _Seen(value)))
        elif name[0] != "_" or (rule.pure and name != "_token"):
            found.append((name, repr(value)))
    return tuple(found)


@dataclasses.dataclass(frozen=True)
class _Said:
    """A rule by what it says, of which its fields are all."""

    kind: type
    fields: tuple
    rule: PatternRule = dataclasses.field(compare=False)


@functools.lru_cache(maxsize=64)  # several for each of the layers of a model
def _first_of(said: _Said) -> PatternRule:
    """One rule for all that say the same, which nobody else can change: its patterns, and its mask as it was traced,
    serve a rule that is made anew at each call."""
    with torch.inference_mode(False):  # what it makes is for calls that record gradients, too
        return copy.deepcopy(said.rule)


def _of_block_mask(given, q, k) -> Chosen:
    block = given.BLOCK_SIZE if isinstance(given.BLOCK_SIZE, tuple) else (given.BLOCK_SIZE, given.BLOCK_SIZE)
    lists = given.kv_num_blocks, given.full_kv_num_blocks, given.full_kv_indices
    kept, key = _OF_LISTS.setdefault(given.kv_indices, {}), (*q.shape[:3], k.shape[2], q.device, block)
    seen, pattern = kept.get(key, ((), None))
    if pattern is None or any(mine is not other for mine, other in zip(seen, lists)):
        with torch.inference_mode(False):
            pattern = _of_layout(given.to_dense().bool(), q, k, block, name="BlockMask")
        kept[key] = lists, pattern
    noop = sys.modules["torch.nn.attention.flex_attention"].noop_mask
    return Chosen(pattern, [] if given.mask_mod is noop else [given.mask_mod])


def _of_layout(layout, q, k, block=None, name: str = "layout") -> Pattern:
    """The pattern of a bool layout [H | 1, nq, nk] or [B | 1, H | 1, nq, nk]."""
    if not isinstance(layout, torch.Tensor) or layout.dtype != torch.bool or layout.ndim not in (3, 4):
        raise DataError(f"attention: {name} must be bool [H | 1, nq, nk] or [B | 1, H | 1, nq, nk]")
    by_batch = layout if layout.ndim == 4 else layout[None]
    batch, heads, rows, columns = *q.shape[:3], k.shape[2]
    if by_batch.shape[0] not in (1, batch) or by_batch.shape[1] not in (1, heads):
        raise DataError(f"attention: {name} is {list(layout.shape)}, q has {batch} batches of {heads} heads")
    block = block or (_side(name, rows, layout.shape[-2]), _side(name, columns, layout.shape[-1]))
    grid = PatternRule.grid(rows, columns, block)
    if tuple(layout.shape[-2:]) != grid:
        raise DataError(f"attention: {name} has {list(layout.shape[-2:])} blocks, {rows} x {columns} have {list(grid)}")
    shared = by_batch.shape[:2] == (1, 1)
    mine = by_batch[0] if shared else by_batch.expand(batch, heads, *grid).reshape(-1, *grid)
    made = _blocks(mine.to(q.device), rows, columns, block, shared)
    return made.batched([batch * heads], "h") if shared else made


def _blocks(kept: torch.Tensor, rows: int, columns: int, block, shared: bool) -> Pattern:
    """Blocks where bool [H, nq, nk] says so; `shared` has no axis for the one head."""
    check_bool(kept)
    axes = list(torch.nonzero(kept, as_tuple=True))
    grid = build_pattern(for_tensor(_GRID, kept.shape), tuple(kept.shape), axes, distinct=True, counts=False)[0]
    pos, crd = grid.storage["pos2"], grid.storage["crd2"]
    level = 1 if shared else 2
    format = _format_of_blocks(tuple(block), shared)
    shape = (rows, columns) if shared else (len(kept), rows, columns)
    arrays = {f"pos{level}": pos, f"crd{level}": crd}
    made = Pattern(format, {"": Structure(format, shape, arrays, crd.numel(), crd.device)})
    if crd.device.type != "cpu":
        own = slice(1 if shared else 0, None)
        made.uneven = uneven_axes(kept.shape[own], axes[own], sides=(1, *block)[own])
    return made


@functools.lru_cache(maxsize=64)  # one for each size of a block, which the patterns of all lengths share
def _format_of_blocks(block: tuple[int, int], shared: bool) -> Format:
    return Format.parse(_BLOCKS.format(*block, h="" if shared else "h, ", h_="" if shared else "h : dense, "))


def _of_lists(lists, q, k, block=None, sound: bool = False) -> Pattern:
    """The pattern of lists of key blocks [B | 1, H | Hk | 1, nq, K]; -1 and what is there twice are padding.

    Other numbers of no block are refused where they are in memory of the host, else they are padding: nobody waits.
    """
    batch, heads, rows, columns = *q.shape[:3], k.shape[2]
    if not isinstance(lists, torch.Tensor) or lists.ndim != 4 or lists.dtype not in (torch.int32, torch.int64):
        raise DataError("attention: lists of blocks are int32 [B, H, nq, K]")
    if lists.shape[0] not in (1, batch) or lists.shape[1] not in (1, k.shape[1], heads):
        raise DataError(f"attention: the lists are {list(lists.shape)}, q has {batch} batches of {heads} heads")
    side = None if block else _side("the lists", rows, lists.shape[2])
    block = block or (side, side)
    height, count = PatternRule.grid(rows, columns, block)
    if lists.shape[2] != height:
        raise DataError(f"attention: the lists have {lists.shape[2]} blocks of queries, {rows} queries have {height}")
    if not sound and lists.device.type == "cpu" and bool(((lists < -1) | (lists >= count)).any()):
        raise DataError(f"attention: the lists name blocks of keys from 0 to {count - 1}, and -1 for none")
    given = lists.to(q.device), (batch, heads), (rows, columns), PatternRule.sides(block)
    return pattern_of_lists(*given, columns=torch.is_grad_enabled() and k.requires_grad)


def _side(name: str, length: int, count: int) -> int:
    """The side of so many blocks of a length: what divides it, else the power of two that gives as many."""
    if count and length % count == 0:
        return max(length // count, 1)
    side = 1
    while count and side * count < length:
        side *= 2
    if not count or -(-length // side) != count:
        raise DataError(f"attention: {name} has {count} blocks for a length of {length}; no side divides it so")
    return side
