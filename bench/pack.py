# SPDX-License-Identifier: Apache-2.0
"""Packing a 4096x4096 float32 tensor at 90 %, on the GPU where there is one."""

from __future__ import annotations

import lacis
import torch
from lacis.formats import compose

from .measure import Case, measure, random_sparse

TITLE = "`lacis.pack` of 4096×4096 at 90 %, float32"


def run() -> list[Case]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dense = random_sparse(4096, 4096, 0.9, device)
    formats = {
        "Csr": lacis.Csr(),
        "Bsr(64, 64)": lacis.Bsr(64, 64),
        "block(16, 16) Ell Coo": compose(2, [(16, 16)], [(lacis.Ell, [0, 1]), (lacis.Coo, [2, 3])]),
    }
    return [case(dense, name, format) for name, format in formats.items()]


def case(dense, name: str, format) -> Case:
    contenders = {"lacis": lambda: lacis.pack(dense, format), "torch to_sparse_csr": dense.to_sparse_csr}
    times = measure(contenders, dense.device, rounds=10)
    return Case(f"{name} on {dense.device.type}", times, "under 20 ms on CUDA")
