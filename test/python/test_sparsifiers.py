# SPDX-License-Identifier: Apache-2.0
"""Sparsifiers keep exactly as many as they say, and the same ones every time."""

import itertools
import subprocess
import sys

import pytest
import torch
from lacis.errors import DataError, FormatError, ScheduleError
from lacis.formats import Csr
from lacis.patterns import Pattern
from lacis.sparsifiers import (
    NM,
    BlockMagnitude,
    BlockRandom,
    Given,
    Keep,
    Magnitude,
    Random,
    Sparsifier,
    Threshold,
    as_sparsifier,
)
from lacis.sparsifiers.choose import hashed, keep_count

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sparsity", [0, 0.1, 0.5, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("make", [Magnitude, Random])
def test_the_count_is_exact(make, sparsity, dtype):
    for shape in [(7, 11), (64, 64), (1, 1), (0, 5)]:
        tensor = torch.randn(shape).to(dtype)
        mask = make(sparsity)(tensor)
        assert mask.dtype == torch.bool and int(mask.sum()) == tensor.numel() - round(sparsity * tensor.numel())


@pytest.mark.parametrize("sparsity", [0, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("make", [BlockMagnitude, BlockRandom])
def test_whole_blocks_are_kept(make, sparsity):
    tensor = torch.randn(10, 13)
    mask = make(sparsity).with_block((4, 4))(tensor)
    kept = torch.zeros(3, 4, dtype=torch.bool)
    for a in range(3):
        for b in range(4):
            block = mask[4 * a : 4 * a + 4, 4 * b : 4 * b + 4]
            assert block.all() or not block.any()
            kept[a, b] = block.any()
    assert int(kept.sum()) == 12 - round(sparsity * 12)


def test_the_largest_are_kept_and_ties_go_by_position():
    assert Magnitude(0.5)(torch.tensor([3.0, -5.0, 1.0, 4.0])).tolist() == [False, True, False, True]
    assert Magnitude(0.5)(torch.ones(6)).tolist() == [True] * 3 + [False] * 3
    assert Magnitude(0.5)(torch.tensor([1.0, float("nan")])).tolist() == [False, True]
    assert BlockMagnitude(0.5, block=(1, 2))(torch.ones(2, 2)).tolist() == [[True, True], [False, False]]


TENSORS = {
    "spread": lambda shape: torch.randn(shape),
    "double": lambda shape: torch.randn(shape).double(),
    "half": lambda shape: torch.randn(shape).half(),
    "of few values": lambda shape: torch.randn(shape).mul(2).round(),
    "of one value": lambda shape: torch.full(shape, 3.0),
    "mostly zero": lambda shape: torch.randn(shape) * (torch.rand(shape) < 0.01),
    "with nan": lambda shape: torch.where(torch.rand(shape) < 0.1, torch.nan, torch.inf),
    "integers": lambda shape: torch.randint(-50, 50, shape),
}


@pytest.mark.parametrize("shape", [(300, 700), (700, 700)], ids=["selected at once", "by a sample or by digits"])
@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("sparsity", [0.01, 0.5, 0.9, 0.99])
def test_the_largest_are_the_first_of_a_stable_sort(name, sparsity, shape):
    tensor = TENSORS[name](shape)
    scores = tensor.abs().flatten()
    scores = scores.where(~scores.isnan(), torch.inf) if scores.is_floating_point() else scores
    expected = the_largest(scores, sparsity).reshape(shape)
    assert torch.equal(Magnitude(sparsity)(tensor), expected)
    with torch.inference_mode():
        assert torch.equal(Magnitude(sparsity)(tensor), expected)


@pytest.mark.parametrize("sparsity", [0.01, 0.5, 0.9, 0.99])
def test_random_keeps_the_largest_of_its_hash(sparsity):
    keys = hashed(700 * 700, 3, torch.device("cpu"))
    assert torch.equal(Random(sparsity, seed=3)(torch.empty(700, 700)).flatten(), the_largest(keys.ordered(), sparsity))


def the_largest(scores: torch.Tensor, sparsity: float) -> torch.Tensor:
    """bool: as many as are kept, of equal ones the first."""
    kept = torch.sort(scores, descending=True, stable=True).indices[: keep_count(len(scores), sparsity)]
    return torch.zeros(len(scores), dtype=torch.bool).index_fill(0, kept, True)


@pytest.mark.parametrize("make", ["Magnitude(0.9)", "Random(0.9)", "BlockMagnitude(0.9, block=(16, 16))", "NM(2, 4)"])
def test_choosing_takes_no_more_than_twice_the_weight(make):
    """The peak of a fresh process: 64 MiB of weight, and what was taken while its mask was made."""
    script = f"""
import lacis, pathlib, torch
status = pathlib.Path("/proc/self/status")
peak = lambda: next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
weight, small = torch.randn(4096, 4096), torch.randn(512, 512)
lacis.{make}(small)
pathlib.Path("/proc/self/clear_refs").write_text("5")
before = peak()
lacis.{make}(weight)
assert peak() - before < 2 * 64 * 1024, (peak() - before) / (64 * 1024)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_norms_differ():
    tensor = torch.tensor([[3.0, 0.0], [2.0, 2.0]])
    assert BlockMagnitude(0.5, norm=1, block=(1, 2))(tensor)[1].all()
    assert BlockMagnitude(0.5, norm=2, block=(1, 2))(tensor)[0].all()
    with pytest.raises(DataError, match=r"norm is 1, 2 or inf, not \(1, 2\)"):
        BlockMagnitude(0.5, (1, 2))


def test_random_repeats_and_depends_on_the_seed():
    tensor = torch.randn(32, 32)
    assert torch.equal(Random(0.5, seed=1)(tensor), Random(0.5, seed=1)(tensor))
    assert not torch.equal(Random(0.5, seed=1)(tensor), Random(0.5, seed=2)(tensor))
    rows = Random(0.5, seed=3)(torch.randn(64, 1024)).sum(1)
    assert rows.min() > 400 and rows.max() < 624


def test_n_of_m():
    tensor = torch.randn(6, 10)
    mask = NM(2, 4)(tensor)
    groups = mask[:, :8].reshape(6, 2, 4)
    assert (groups.sum(-1) == 2).all() and (mask[:, 8:].sum(-1) == 2).all()
    dropped = tensor[:, :8].abs().reshape(6, 2, 4).masked_fill(groups, 0).amax(-1)
    kept = tensor[:, :8].abs().reshape(6, 2, 4).masked_fill(~groups, 9).amin(-1)
    assert (kept >= dropped).all()
    assert NM(1, 2)(torch.ones(1, 4)).tolist() == [[True, False, True, False]]
    with pytest.raises(DataError, match="0 < n <= m"):
        NM(5, 4)


@pytest.mark.parametrize("shape", [(8, 12), (7, 10), (4, 5), (1, 3), (0, 4), (5, 0)])
@pytest.mark.parametrize("rank", ["abs", "value"])
def test_n_of_m_both_ways(shape, rank):
    """Greedy as it is said, tile by tile; the best of all masks as it is counted."""
    tensor = torch.randn(shape, dtype=torch.float64)
    tensor[:2, :2] = 0.5  # ties
    kept, best = (NM(2, 4, both=True, rank=rank, search=search)(tensor) for search in ("greedy", "best"))
    scores = tensor.abs() if rank == "abs" else tensor
    for i, j in itertools.product(range(0, shape[0], 4), range(0, shape[1], 4)):
        tile, want = scores[i : i + 4, j : j + 4], torch.zeros(4, 4, dtype=torch.int64)
        for _, r, c in sorted((-float(tile[r, c]), r, c) for r in range(tile.shape[0]) for c in range(tile.shape[1])):
            if want[r].sum() < 2 and want[:, c].sum() < 2:
                want[r, c] = 1
        assert torch.equal(kept[i : i + 4, j : j + 4], want[: tile.shape[0], : tile.shape[1]].bool())
        mine = best[i : i + 4, j : j + 4]
        assert mine.sum(0).max() <= 2 and mine.sum(1).max() <= 2
        assert mine.sum() == min(2 * min(tile.shape), *(min(n, 2) * m for n, m in (tile.shape, tile.shape[::-1])))
        if rank == "abs" and want.sum() == 8:  # greedy may get stuck at seven, which no mask of eight holds
            assert (tile * mine).sum() >= tile[want[: tile.shape[0], : tile.shape[1]].bool()].sum() - 1e-12


def test_the_best_mask_both_ways():
    """Of all 90, by trying; of equal ones the one with the first places."""
    pairs = [[int(k in pair) for k in range(4)] for pair in itertools.combinations(range(4), 2)]
    masks = torch.tensor([four for four in itertools.product(pairs, repeat=4)])
    masks = masks[(masks.sum(1) == 2).all(1)].double()
    assert len(masks) == 90
    for tile in [*torch.randn(20, 4, 4).double(), torch.ones(4, 4).double(), torch.randint(0, 2, (4, 4)).double()]:
        sums = (masks * tile).sum((1, 2))
        assert torch.equal(NM(2, 4, both=True, rank="value", search="best")(tile), masks[sums.argmax()].bool()) or (
            (sums == sums.max()).sum() > 1
        )
    assert (
        NM(2, 4, both=True, search="best")(torch.ones(4, 4)).int().tolist() == [[1, 1, 0, 0]] * 2 + [[0, 0, 1, 1]] * 2
    )
    spoilt = torch.ones(4, 4).fill_diagonal_(torch.nan)
    spoilt[0, 1] = -torch.inf
    for search in ("greedy", "best"):
        mask = NM(2, 4, both=True, search=search)(spoilt)
        assert mask.diagonal().all() and mask[0, 1]
    assert not NM(2, 4, both=True).counts and NM(2, 4).counts


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: NM(2, 4, rank="size"), "rank is 'abs' or 'value', not 'size'"),
        (lambda: NM(2, 4, search="all"), "search is 'greedy' or 'best', not 'all'"),
        (lambda: NM(1, 4, both=True, search="best"), "knows the masks of 2:4 both ways, not of 1:4, both=True"),
        (lambda: NM(2, 4, both=True)(torch.ones(4, 4, 4)), r"that of a matrix, not of \[4, 4, 4\]"),
        (lambda: NM(2, 4, rank="value")(torch.ones(4, 4, dtype=torch.bool)), "have no sign; take rank='abs'"),
    ],
)
def test_n_of_m_says_what_it_takes(call, said):
    with pytest.raises(DataError, match=said):
        call()


def test_threshold_given_and_keep():
    tensor = torch.tensor([[0.0, -2.0], [1.0, 3.0]])
    assert Threshold(1)(tensor).tolist() == [[False, True], [False, True]]
    mask = torch.tensor([[True, False], [False, True]])
    assert torch.equal(Given(mask)(tensor), mask)
    assert torch.equal(Given(Pattern.from_mask(mask, Csr))(tensor), mask)
    assert torch.equal(Keep()(tensor), tensor != 0)


@pytest.mark.parametrize(
    "answer, message",
    [
        (lambda t: t > 0, None),
        (lambda t: t, "bool"),
        (lambda t: (t > 0)[:1], "shape"),
        (lambda t: (t > 0).to("meta"), "is on meta"),
        (lambda t: [True], "bool tensor, not list"),
    ],
)
def test_a_users_own_is_checked(answer, message):
    class Mine(Sparsifier):
        def mask(self, tensor):
            return answer(tensor)

    if message is None:
        assert as_sparsifier(Mine)(torch.ones(2, 2)).all()
        return
    with pytest.raises(DataError, match=f"'Mine'.*{message}"):
        as_sparsifier(Mine())(torch.ones(2, 2))


def test_refusals():
    with pytest.raises(FormatError, match="needs a block"):
        BlockMagnitude(0.5)(torch.ones(4, 4))
    with pytest.raises(FormatError, match="says"):
        BlockRandom(0.5, block=(2, 2)).with_block((4, 4))
    with pytest.raises(DataError, match="from 0 to 1"):
        Magnitude(90)
    with pytest.raises(ScheduleError, match="needs arguments"):
        as_sparsifier(Magnitude)
    with pytest.raises(ScheduleError, match="expected a sparsifier"):
        as_sparsifier(0.5)
    assert isinstance(as_sparsifier(torch.ones(2, dtype=torch.bool)), Given)


@pytest.mark.parametrize(
    "sparsifier",
    [Random(0.7, seed=3), Magnitude(0.6), NM(2, 4), BlockRandom(0.5, block=(4, 4))],
)
def test_a_graph_keeps_the_entries_that_torch_keeps_without_one(sparsifier):
    tensor = torch.randn(24, 40, generator=torch.Generator().manual_seed(0))
    traced = torch.compile(lambda x: sparsifier.mask(x), fullgraph=True, backend="eager")
    assert torch.equal(traced(tensor), sparsifier.mask(tensor))
