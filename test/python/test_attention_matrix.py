# SPDX-License-Identifier: Apache-2.0
"""Random calls of attention, forward and backward, against dense attention in float64."""

import attention_matrix
import pytest
import strategies
import tally
import torch

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
SHARDS = 12 if strategies.LONG else 2


@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_reference(shard):
    for case in attention_matrix.cases(96 if strategies.LONG else 8, DTYPES)[shard::SHARDS]:
        attention_matrix.check(case, target="eager")


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_kernels(shard):
    found = attention_matrix.cases(240, DTYPES, seed=1)[shard::SHARDS]
    for case in found:
        attention_matrix.check(case)
    tally.counts["calls of attention"] += len(found)
