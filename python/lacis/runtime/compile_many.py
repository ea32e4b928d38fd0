# SPDX-License-Identifier: Apache-2.0
"""Compiles einsums side by side."""

from __future__ import annotations

import concurrent.futures
import os

from ..capture import kind_of
from ..errors import user_location
from .call import Call
from .compile import EinsumKernel, load_anywhere, load_kernels

_KEYWORDS = {"steps", "semiring", "epilogue", "deterministic", "strict", "out_dtype"}


def compile_many(requests, target: str = "auto", **keywords) -> list[EinsumKernel]:
    """Compile in parallel threads; each request is a tuple `(expression, *operands)`.

    `keywords` are those of `lacis.compile`, the same for all: `steps`, `semiring`, `epilogue`, `deterministic`,
    `strict`, `out_dtype`.
    Kernels come in the order of the requests. Raises as `lacis.compile` does, for the first request that fails.

    >>> import lacis, torch
    >>> w, x = lacis.pack(torch.eye(3), lacis.Csr), torch.ones(2, 3)
    >>> forward, back = compile_many([("ij,bj->bi", w, x), ("ij,bi->bj", w, x)], strict=True)
    >>> back(w, x).sum()
    tensor(6.)
    """
    location = user_location()
    for name in keywords.keys() - _KEYWORDS:
        raise TypeError(f"compile_many: no keyword '{name}'; lacis.compile has {', '.join(sorted(_KEYWORDS))}")
    calls = [
        Call(expression, operands, location, kind=kind_of(target), **keywords) for expression, *operands in requests
    ]
    workers = max(1, min(len(calls), os.cpu_count() or 1))
    with concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="lacis-compile") as pool:
        loaded = pool.map(lambda call: load_kernels(call, target, load_anywhere), calls)
        return [EinsumKernel(call, kernels) for call, kernels in zip(calls, loaded)]
