# SPDX-License-Identifier: Apache-2.0
"""Every family of tile kernels a thousand times on poisoned memory: right, bit-equal, and NaN stays in its token."""

import families
import poison
import pytest
import torch

import lacis

pytestmark = pytest.mark.skipif(families.CAPABILITY < (8, 0), reason="needs a GPU of compute capability 8.0 or more")
ALL, FEW = (families.families(), families.few()) if families.CAPABILITY >= (8, 0) else ({}, {})
RUNS, COLD_RUNS = 1000, 100


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def right(found, want):
    error = ((found.double() - want).norm() / want.norm()).item()
    assert error < 6e-3, f"error {error}"


def stress(problem) -> None:
    """Every run finds NaN in its output, its workspace and its shared memory; none waits for the host."""
    with torch.no_grad():
        problem.run()  # makes the arrays that it walks
        with poison.allocations():
            poison.shared_memory()
            first = problem.run()
            right(first, problem.want)
            bits, differs = first.view(torch.int16), torch.zeros((), device="cuda", dtype=torch.bool)
            for _ in range(RUNS):
                poison.shared_memory()
                differs |= (problem.run().view(torch.int16) != bits).any()
    assert not differs, f"{RUNS} runs differ"


def test_poison_is_what_the_next_launch_finds():
    left = 0.0
    for _ in range(50):  # other processes may take turns on the same GPU
        poison.shared_memory()
        left = max(left, poison.left_in_shared_memory())
    assert left > 0.9
    with poison.allocations():
        assert torch.empty(100, device="cuda").isnan().all()
    assert not torch.zeros(100, device="cuda").isnan().any()


@pytest.mark.parametrize("name", ALL)
def test_a_thousand_runs(name):
    slow = "sum" in name or name.startswith("dw") and ("sm_80" in name or "8x8" in name)  # by plain loops
    stress(ALL[name](*(512, 512, 1000) if slow else (2048, 2048, 3000)))


@pytest.mark.parametrize("tokens", [1, 8, 32])
@pytest.mark.parametrize("name", FEW)
def test_a_thousand_runs_of_few_tokens(name, tokens):
    stress(FEW[name](2048, 2048, tokens))


def from_memory(problem) -> None:
    """Fresh inputs that no cache holds give what they give again from the cache: loads take longer the first time."""
    with torch.no_grad():
        problem.run()
        differs = torch.zeros((), device="cuda", dtype=torch.bool)
        for _ in range(COLD_RUNS):
            problem.given.normal_()
            poison.flush_cache()
            cold = problem.run()
            differs |= (cold.view(torch.int16) != problem.run().view(torch.int16)).any()
    assert not differs, f"some of {COLD_RUNS} runs from memory differ"


@pytest.mark.parametrize("name", ALL)
def test_runs_from_memory(name):
    slow = "sum" in name or name.startswith("dw") and ("sm_80" in name or "8x8" in name)  # by plain loops
    from_memory(ALL[name](*(512, 512, 1000) if slow else (2048, 2048, 3000)))


@pytest.mark.parametrize("tokens", [1, 8, 32])
@pytest.mark.parametrize("name", FEW)
def test_runs_of_few_tokens_from_memory(name, tokens):
    from_memory(FEW[name](2048, 2048, tokens))


def spoiled(problem, nan, infinity) -> torch.Tensor:
    """The answer where two elements of the input are no numbers."""
    problem.given[nan], problem.given[infinity] = float("nan"), float("inf")
    with torch.no_grad():
        return problem.run()


@pytest.mark.parametrize("name", ALL)
def test_not_a_number_stays_in_its_token(name):
    """In its feature, in a gradient of values, which sums over tokens."""
    problem = ALL[name](1024, 1024, 300, sparsity=0.5)
    found = spoiled(problem, (17, 5), (200, 500))
    assert problem.spoiled_lines(found) <= ({5, 500} if "dw" in name else {17, 200})
    assert not found.isfinite().all()


@pytest.mark.parametrize("name", FEW)
def test_not_a_number_stays_in_one_of_few_tokens(name):
    problem = FEW[name](1024, 1024, 9, sparsity=0.5)
    found = spoiled(problem, (3, 5), (8, 500))
    assert problem.spoiled_lines(found) <= {3, 8} and not found.isfinite().all()


@pytest.mark.parametrize("tokens", [9, 300])
@pytest.mark.parametrize("block", [(64, 64), (16, 16)])
def test_a_strict_kernel_keeps_not_a_number_to_kept_entries(block, tokens):
    weight = families.blocked(512, 512, block, 0.5)
    packed, x = lacis.pack(weight, lacis.Bsr(*block)), torch.randn(tokens, 512, device="cuda").bfloat16()
    x[3, 5] = float("nan")
    found = lacis.einsum("ij,bj->bi", packed, x, strict=True)
    stored = weight.reshape(512, -1, block[1])[:, 5 // block[1]].any(1).reshape(-1, block[0]).any(1)
    rows = stored.repeat_interleave(block[0])
    assert torch.equal(found[3].isnan(), rows) and found.isnan().sum() == rows.sum()
