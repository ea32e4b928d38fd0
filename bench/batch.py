# SPDX-License-Identifier: Apache-2.0
"""Heads that share one pattern, `(h : batch, …)`, beside a pattern with copies of its arrays, `(h : dense, …)`."""

from __future__ import annotations

import lacis
import torch

from .measure import Case, measure

TITLE = "Heads under one pattern, float32 on a CPU and bf16 on a GPU"
SIZES = {"cpu": (8, 512, 64), "cuda": (64, 4096, 64)}  # heads, positions, features
FORMATS = {"Csr": lacis.Csr(), "Coo": lacis.Coo(), "Bsr 16": lacis.Bsr(16, 16)}
STATEMENTS = {
    "hid,hjd": "hij,hid,hjd->hij",
    "products": "hij,hjd->hid",
    "transposed products": "hij,hid->hjd",
}


def case(device: str, name: str, what: str) -> Case:
    """The same statement on the same entries; only the index arrays differ."""
    heads, length, depth = SIZES[device]
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    side = 16 if name.startswith("Bsr") else 1
    mask = torch.rand(length // side, length // side, device=device) < 0.1
    mask = mask.repeat_interleave(side, 0).repeat_interleave(side, 1)
    q, k = torch.randn(2, heads, length, depth, device=device, dtype=dtype)
    shared = lacis.Pattern.from_mask(mask, FORMATS[name]).batched([heads], "h")
    copies = lacis.Pattern.from_mask(mask.expand(heads, -1, -1), FORMATS[name].under("h"))
    statement, contenders, results = STATEMENTS[what], {}, []
    for label, pattern in (("lacis", shared), ("copies", copies)):
        values = {n: torch.ones(part.values_shape, device=device, dtype=dtype) for n, part in pattern.parts.items()}
        operand = pattern if what == "hid,hjd" else lacis.PackedTensor(pattern, values)
        dense = (q, k) if what == "hid,hjd" else (k,)
        kernel = lacis.compile(statement, operand, *dense)
        contenders[label] = lambda kernel=kernel, operand=operand, dense=dense: kernel(operand, *dense)
        found = contenders[label]()
        results.append(found if isinstance(found, torch.Tensor) else found.to_dense())
    torch.testing.assert_close(*results, rtol=1e-2, atol=1e-2)
    return Case(f"{device}, {name}, {what}", measure(contenders, device, flush=device == "cuda"), "≥ 1 × copies")


def run() -> list[Case]:
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    with torch.inference_mode():
        return [case(device, name, what) for device in devices for name in FORMATS for what in STATEMENTS]
