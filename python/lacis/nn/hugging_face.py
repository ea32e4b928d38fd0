# SPDX-License-Identifier: Apache-2.0
"""Attention that models of transformers look up by the name in their configuration: its call, answered by a door."""

from __future__ import annotations

import copy
import inspect
import sys
import threading
from collections.abc import Callable

import torch

from .changes import capped
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


def last_opened() -> Opened | None:
    return getattr(_open, "last", None)


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
        if before is None or before == NAME or isinstance(each, loaded.PreTrainedModel) or _calls_torch(each):
            continue
        _require_taken(before, refuse)
        made = copy.copy(config)
        made._attn_implementation = {"": NAME}  # a name alone would reach the configurations inside, which are shared
        made.lacis_copy_of = config  # what its user sets later, and masks are made by
        found.append((each, config, made))
    return found


def _require_taken(implementation: str, refuse: Callable) -> None:
    if implementation not in _TAKEN:
        refuse(f"attn_implementation='{implementation}' has masks of its own; load it with one of {', '.join(_TAKEN)}")


def _calls_torch(module: torch.nn.Module) -> bool:
    """Does its forward call torch itself, where its configuration says so, without the registry?"""
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
    names = () if code is None else code.co_names
    return "scaled_dot_product_attention" in names and "ALL_ATTENTION_FUNCTIONS" not in names


def _answered(module, query, key, value, attention_mask=None, **given) -> tuple[torch.Tensor, None]:
    """What transformers calls: [B, H, S, D] in, [B, S, H, D] out."""
    last = last_opened()
    if last is None:
        raise RuntimeError(
            f"{type(module).__name__} was called past the module that a schedule of lacis names; call that one, or "
            "restore() the model"
        )
    said = _said(last.door, module, query, attention_mask, given)
    fewer = query.shape[2] < key.shape[2]
    looks = fewer or last.door.score is not None
    standing, before = _standing(last.given, module, query.shape[2], key) if looks else (Standing.UNSAID, 0)
    found = last.door.attend_configured(query, key, value, *said, standing=standing, before=before)
    return found.transpose(1, 2).contiguous(), None


def _standing(given, module, queries: int, key: torch.Tensor) -> tuple[Standing, int | None]:
    """Are the keys all of a sequence that came through a cache, so that the queries are its last? And how many queries
    came before; None where that is not known.

    One of a fixed length is none of these: it holds places for keys that are to come.
    """
    caches = sys.modules.get("transformers.cache_utils")
    kind = () if caches is None else caches.Cache
    cache = next((each for each in given if isinstance(each, kind)), None)  # its name differs between versions
    own, keys = getattr(cache, "self_attention_cache", cache), key.shape[2]
    number = getattr(module, "layer_idx", None)
    follows = own is not cache and _held(cache.cross_attention_cache, number) is key
    if cache is None or (queries >= keys and not follows):
        return Standing.UNSAID, 0
    length = _length(own, number)
    if own is not cache and not _meets_itself(module, cache, number, key):
        return Standing.UNSAID, None if length is None else length - queries
    return (Standing.LAST, keys - queries) if length == keys else (Standing.ELSEWHERE, None)


def _length(cache, number: int | None) -> int | None:
    """How many tokens a layer has had; None where a cache does not say, as one of a fixed length."""
    length = None if number is None else cache.get_seq_length(number)
    return None if isinstance(length, torch.Tensor) else length


def _held(cache, number: int | None) -> torch.Tensor | None:
    """The keys of a layer, where the cache has them as they are."""
    layers = getattr(cache, "layers", ()) if number is not None else ()
    return getattr(next(iter(layers[number:]), None), "keys", None)


def _meets_itself(module, cache, number: int | None, key: torch.Tensor) -> bool:
    """Are the keys those of the decoder, and not of the encoder? A decoder has a cache of each; False in doubt."""
    crosses = getattr(module, "is_cross_attention", None)
    if isinstance(crosses, bool):
        return not crosses
    both = cache.self_attention_cache, cache.cross_attention_cache
    for each in both:
        if _held(each, number) is key:
            return each is both[0]
    own, other = (_length(each, number) for each in both)
    return own == key.shape[2] != other


def _said(door, module, query, mask, given: dict) -> tuple:
    """The mask, the score function, the bias, and all else that `lacis.attention` takes."""
    config = module.config.lacis_copy_of
    _require_taken(config._attn_implementation, door.refuse)
    if given.get("output_attentions") or getattr(config, "output_attentions", False):
        door.refuse("the model asks for attention weights, of which only sums are left; leave output_attentions out")
    others = [name for name in _OTHERS if given.get(name) is not None]
    if others:
        door.refuse(f"its attention is given '{others[0]}', which has no code; leave the module out of the schedule")
    causal = given.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    skipped = config._attn_implementation == "sdpa" and mask is None  # the mask that says no more than `causal`
    options = {
        "causal": bool(causal and skipped and query.shape[2] > 1),
        "scale": given.get("scaling"),
        "dropout": given.get("dropout") or 0.0,
        "sink": given.get("s_aux"),
    }
    return mask, capped(given.get("softcap")), given.get("position_bias"), options
