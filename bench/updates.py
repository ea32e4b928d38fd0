# SPDX-License-Identifier: Apache-2.0
"""What an update of a pattern costs, with the state of AdamW, and a step in which none is due."""

from __future__ import annotations

import statistics
import time

import lacis
import torch

from .measure import Case

TITLE = "Updates of a pattern, 768×3072 CSR at 90 %, float32, AdamW"
ROUNDS = 9


def run() -> list[Case]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    when = range(1, 10**6)
    policies = {
        "Regrow, random": lacis.Regrow(0.9, when),
        "Regrow, gradient": lacis.Regrow(0.9, when, grow="gradient"),
        "Magnitude, Ramp": lacis.Magnitude(lacis.Ramp(0.9, 0.95, when, power=1)),
    }
    cases = [Case(name, {"lacis": taken(policy, device)}, "≤ 60 ms on a CPU") for name, policy in policies.items()]
    idle = taken(lacis.Regrow(0.9, range(10**6, 10**6 + 1)), device, steps=2000)
    return [*cases, Case("nothing due", {"lacis": idle}, "≤ 0.02 ms")]


def taken(policy, device: str, steps: int = 1) -> float:
    """Milliseconds of `Updates.step`, the median."""
    model = torch.nn.Sequential(torch.nn.Linear(3072, 768, device=device))
    s = lacis.create_schedule(model)
    s["0.weight"].sparsify(policy).set_format(lacis.Csr)
    model = s.build()
    optimizer = torch.optim.AdamW(model.parameters())
    updates, x, times = s.attach(optimizer), torch.randn(64, 3072, device=device), []
    for _ in range(ROUNDS):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        now(device)
        start = time.perf_counter()
        for _ in range(steps):
            updates.step()
        times.append((now(device) - start) / steps)
    return statistics.median(times) * 1e3


def now(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()
