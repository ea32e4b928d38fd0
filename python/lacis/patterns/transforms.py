# SPDX-License-Identifier: Apache-2.0
"""What follows from a pattern is made outside of the transforms of `torch.func`, for it outlives them."""

from __future__ import annotations

import contextlib

import torch

from ..errors import DataError

is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor


@contextlib.contextmanager
def outside_transforms(tensors, what: str):
    """Run the body as if no transform were active; raise `DataError` where the tensors themselves are in one.

    `torch.func.stack_module_state` stacks the patterns of several models, of which nothing can be made at once.
    """
    if any(map(is_wrapped, tensors)):
        raise DataError(
            f"{what} cannot be made of several patterns at once; run each model once with gradients, or call .train() "
            "of each, before torch.func.stack_module_state"
        )
    with torch._C._DisableFuncTorch():
        yield
