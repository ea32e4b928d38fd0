# SPDX-License-Identifier: Apache-2.0
"""What the cost model predicts of layers, beside what they take: see lacis.capture.cost."""

from __future__ import annotations

import lacis
import torch
from lacis.runtime.choice import path_of, predictions

from .measure import Case, measure

TITLE = "Predicted and measured: linear layers without bias"

CPU = [
    *((3072, 768, 128, zeros, 1, dtype) for dtype in (torch.float32, torch.bfloat16) for zeros in (0.7, 0.9, 0.95)),
    *((2048, 512, tokens, 0.9, 1, dtype) for dtype in (torch.float32, torch.bfloat16) for tokens in (8, 32, 512)),
]
GPU = [
    *((n, k, tokens, 0.9, 1, torch.float32) for n, k in ((4096, 4096), (3072, 768)) for tokens in (128, 1024, 8192)),
    *((4096, 4096, t, z, b, torch.bfloat16) for b in (128, 64, 32, 16) for z in (0.5, 0.9) for t in (512, 4096)),
]


def run() -> list[Case]:
    if torch.cuda.is_available():
        return [case("cuda", *each) for each in GPU]
    return [case("cpu", *each) for each in CPU]


def case(device: str, rows: int, columns: int, tokens: int, zeros: float, block: int, dtype) -> Case:
    model = torch.nn.Sequential(torch.nn.Linear(columns, rows, bias=False, device=device, dtype=dtype))
    s = lacis.create_schedule(model)
    if block == 1:
        s["0.weight"].sparsify(lacis.Random(zeros, seed=0)).set_format(lacis.Csr)
    else:
        s["0.weight"].block(block, block).sparsify(lacis.BlockRandom(zeros, seed=0)).set_format(lacis.Bsr)
    layer, x = s.build()[0], torch.randn(tokens, columns, device=device, dtype=dtype)
    dense = layer.weight.to_dense().detach()
    with torch.inference_mode():
        contenders = {"lacis": lambda: layer(x), "torch dense": lambda: torch.nn.functional.linear(x, dense)}
        times = measure(contenders, device, rounds=20, flush=device == "cuda")
    own, other = predictions(layer, tokens)
    times = {"lacis": times["lacis"], "predicted": own, "torch dense": times["torch dense"], "dense, predicted": other}
    shape = f"{str(dtype).removeprefix('torch.')}, {rows}×{columns}, {tokens} tokens, block {block}"
    name = f"{device}, {shape}, {zeros:.0%} zeros, {path_of(layer, tokens)}"
    return Case(name, {name: time for name, time in times.items() if time is not None})
