# SPDX-License-Identifier: Apache-2.0
"""`lacis.attention` of few queries over a long cache, bf16, in CUDA graphs, beside SDPA over all of it and the floor.

The floor is 6 us and the bytes of the keys and values that are kept, at 3.4 TB/s.
"""

from __future__ import annotations

import lacis
import torch

from .measure import Case, measure
from .real_layers import captured

TITLE = "Few queries over 32768 keys, 32 heads of 128 in groups, bf16"
HEADS, LENGTH, DEPTH, SIDE = 32, 32768, 128, 64
BYTES_A_MS = 3.4e9


def dense(q, k, v) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def case(keys: int, queries: int, share: float) -> Case:
    q = torch.randn(1, HEADS, queries, DEPTH, device="cuda").bfloat16()
    k, v = (torch.randn(1, keys, LENGTH, DEPTH, device="cuda").bfloat16() for _ in range(2))
    blocks = torch.rand(1, 1, LENGTH // SIDE, device="cuda") < share
    pattern = lacis.Pattern.from_mask(
        blocks[0].repeat_interleave(SIDE, 1).expand(queries, -1), lacis.Bsr(queries, SIDE)
    )
    got, mask = lacis.attention(q, k, v, pattern), blocks.repeat_interleave(SIDE, 2)[:, None]
    want = torch.nn.functional.scaled_dot_product_attention(
        q.float(), k.float(), v.float(), mask.expand(1, 1, queries, LENGTH), enable_gqa=True
    )
    assert (got - want).norm() <= 2**-7 * want.norm()
    contenders = {
        "lacis": captured(lambda: lacis.attention(q, k, v, pattern)),
        "torch dense": captured(lambda: dense(q, k, v)),
    }
    times = measure(contenders, "cuda", rounds=20, flush=True)
    kept = 4 * keys * int(blocks.sum()) * SIDE * DEPTH
    times["floor"] = 6e-3 + kept / BYTES_A_MS
    return Case(f"{queries} queries, {keys} heads of keys, {share:.0%} of the blocks", times, "≥ 1.0, floor")


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    with torch.inference_mode():
        return [
            case(keys, queries, share) for keys, queries in ((32, 1), (8, 1), (8, 4), (8, 16)) for share in (1.0, 0.25)
        ]
