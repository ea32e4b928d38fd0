# SPDX-License-Identifier: Apache-2.0
"""What `torch.utils.checkpoint` runs again in a backward pass runs with the doors that were open when it first ran."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable

import torch
from torch.utils import checkpoint


class _Open(threading.local):
    """What enters the doors that are open in this thread, the outermost first."""

    entries: tuple[Callable, ...] = ()


_open = _Open()


@contextlib.contextmanager
def entered_again(enter: Callable, given: tuple):
    """Inside, checkpoints recompute in the context `enter(given)`; tensors in `given` are not kept for it."""
    if torch.compiler.is_compiling():  # graphs recompute what was traced
        yield
        return
    _install()
    plain = tuple(each for each in given if not isinstance(each, torch.Tensor))
    before = _open.entries
    _open.entries = (*before, functools.partial(enter, plain))
    try:
        yield
    finally:
        _open.entries = before


def _again(function: Callable) -> Callable:
    """`function` with the doors that are open now."""
    entries = _open.entries
    if not entries:
        return function

    @functools.wraps(function, updated=())
    def again(*args, **kwargs):
        with contextlib.ExitStack() as stack:
            for enter in entries:
                stack.enter_context(enter())
            return function(*args, **kwargs)

    return again


@functools.cache
def _install() -> None:
    """Both kinds of checkpoint, where torch keeps what is to run again; without doors they are torch's own."""
    frame = checkpoint._CheckpointFrame.__init__
    forward = checkpoint.CheckpointFunction.forward

    def keep(self, recompute_fn, *args, **kwargs):
        frame(self, _again(recompute_fn), *args, **kwargs)

    def reentrant(ctx, run_function, *args):
        found = forward(ctx, run_function, *args)
        ctx.run_function = _again(run_function)
        return found

    checkpoint._CheckpointFrame.__init__ = keep
    checkpoint.CheckpointFunction.forward = staticmethod(reentrant)
