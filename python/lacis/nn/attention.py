# SPDX-License-Identifier: Apache-2.0
"""Attention of a model's modules on a pattern: what they ask of torch is answered by `lacis.attention`."""

from __future__ import annotations

import contextlib
import copy
import types

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from ..errors import DataError, ScheduleError
from ..formats import Bsr, Sum
from .changes import as_autocast, changes_of, in_turn, written_out
from .flex import FlexCall, answered, kept, operator, outside_graphs, seen
from .hugging_face import Opened, last_opened
from .recomputed import entered_again
from .rule_patterns import RulePatterns
from .standing import NOT_LAST, Standing, along_sequence
from .watched import watching

_HOW = (
    "call F.scaled_dot_product_attention or flex_attention there; models of transformers do, or look attention up "
    "by their config's attn_implementation"
)
_RULE = "call sparsify(lacis.BigBird()) on it"


class Door:
    """What a scheduled module's calls of attention go through."""

    def __init__(self, site, target: str):
        self.name, self.location, self.target = site.name, site.location, target
        self.names = [site.name]  # all of the module
        self.module, self.made, self.encoders = None, None, []  # weakly; its class while open; encoders around it
        self.rule = site.sparsifier
        self.score = next((step.function for step in site.of("score")), None)
        self.steps = {"forward": site.loop_steps, **site.kernel_steps}
        self.calls, self.hook, self.kernels = 0, None, None
        self.watches, self.in_graph = False, False  # compiled parts of its module, which count no calls; saw attention
        self.exported: dict = {}  # kernels of exported programs by their keys
        self.configured: list[tuple] = []  # what looks attention up in it, and its configurations before and while open
        if self.rule is None:
            self._require_blocks(site)
            return
        self.format = site.format()
        if isinstance(self.format, Sum):
            self.refuse("a sum has no code for attention yet; take one format")
        self.format.require_code("attention")
        self.block = tuple(self.format.tile) if len(self.format.tile) == 2 else site.block_size
        if self.block is None:
            self.block = self.rule.sides(self.rule.block)
        if self.rule.blocks is not None:
            self._require_lists()
        self.rule = copy.copy(self.rule)
        self.rule.block = self.block[0] if self.rule.blocks is not None else self.block
        self.patterns = RulePatterns(self.rule, self.format, self.block, self.refuse)

    def refuse(self, reason: str):
        raise ScheduleError(f"'{self.name}': {reason}", location=self.location)

    def _require_blocks(self, site) -> None:
        """Without a rule the pattern is that of the call's BlockMask, in blocks of its own sides."""
        if any(not isinstance(step.format, Bsr) for step in site.of("set_format")):
            self.refuse(f"has a format, but no rule; {_RULE}, or take set_format(lacis.Bsr) for a BlockMask's blocks")
        self.block = site.block_size

    def _require_lists(self) -> None:
        """A rule that follows the data makes lists of square blocks."""
        levels = self.format.levels
        listed = len(levels) == 4 and levels[0].extent.covers and levels[1].padded and len(self.format.tile) == 2
        if not listed or self.block[0] != self.block[1]:
            self.refuse(
                f"'{type(self.rule).__name__}' follows the queries and keys and makes lists of square blocks; take "
                "set_format(lacis.BlockedEll)"
            )

    def run(self, forward, args, kwargs):
        """The module's own forward, with its calls of attention on the pattern."""
        if torch.compiler.is_compiling():  # a graph would be of the number of calls
            try:  # torch ends no graph in the midst of it, so that what is no one graph runs below, outside of graphs
                return self._run(forward, args, kwargs)
            except ScheduleError:
                raise
        before, watched, self.watches = self.calls, self.watches, True
        try:
            with seen():
                result = outside_graphs(self._run, forward, args, kwargs)
        finally:
            self.watches = watched
        if self.calls == before and not self.in_graph:
            self.refuse(f"the module asked for no attention in its forward; {_HOW}")
        return result

    def _run(self, forward, args, kwargs):
        given = (*args, *kwargs.values())
        with _Calls(self), seen(), Opened(self, given), entered_again(self._open, given):
            return forward(*args, **kwargs)

    @contextlib.contextmanager
    def _open(self, given):
        """What a recomputation runs in."""
        with _Calls(self), seen(), Opened(self, given):
            yield

    def _count(self) -> None:
        if not torch.compiler.is_compiling():
            self.calls += 1
        elif self.watches:
            self.in_graph = True

    def attend(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        """`F.scaled_dot_product_attention` on the pattern."""
        self._count()
        if self.rule is None:
            self.refuse(f"has a format, but no rule, and its attention no BlockMask; {_RULE}")
        if query.ndim not in (3, 4):
            self.refuse(f"attention of queries {list(query.shape)} has no code; they are [B, H, S, D] or [B, S, D]")
        mask, is_causal = written_out(attn_mask, is_causal, query.device)
        *operands, mask = as_autocast(query, key, value, mask)
        q, k, v = (x if x.ndim == 4 else x[:, None] for x in operands)
        if k.shape[1] not in (1, q.shape[1]) and not enable_gqa:
            self.refuse(f"queries have {q.shape[1]} heads, keys {k.shape[1]}, without enable_gqa")
        changes = changes_of(mask, q, k, query.ndim)
        options = {"causal": is_causal, "scale": scale, "dropout": dropout_p, "score": self.score}
        found = self._run_on(q, k, v, self.patterns.of(q, k), **options, **changes)
        return found if query.ndim == 4 else found[:, 0]

    def attend_flex(self, query, key, value, *given):
        """The operator of `flex_attention` on the pattern; `given` is what it has besides tensors."""
        self._count()
        call = FlexCall.of(*given[:4])
        if call.why_not is not None:
            self.refuse(call.why_not)
        query, key, value = as_autocast(query, key, value)
        k, v = (x.expand(query.shape[0], -1, -1, -1) if x.shape[0] == 1 else x for x in (key, value))
        pattern, mask = call.blocks, None
        if self.rule is not None:
            pattern, mask = self.patterns.of(query, k), kept(call.blocks, query)
        elif call.blocks is None:
            self.refuse(f"has no rule, and its flex_attention no block_mask; {_RULE}")
        elif self.block not in (None, call.blocks.BLOCK_SIZE):
            sides = call.blocks.BLOCK_SIZE
            self.refuse(f"its BlockMask has blocks of {sides}, the schedule of {self.block}; leave the sides out")
        options = {"scale": call.scale, "score": in_turn(call.score, self.score), "mask": mask, "return_lse": True}
        return answered(*self._run_on(query, k, v, pattern, **options))

    def attend_configured(self, query, key, value, mask, score, bias, options, standing: Standing, before: int | None):
        """What a model of transformers looks up by name, on the pattern; `before` as many queries as are known."""
        self._count()
        query, key, value = as_autocast(query, key, value)
        if self.rule is None and (mask is None or isinstance(mask, torch.Tensor)):
            self.refuse(f"has a format, but no rule, and its attention no BlockMask; {_RULE}")
        pattern, changes = mask, {}
        if self.rule is not None:
            pattern = self.patterns.of(query, key, standing)
            blocks = mask is not None and not isinstance(mask, torch.Tensor)
            changes = {"mask": kept(mask, query)} if blocks else changes_of(mask, query, key, 4)
        if bias is not None:
            changes["bias"] = bias + changes["bias"] if "bias" in changes else bias
        options = {**options, **changes, "score": in_turn(score, self._score_of(query, key, before))}
        return self._run_on(query, key, value, pattern, **options)

    def _score_of(self, q, k, before: int | None):
        """The schedule's function, which counts queries along their sequence."""
        if self.score is not None and before is None:
            self.refuse(NOT_LAST.format(q.shape[2], k.shape[2], "its score"))
        return along_sequence(self.score, q, before) if self.score and before else self.score

    def _run_on(self, q, k, v, pattern, **options):
        """The call, whose kernels are kept for who looks at them."""
        import lacis

        leaves_python = torch.compiler.is_exporting() and not torch.compiler.is_dynamo_compiling()
        if torch.compiler.is_compiling() and not leaves_python:
            return lacis.attention(q, k, v, pattern, target=self.target, steps=self.steps, **options)
        try:
            with watching() as seen:
                found = lacis.attention(q, k, v, pattern, target=self.target, steps=self.steps, **options)
        except DataError as error:
            self.refuse(str(error))
        if leaves_python:
            self.exported |= {each["exported"].key: each["exported"] for each in seen}
        else:
            self.kernels = seen[-1] if seen else None
        return found

    def kernels_of(self):
        """Those of the last call; raises `ScheduleError` where there are none."""
        if not self.calls:
            self.refuse("has no kernels before its first call; run the model once")
        if self.kernels is None:
            self.refuse(
                "its attention ran statement by statement, not as one kernel; docs/attention.md says what one takes"
            )
        return self.kernels

    def attend_heads(self, *args, need_weights: bool = True, **kwargs):
        """`F.multi_head_attention_forward`, torch's own text with the one call in it going through here."""
        if need_weights:
            self.refuse("the module asks for attention weights, of which only sums are left; give need_weights=False")
        return _heads(*args, need_weights=False, **kwargs)

    def require_called(self) -> None:
        """Raise `ScheduleError` where the example of `build` did not come here."""
        if not self.calls:
            self.refuse("the model did not call this module on the example of build(); name the one that it calls")

    def notes(self) -> list[str]:
        """What the report says of it."""
        ran = f"{self.calls} calls" if self.calls else "it was not called"
        return [f"'{self.name}' attends on {self.rule or 'its BlockMask'}: {ran}"]

    def __getstate__(self):
        of_this = {"module": None, "made": None, "encoders": [], "hook": None, "configured": []}
        return {**self.__dict__, **of_this, "kernels": None, "exported": {}}


def _never(operands) -> bool:
    return False


def _asked(*args, **kwargs):
    """What torch's own text calls, inside of the module that was opened last."""
    return last_opened().door.attend(*args, **kwargs)


def _check_padding(mask: torch.Tensor, length: int, batch: int) -> None:
    """Torch's own has the mask in its words, of which dynamo makes no graph."""
    if mask.shape != (batch, length):
        raise DataError(f"key_padding_mask: a tensor [{batch}, {length}] is needed, not {list(mask.shape)}")


def _text_of_torch():
    """`F.multi_head_attention_forward` with globals of its own, which dynamo looks up by no name of a module."""
    whole = F.multi_head_attention_forward
    # A module around this one looks for calls, too, and does not get this one.
    known = {**whole.__globals__, "scaled_dot_product_attention": _asked, "has_torch_function": _never}
    known["_check_key_padding_mask"] = _check_padding
    del known["__name__"]
    return types.FunctionType(whole.__code__, known, whole.__name__, whole.__defaults__, whole.__closure__)


_heads = _text_of_torch()


class _Calls(TorchFunctionMode):
    """Sees what torch is asked for while a module runs."""

    def __init__(self, door: Door):
        super().__init__()
        self.door = door

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is F.scaled_dot_product_attention:
            return self.door.attend(*args, **(kwargs or {}))
        if func is F.multi_head_attention_forward:
            return self.door.attend_heads(*args, **(kwargs or {}))
        if func is operator:
            return outside_graphs(self.door.attend_flex, *args)
        return func(*args, **(kwargs or {}))
