# SPDX-License-Identifier: Apache-2.0
"""Random calls of `lacis.attention` as GPUs have them, by the same steps in plain loops on a CPU, against float64."""

import attention_matrix
import pytest
import tally
from attention_matrix import HALF, SIDES
from test_chain_tiles import TARGET

from lacis.attentions import fused, tiles
from lacis.runtime.chain import ChainFunction

LENGTHS = (4, 60, 64, 65, 132, 192)
DEPTHS = ((16, 16), (32, 32), (64, 64), (64, 32), (24, 40), (128, 128))
SHARDS = 12


@pytest.fixture
def kernels(monkeypatch):
    """Those of tiles, as calls make them."""
    found = []

    def fitted(chain, operands, steps):
        steps = chain.compile(*operands, steps=steps, target=TARGET).steps
        found.append(chain.compile(*operands, steps=steps))
        return found[-1], found[-1].fitted(operands)

    monkeypatch.setattr(ChainFunction, "_fitted", fitted)
    monkeypatch.setattr(fused, "on_gpu", lambda q: True)
    for module in (fused, tiles):
        monkeypatch.setattr(module, "takes_type", lambda q: q.dtype in HALF)
    return found


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_calls_by_the_steps_of_gpus(kernels, shard):
    """Forward and gradients; others than kernels of tiles are statements."""
    cases = attention_matrix.cases(144, HALF, seed=4, lengths=LENGTHS, depths=DEPTHS, blocks=SIDES)[shard::SHARDS]
    for case in cases:
        attention_matrix.check(case)
        tally.counts["calls of attention by the steps of GPUs"] += 1
    assert sum("lacis.mma" in kernel.asm["tiles"] for kernel in kernels) >= len(cases) // 2
