# SPDX-License-Identifier: Apache-2.0
"""A training step of one layer at few tokens, where the host is what takes the time: eager, and in a CUDA graph."""

from __future__ import annotations

import lacis
import torch

from .host_time import host_times
from .measure import Case, measure
from .real_layers import captured
from .tile_training import layers

TITLE = "Training step of one layer, eager and in a CUDA graph: 4096², 90 % zeros, 1024 tokens, bf16"
SIZE, SPARSITY, TOKENS = 4096, 0.9, 1024
# What the eager step must be, in times of the dense layer's.
MUST = {128: 1.0, 64: 1.0, 32: 0.9, 16: 1.0}
BURST = 20  # steps that the host hands over before it waits


def step(layer, x: torch.Tensor, dy: torch.Tensor):
    """Forward and backward as training loops call them; gradients are made anew, as after `zero_grad()`."""
    tensors = [x, *layer.parameters()]

    def run():
        layer(x).backward(dy)
        for tensor in tensors:
            tensor.grad = None

    return run


def burst(run):
    """Many steps in a row: the time a step is the host's, or the device's, whichever is longer."""
    return lambda: [run() for _ in range(BURST)]


def eager(contenders: dict) -> dict[str, float]:
    return {name: ms / BURST for name, ms in measure({n: burst(f) for n, f in contenders.items()}, "cuda").items()}


def cases(block: int) -> list[Case]:
    sparse, dense = layers(block, SPARSITY, SIZE)
    x, dy = (torch.randn(TOKENS, SIZE, device="cuda").bfloat16() for _ in range(2))
    x.requires_grad_()
    steps = {"lacis": step(sparse, x, dy), "torch dense": step(dense, x, dy)}
    found = [Case(f"block {block}, eager{way(sparse, x, dy)}", eager(steps), f"≥ {MUST[block]}")]
    replays = {name: captured(run) for name, run in steps.items()}
    return [*found, Case(f"block {block}, CUDA graph", measure(replays, "cuda", flush=True))]


def way(layer, x: torch.Tensor, dy: torch.Tensor) -> str:
    """Says so where a step is not served by bound calls all through."""
    made, ran = [], []
    sparse = next(each for each in layer.modules() if isinstance(each, lacis.nn.SparseModule))
    sparse(x).backward(dy)
    quick, bound = sparse._quick_steps, type(sparse._quick_steps._last.found())
    general = bound.general
    sparse._quick_steps = lambda x: made.append(quick(x)) or made[-1]
    bound.general = lambda *arguments: ran.append(True) or general(*arguments)
    try:
        sparse(x).backward(dy)
    finally:
        sparse._quick_steps, bound.general = quick, general
    return " (forward by the general way)" * (made[-1] is None) + " (backward by the general way)" * bool(ran)


def host(device: str) -> Case:
    """What a step costs the host alone: a layer of 16 features and 4 tokens."""
    dense, x = torch.nn.Linear(16, 16, device=device), torch.randn(4, 16, device=device, requires_grad=True)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16, device=device))
    schedule = lacis.create_schedule(model)
    schedule["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    dy = torch.randn(4, 16, device=device)
    steps = {"lacis": step(schedule.build(), x, dy), "torch dense": step(dense, x, dy)}
    times = {name: us / 1e3 for name, us in host_times(steps, device).items()}
    return Case(f"host of the {device}: 16×16 CSR with bias, float32, 4 tokens", times, "≥ 1.0")


def run() -> list[Case]:
    found = [host(device) for device in ["cpu"] + ["cuda"] * torch.cuda.is_available()]
    if torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0):
        found += [case for block in MUST for case in cases(block)]
    return found
