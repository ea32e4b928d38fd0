# SPDX-License-Identifier: Apache-2.0
"""What one call costs the host: a built layer and its operators beside `nn.Linear` and a Triton kernel, at no work.

Called in a row, and alone after the caches were used by others, as they are by the rest of a model.
"""

from __future__ import annotations

import statistics
import time

import lacis
import torch

from .measure import Case

TITLE = "Host time of one call in inference mode, 16×16 CSR layer with bias, 4 tokens, float32"
CALLS, ROUNDS = 200, 50
OTHERS = 6 << 20  # numbers that others change between two calls: 24 MiB, more than the second-level cache of a core


def run() -> list[Case]:
    devices = ["cpu"] + ["cuda"] * torch.cuda.is_available()
    return [case(device, alone) for device in devices for alone in (False, True)]


def case(device: str, alone: bool) -> Case:
    dense, x = torch.nn.Linear(16, 16, device=device), torch.randn(4, 16, device=device)
    with torch.inference_mode():
        contenders = {**layer(device, x), "nn.Linear": lambda: dense(x), **triton(device, x)}
        times = host_times(contenders, device, alone)
    must = "operator ≤ 8 µs on the H200's host, layer ≤ nn.Linear" if device == "cuda" and not alone else ""
    return Case(f"{device}, alone" if alone else device, times, must, unit="µs")


def layer(device: str, x: torch.Tensor) -> dict:
    """The built layer; the operator that it calls, bound to its tensors; and the one that takes all of them anew."""
    model = torch.nn.Sequential(torch.nn.Linear(16, 16, device=device))
    schedule = lacis.create_schedule(model)
    schedule["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    schedule.build()
    built, kernel = model[0], schedule["0.weight"].kernel
    others, key = [built.bias, *kernel.arrays(schedule["0.weight"].packed)], kernel.key
    call = kernel.bind(others, key, [16, 16], 1, [16])
    tensors, sizes = [x, *others], [2, *x.shape[:-1], 16, 16, 16]
    bound, lists = torch.ops.lacis.einsum.bound, torch.ops.lacis.einsum.inference
    torch.testing.assert_close(bound(x, call.number), built(x))
    torch.testing.assert_close(lists(tensors, sizes, key), built(x))
    return {
        "lacis": lambda: built(x),
        "operator": lambda: bound(x, call.number),
        "operator, with lists": lambda: lists(tensors, sizes, key),
    }


def triton(device: str, x: torch.Tensor) -> dict:
    """An empty Triton kernel with as many arguments, and the allocation of its output."""
    if device == "cpu":
        return {}
    try:
        from .triton_kernel import launch
    except ImportError:
        return {}
    return {"Triton": lambda: launch(x, torch.empty_like(x))}


def host_times(contenders: dict, device: str, alone: bool = False) -> dict[str, float]:
    """Medians in microseconds a call, of turns so short that the queue of a device never fills.

    A turn has `CALLS` calls, or `alone` one, after `OTHERS` numbers were changed.
    """
    others, taken = torch.ones(OTHERS if alone else 0), {name: [] for name in contenders}
    calls, turns = (1, 10 * ROUNDS) if alone else (CALLS, ROUNDS)
    for turn in range(turns + 3):
        for name, function in contenders.items():
            if device == "cuda":
                torch.cuda.synchronize()
            others.add_(1)
            start = time.perf_counter()
            for _ in range(calls):
                function()
            if turn >= 3:
                taken[name].append((time.perf_counter() - start) / calls * 1e6)
    return {name: statistics.median(times) for name, times in taken.items()}
