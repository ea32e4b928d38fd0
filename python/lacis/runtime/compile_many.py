# SPDX-License-Identifier: Apache-2.0
"""Compiles einsums side by side."""

from __future__ import annotations

import concurrent.futures
import os

from ..capture import kind_of
from ..errors import user_location
from .call import Call
from .compile import EinsumKernel, load_anywhere, load_kernels


def compile_many(requests, target: str = "auto") -> list[EinsumKernel]:
    """Compile in parallel threads; each request is a tuple `(expression, *operands)`."""
    location = user_location()
    calls = [Call(expression, operands, location, kind=kind_of(target)) for expression, *operands in requests]
    workers = max(1, min(len(calls), os.cpu_count() or 1))
    with concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="lacis-compile") as pool:
        loaded = pool.map(lambda call: load_kernels(call, target, load_anywhere), calls)
        return [EinsumKernel(call, kernels) for call, kernels in zip(calls, loaded)]
