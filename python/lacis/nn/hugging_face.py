# SPDX-License-Identifier: Apache-2.0
"""Attention that models of transformers look up by the name in their configuration: its call, answered by a door."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable

import torch

from .standing import Standing

NAME = "lacis"
_TAKEN = ("sdpa", "eager", "flex_attention")  # whose masks are of every pair, or a BlockMask
_OTHERS = ("sinks", "indices", "block_indices")  # what a few models ask of kernels of their own
_open = threading.local()


class Opened:
    """The doors of a thread, of which the last answers, and what its module was given."""

    def __init__(self, door, given):
        self.door, self.given = door, given

    def __enter__(self):
        self.before = getattr(_open, "last", None)
        _open.last = self
        register()

    def __exit__(self, *_):
        _open.last = self.before


def register() -> None:
    """Make the name known to transformers, where it is there."""
    loaded = _loaded()
    if loaded is not None and loaded.ALL_ATTENTION_FUNCTIONS.get(NAME) is not _answered:
        loaded.AttentionInterface.register(NAME, _answered)


def _loaded():
    """transformers' own module, where it is loaded and new enough to have a registry."""
    loaded = sys.modules.get("transformers.modeling_utils")
    return loaded if hasattr(loaded, "AttentionInterface") else None


def configured(module: torch.nn.Module, refuse: Callable) -> list[tuple]:
    """The modules inside that look attention up, with their configurations and such that name ours; none is changed.

    A module that makes the masks of others keeps its own, which says what masks they get.
    """
    loaded, found = _loaded(), []
    for each in module.modules() if loaded is not None else ():
        config = vars(each).get("config")
        before = getattr(config, "_attn_implementation", None)
        if before is None or before == NAME or isinstance(each, loaded.PreTrainedModel):
            continue
        if before not in _TAKEN:
            refuse(f"attn_implementation='{before}' has masks of its own; load it with one of {', '.join(_TAKEN)}")
        made = copy.copy(config)
        made._attn_implementation = {"": NAME}  # a name alone would reach the configurations inside, which are shared
        made.lacis_masks_of = before
        found.append((each, config, made))
    return found


def _answered(module, query, key, value, attention_mask=None, **given) -> tuple[torch.Tensor, None]:
    """What transformers calls: [B, H, S, D] in, [B, S, H, D] out."""
    last = getattr(_open, "last", None)
    if last is None:
        raise RuntimeError(
            f"{type(module).__name__} was called past the module that a schedule of lacis names; call that one, or "
            "restore() the model"
        )
    said = _said(last.door, module, query, attention_mask, given)
    fewer = query.shape[2] < key.shape[2]
    standing = _standing(last.given, module, key) if fewer else Standing.UNSAID
    found = last.door.attend_configured(query, key, value, *said, standing=standing)
    return found.transpose(1, 2).contiguous(), None


def _standing(given, module, key: torch.Tensor) -> Standing:
    """Are the keys all of a sequence that came through a cache, so that the queries are its last?

    One of a fixed length is none of these: it holds places for keys that are to come.
    """
    caches = sys.modules.get("transformers.cache_utils")
    if caches is None:
        return Standing.UNSAID
    cache = next((each for each in given if isinstance(each, caches.Cache)), None)  # its name differs between versions
    mine = getattr(cache, "self_attention_cache", cache)  # of encoder and decoder two, of which a call does not say
    if mine is None or (mine is not cache and isinstance(mine, caches.DynamicCache)):
        return Standing.UNSAID
    number = getattr(module, "layer_idx", None)
    grows = isinstance(mine, caches.DynamicCache) and number is not None
    return Standing.LAST if grows and mine.get_seq_length(number) == key.shape[2] else Standing.ELSEWHERE


def _said(door, module, query, mask, given: dict) -> tuple:
    """The mask, the score function, the bias, and all else that `lacis.attention` takes."""
    if given.get("output_attentions") or getattr(module.config, "output_attentions", False):
        door.refuse("the model asks for attention weights, of which only sums are left; leave output_attentions out")
    others = [name for name in _OTHERS if given.get(name) is not None]
    if others:
        door.refuse(f"its attention is given '{others[0]}', which has no code; leave the module out of the schedule")
    causal = given.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    skipped = module.config.lacis_masks_of == "sdpa" and mask is None  # the mask that says no more than `causal`
    options = {
        "causal": bool(causal and skipped and query.shape[2] > 1),
        "scale": given.get("scaling"),
        "dropout": given.get("dropout") or 0.0,
        "sink": given.get("s_aux"),
    }
    return mask, _capped(given.get("softcap")), given.get("position_bias"), options


def _capped(cap: float | None) -> Callable | None:
    return None if cap is None else lambda s, b, h, i, j: cap * torch.tanh(s / cap)
