# SPDX-License-Identifier: Apache-2.0
"""What was made of a pattern's arrays, kept for the next who asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .capturing import is_captured, own_capture, refuse_capture
from .transforms import outside_transforms


class Kept(dict):
    """What was made of the arrays of a pattern, by what it is.

    >>> import torch
    >>> from lacis.patterns import Pattern
    >>> pattern = Pattern.from_mask(torch.eye(2).bool(), "(i, j) -> (i : dense, j : compressed)")
    >>> kept, made = Kept(), []
    >>> [kept.found("rows", pattern, "a list of rows", lambda: made.append(1) or len(made)) for _ in range(2)]
    [1, 1]
    """

    def __init__(self):
        super().__init__()
        self._capture = own_capture()  # in which the pattern was made

    @property
    def is_of_graph(self) -> bool:
        """Was the pattern made in a CUDA graph, which makes its arrays anew where nobody counts?"""
        return self._capture is not None

    def found(self, key, pattern, what: str, make: Callable[[], Any], waits: Callable[[], bool] = lambda: True):
        """What `make` makes of the arrays, once; `what` names it where it cannot be made now, for it `waits`.

        What a CUDA graph makes of a pattern from elsewhere is not kept: it holds nothing before the graph runs. Of a
        pattern that it made itself it is kept, for that graph alone.
        """
        is_within = self._capture is None or self._capture is own_capture()
        if key in self and is_within:
            return self[key]
        captured = is_captured(pattern.device)
        if captured and waits():
            refuse_capture(pattern.device, f"{what} of a pattern")
        with outside_transforms(pattern.storage.values(), what), torch.inference_mode(False):  # gradients read it later
            made = make()
        if is_within and (not captured or self._capture is not None):
            self[key] = made
        return made
