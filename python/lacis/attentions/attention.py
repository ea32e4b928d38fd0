# SPDX-License-Identifier: Apache-2.0
"""`lacis.attention`: a sampled product, a softmax and a product, on one pattern."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from ..errors import DataError, ScheduleError
from ..nn.changes import as_autocast
from ..packing import PackedTensor
from ..patterns.transforms import is_transformed, is_wrapped, outside_transforms
from ..runtime.autocast import outside
from ..runtime.einsum import einsum
from ..schedule.steps import Step
from ..sparsifiers import PatternRule
from .arguments import check_functions, checked, checked_sink, require_operand, require_real
from .compiled import in_graph
from .dropout import Dropout, seed_of
from .exported import exported, require_constant
from .fibres import Fibres
from .fused import together
from .fused_kernels import ROLES
from .pages import sequences
from .patterns import Chosen, choose
from .scores import Positions, Scores, sequence_starts, window_sides
from .softmax import each, normalised, with_sink

_ROLES = ("forward", *ROLES.values())
_ONE = (
    "leave steps out, or take what one kernel takes: on a GPU half types, heads of up to 256 (for gradients 384 of "
    "keys and values together) and stored blocks of multiples of 64, or of 8, 16 or 32; not target='eager' "
    "(docs/attention.md)"
)


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    pattern,
    *,
    score=None,
    mask=None,
    causal: bool = False,
    window: int | tuple[int, int] | None = None,
    key_padding: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    sink: torch.Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    seed: int | torch.Tensor | None = None,
    cu_seqlens: torch.Tensor | None = None,
    cu_seqlens_k: torch.Tensor | None = None,
    page_table: torch.Tensor | None = None,
    empty: str = "zero",
    return_lse: bool = False,
    deterministic: bool = True,
    target: str = "auto",
    steps=(),
):
    """`softmax(q kᵀ * scale) v` over the entries of a pattern: [B, H, Sq, Dv], in the dtype of q.

    q [B, H, Sq, D], k [B, Hk, Sk, D], v [B, Hk, Sk, Dv], of one floating point dtype, any strides; Hk divides H.
    `pattern`: a `lacis.Pattern` [Sq, Sk], with [H] or [B, H] before; a `lacis.PatternRule`; a `BlockMask` of
    flex_attention, with its mask; a bool layout of blocks [H | 1, nq, nk], with [B] before; int32 or int64 lists of key
    blocks [B | 1, H | Hk | 1, nq, K], where -1 pads. A rule's pattern is made once for each shape, of which the last 64
    are kept; one that follows the data is made of each call's lists, on the device and without a wait.

    Scores change in this order, everything at the entries alone:
    `scale` (1 / sqrt(D) by default); `score(s, b, h, i, j)` and then `bias`, which broadcasts to [B, H, Sq, Sk];
    `key_padding` [B, Sk], added where it is floating point, else kept where it is not 0; `mask(b, h, i, j) -> bool`,
    `causal` (j <= i), `window` (so many keys before and after, or a pair), each -infinity where it says no. `score` and
    `mask` have the signatures of flex_attention; tensors that they capture take part in autograd.
    `sink` [H] is the score of one more key without a value. `dropout` drops shares after the softmax, by Philox bits
    of (seed, b, h, i, j): the same on every device and in the gradient; `seed` is drawn from torch where not given.
    `cu_seqlens` [n + 1] (keys: `cu_seqlens_k`) makes sequences side by side of one batch, which do not see each
    other; `causal` and `window` then count inside each.
    `page_table` int [B, n] says that k and v are pages [pages, page, Hk, D] of a cache, and which make up each
    sequence, -1 for none: Sk is n * page, in the order of the table, for the pattern and all else. They are gathered.

    A row without entries is 0 (`empty="nan"`: NaN), with gradient 0. `return_lse=True` returns the log of the sum of
    exponentials [B, H, Sq] too: natural log, float32 at least, -infinity where empty, differentiable. Half types are
    computed in float32 and rounded once. NaN in v reaches rows with masked entries, and on CPUs all rows of a stored
    block that has its key, too.

    >>> import lacis
    >>> q = k = v = torch.eye(2).reshape(1, 1, 2, 2)
    >>> attention(q, k, v, lacis.Causal(block=2), scale=1.0, target="eager")
    tensor([[[[1.0000, 0.0000],
              [0.2689, 0.7311]]]])

    On a CPU, and in half types on GPUs from sm_80 on, it is one kernel where a chain can say it, and its gradients are
    two (docs/attention.md), else each statement is a kernel of its own; all are deterministic, differentiable in q, k,
    v, `bias`, `sink` and what the functions capture, twice too.
    `steps` are those of the loops of its kernel, as `[lacis.steps.Pipeline("j0", 5)]`, completed by the default's rest;
    or a dict of lists, by kernel: "forward", "grad_query" and, of both keys and values, "grad_key_value".
    Raises `DataError` for operands and patterns that do not fit, `ScheduleError` for steps where there is no such
    kernel, `CompileError` for those that it cannot take.
    """
    steps = _checked_steps(steps)
    check_functions(score, mask, target)
    if page_table is not None:
        require_operand("q", q)
        require_real("key_padding", key_padding)
        if cu_seqlens is not None:
            raise DataError("attention: page_table and cu_seqlens exclude each other; a table has a batch for each")
        k, v, key_padding = sequences(k, v, page_table, key_padding, len(q))
    scale, dropout = checked(q, k, v, scale, dropout, empty)
    q, k, v = as_autocast(q, k, v)
    leaves_python = torch.compiler.is_exporting() and not torch.compiler.is_dynamo_compiling()  # torch 2.11 says both
    if leaves_python:
        require_constant(pattern, cu_seqlens)
        changes = Scores((*q.shape[:3], k.shape[2]), score, (), bias, key_padding)
        masks = _position_masks(q, k, causal, window, cu_seqlens, cu_seqlens_k)
        wants_lse = return_lse or sink is not None or empty == "nan"
        return exported(q, k, v, pattern, changes, masks if mask is None else [mask, *masks], scale, wants_lse, dropout)
    if torch.compiler.is_compiling():
        tensors = {"bias": bias, "key_padding": key_padding, "sink": sink, "seed": seed}
        tensors |= {"cu_seqlens": cu_seqlens, "cu_seqlens_k": cu_seqlens_k}
        options = {"scale": scale, "causal": causal, "window": window, "dropout": dropout}
        options |= {"empty": empty, "target": target}
        found = in_graph(q, k, v, pattern, tensors, options, {"score": score, "mask": mask}, steps)
        if found is not None:
            return found if return_lse else found[0]
    with outside(q.device.type):
        chosen = _chosen(pattern, q, k) if is_transformed() else choose(pattern, q, k)
        masks = [*_position_masks(q, k, causal, window, cu_seqlens, cu_seqlens_k), *chosen.masks]
        masks = masks if mask is None else [mask, *masks]
        changes = Scores((*q.shape[:3], k.shape[2]), score, masks, bias, key_padding)
        statements = _Statements(chosen, q, target)
        rounded = q.dtype if sink is None else statements.wide
        drop = Dropout(dropout, seed_of(seed, q.device)) if dropout else None
        found = together(statements, k, v, scale, changes, rounded, drop, steps)
        if found is not None:
            output, lse = found if sink is None else with_sink(*found, checked_sink(sink, q.shape[1]))
        else:
            _require_none(steps)
            shares, lse = statements.shares(k, scale, changes, sink)
            shares = statements.dropped(shares, drop)
            output = statements.product(shares, v)
        if empty == "nan":
            output = torch.where((lse == -math.inf)[..., None], math.nan, output)
    return (output.to(q.dtype), lse) if return_lse else output.to(q.dtype)


def _chosen(pattern, q, k) -> Chosen:
    """The pattern where a transform of torch looks on: made outside of it, for patterns outlive transforms."""
    given = _unwrapped(pattern) if isinstance(pattern, torch.Tensor) else pattern
    kind = pattern if isinstance(pattern, type) else type(pattern)
    follows_data = issubclass(kind, PatternRule) and pattern.blocks is not None
    like = [_unwrapped(x) if follows_data else (x.dtype, x.device, x.shape) for x in (q, k)]
    with outside_transforms((), "the pattern"):
        if not follows_data:
            like = [torch.empty((), dtype=dtype, device=device).expand(shape) for dtype, device, shape in like]
        return choose(given, *like)


def _unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    while is_wrapped(tensor):
        if torch._C._functorch.is_batchedtensor(tensor):
            raise DataError(
                "attention: the pattern follows the data, and torch.vmap has several; make its first axis one of B"
            )
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor.detach()


class _Statements:
    """The statements of attention on one pattern, in float32 at least."""

    def __init__(self, chosen: Chosen, q: torch.Tensor, target: str):
        self.chosen, self.q, self.target = chosen, q, target
        self.wide = torch.promote_types(q.dtype, torch.float32)
        self.letters = chosen.letters

    @property
    def fibres(self) -> Fibres:
        return Fibres(self.chosen.pattern, len(self.letters) + 1, self.target)

    def scores(self, q, k, scale: float, changes: Scores) -> PackedTensor:
        """Of operands with the first axes of the pattern."""
        z = self.letters
        scores = einsum(f"{z}ij,{z}id,{z}jd->{z}ij", self.chosen.pattern, q, k, target=self.target)
        scores = each(lambda s: s * scale, scores)
        if changes.any:
            scores = scores.map(lambda s, *where: changes(s, *self.chosen.places(self.q.shape[1], where)))
        return scores

    def shares(self, k, scale: float, changes: Scores, sink) -> tuple[PackedTensor, torch.Tensor]:
        """The softmax, and the log of its sums [B, H, Sq]."""
        heads = self.q.shape[1]
        scores = self.scores(self.led(self.q), self.led(k), scale, changes)
        fibres = self.fibres
        shape = self.q.shape[:3]
        if sink is not None:
            sink = checked_sink(sink, heads)[None, :, None].expand(shape).reshape(fibres.shape)
        shares, lse = normalised(fibres, scores, sink)
        return shares, lse.reshape(shape)

    def dropped(self, shares: PackedTensor, drop: Dropout | None) -> PackedTensor:
        """Shares of which some are 0, the others larger by what is missing."""
        if drop is None:
            return shares
        return shares.map(lambda p, *where: drop.of(p, self.chosen.places(self.q.shape[1], where)))

    def product(self, shares: PackedTensor, v: torch.Tensor) -> torch.Tensor:
        z = self.letters
        found = einsum(f"{z}ij,{z}je->{z}ie", shares, self.led(v), target=self.target)
        return found.reshape(*self.q.shape[:3], v.shape[-1])

    def led(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor [B, H | Hk, S, D] with the first axes of the pattern."""
        batch, heads = self.q.shape[:2]
        tensor = tensor.to(self.wide)
        if tensor.shape[1] != heads:
            groups = heads // tensor.shape[1]
            tensor = tensor[:, :, None].expand(-1, -1, groups, -1, -1).reshape(batch, heads, *tensor.shape[2:])
        return tensor.reshape(*self.chosen.lead, *tensor.shape[2:])


def _checked_steps(steps) -> dict[str, tuple[Step, ...]]:
    """By kernel, those that have some."""
    if type(steps) is tuple and not steps:
        return {}
    kept = {}
    for role, own in (steps if isinstance(steps, Mapping) else {"forward": steps}).items():
        if role not in _ROLES:
            raise ScheduleError(f"attention: no kernel is called {role!r}; 'steps' are of {', '.join(_ROLES)}")
        listed = hasattr(own, "__iter__") and not isinstance(own, (Step, str))
        own = tuple(own) if listed else (None,)
        if not all(isinstance(step, Step) and step.of_loops for step in own):
            raise ScheduleError(
                "attention: 'steps' is a list of records that speak of loops, as steps=[lacis.steps.Pipeline('j0', 5)]"
                ", or such a list for each kernel"
            )
        if own:
            kept[role] = own
    return kept


def _require_none(steps) -> None:
    """Raise `ScheduleError` for steps where no one kernel has their loops."""
    for first, *_ in steps.values():
        raise ScheduleError(
            f"{first.mnemonic}: attention runs statement by statement here, where no kernel takes "
            f"{first.describe()}; {_ONE}",
            location=first.location,
        )


def _position_masks(q, k, causal: bool, window, starts, starts_k) -> list:
    """Masks of positions, inside of sequences where there are several."""
    if starts_k is not None and starts is None:
        raise DataError("attention: cu_seqlens_k needs cu_seqlens")
    positions, masks = Positions(), []
    if starts is not None:
        if q.shape[0] != 1:
            raise DataError(f"attention: cu_seqlens is of one batch, q has {q.shape[0]}")
        name = "cu_seqlens" if starts_k is None else "cu_seqlens_k"
        of_q = sequence_starts("cu_seqlens", starts, q.shape[2], q.device)
        of_k = sequence_starts(name, starts if starts_k is None else starts_k, k.shape[2], q.device)
        if len(of_q) != len(of_k):
            raise DataError("attention: cu_seqlens and cu_seqlens_k must have equally many sequences")
        positions = Positions(of_q, of_q if starts_k is None else of_k, (q.shape[2], k.shape[2]))
        masks.append(positions.same_sequence)
    if causal:
        masks.append(positions.causal)
    if window is not None:
        masks.append(positions.window(*window_sides(window)))
    return masks
