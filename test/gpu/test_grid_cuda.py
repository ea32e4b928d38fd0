# SPDX-License-Identifier: Apache-2.0
"""A tenth of the grid on CUDA, on poisoned memory: products and sampled products, linear layers with both gradients."""

import pathlib
import random
import sys

import poison
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

import conformance  # noqa: E402
import grid  # noqa: E402
import tally  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
SHARDS = 16


@pytest.fixture(autouse=True)
def on_poisoned_memory(monkeypatch):
    """Outputs, workspaces and shared memory hold NaN before a kernel runs: an element that it does not write shows."""
    monkeypatch.setattr(conformance, "DEVICE", "cuda")
    with poison.allocations():
        poison.shared_memory()
        yield


def tenth(cases, shard: int) -> list:
    """Every tenth of the cases in an order that the seed draws, those of one shard."""
    found = list(cases)
    random.Random(tally.SEED).shuffle(found)
    return found[::10][shard::SHARDS]


def right(faults) -> None:
    found = [fault for fault in faults if fault]
    assert not found, f"{len(found)} faults:\n" + "\n".join(found)


def test_what_nobody_wrote_is_not_a_number():
    assert torch.empty(100, device="cuda").isnan().all()


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("rank", grid.EXPRESSIONS)
def test_products(rank, shard):
    right(grid.product(*case, "cuda") for case in tenth(grid.cases(rank), shard))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_layers_and_both_gradients(shard):
    texts = [text for text in grid.formats(2).values() if grid.is_packed(text)]
    right(grid.gradients(text, "cuda") for text in tenth(texts, shard))
