# SPDX-License-Identifier: Apache-2.0
"""Strategies of `race`: shares of rows that meet give the numbers of the default schedule, or are refused."""

import lacis
import pytest
import torch
from lacis import steps

DEVICE = "cpu"
# Long rows, short ones, none at all: shares end within rows, and hold several.
ROWS = (0, 31, 1, 0, 40, 2, 3, 0, 40, 0, 7, 16, 1, 1, 1, 1, 9, 0, 0, 40, 40, 2, 5, 0)  # shapes of docs/steps


def problem(format=lacis.Csr, dtype=torch.float32):
    torch.manual_seed(0)
    mask = torch.arange(40) < torch.tensor(ROWS)[:, None]
    a = torch.where(mask, torch.randn(len(ROWS), 40) + 3, 0).to(DEVICE, dtype)
    return a, lacis.pack(a, format), torch.randn(16, 40).to(DEVICE, dtype)


def bound(loop, unit):
    return [steps.Parallel(loop) if unit == "parallel" else steps.Bind(loop, unit)]


def shares(strategy, loop="i_j", factor=16):
    if strategy == "segment":  # four shares are a group
        group = [steps.SplitNnz(loop, factor // 4), steps.Split(f"{loop}0", 4)]
        return [*group, steps.Race(f"{loop}01", strategy)]
    return [steps.SplitNnz(loop, factor), steps.Race(f"{loop}0", strategy)]


@pytest.mark.parametrize("strategy", ["order", "private", "segment", pytest.param("atomic", marks=pytest.mark.long)])
def test_parts_of_rows_are_brought_together(strategy):
    a, w, x = problem()
    deterministic = strategy != "atomic"
    kernel = lacis.compile("ij,bj->bi", w, x, steps=shares(strategy), deterministic=deterministic)
    exact, first = x.double() @ a.double().T, kernel(w, x)
    for _ in range(20):
        y = kernel(w, x)
        torch.testing.assert_close(y.double(), exact, rtol=1e-5, atol=1e-5)
        assert torch.equal(y, first) or not deterministic
    assert deterministic == ("lacis.workspace" in kernel.asm["loops"])


def test_units_of_a_sum_keep_it_in_private_copies():
    a, w, _ = problem()
    left, right = (torch.randn(size, 64).to(DEVICE) for size in a.shape)
    unit = "block.y" if DEVICE == "cuda" else "parallel"
    own = [steps.Split("k", 16), steps.Race("k0", "private"), *bound("k0", unit)]
    kernel = lacis.compile("ij,ik,jk->ij", w.pattern, left, right, steps=own)
    exact, first = torch.where(a != 0, left.double() @ right.double().T, 0), kernel(w.pattern, left, right).to_dense()
    torch.testing.assert_close(first.double(), exact, rtol=1e-5, atol=1e-5)
    assert all(torch.equal(first, kernel(w.pattern, left, right).to_dense()) for _ in range(20))
    with pytest.raises(lacis.CompileError, match="loop 'k0' carries a sum.*'private' would do"):
        lacis.compile("ij,ik,jk->ij", w.pattern, left, right, steps=[own[0], own[2]])
    with pytest.raises(lacis.CompileError, match="'order' is for shares of entries.*; 'private' would do"):
        lacis.compile("ij,ik,jk->ij", w.pattern, left, right, steps=[own[0], steps.Race("k0", "order")])


@pytest.mark.parametrize("strategy", ["private", pytest.param("atomic", marks=pytest.mark.long)])
def test_units_that_share_each_row(strategy):
    """Five units take a fifth of each row: of one with fewer entries some take none."""
    a, w, x = problem()
    unit = "block.y" if DEVICE == "cuda" else "parallel"
    own = [steps.SplitNnz("j", parts=5), steps.Race("j0", strategy), *bound("j0", unit)]
    kernel = lacis.compile("ij,bj->bi", w, x, steps=own, deterministic=strategy != "atomic")
    exact, first = x.double() @ a.double().T, kernel(w, x)
    for _ in range(20):
        y = kernel(w, x)
        torch.testing.assert_close(y.double(), exact, rtol=1e-5, atol=1e-5)
        assert torch.equal(y, first) or strategy == "atomic"
    empty = lacis.pack(torch.zeros_like(a), lacis.Csr)
    assert not kernel(empty, x).any()
    assert kernel(w, torch.full_like(x, float("nan")))[:, 1].isnan().all()


@pytest.mark.parametrize("cut", [64, pytest.param(8, marks=pytest.mark.long)])
def test_rows_and_their_entries_are_one_loop(cut):
    a, w, x = problem()
    unit = "block.y" if DEVICE == "cuda" else "parallel"
    own = [steps.Fuse("i", "j"), steps.Split("i_j", cut), steps.Race("i_j0", "order"), *bound("i_j0", unit)]
    kernel = lacis.compile("ij,bj->bi", w, x, steps=own)
    first = kernel(w, x)
    torch.testing.assert_close(first.double(), x.double() @ a.double().T, rtol=1e-5, atol=1e-5)
    assert all(torch.equal(first, kernel(w, x)) for _ in range(20))
    assert not kernel(lacis.pack(torch.zeros_like(a), lacis.Csr), x).any()
    assert kernel(w, torch.full_like(x, float("nan")))[:, 1].isnan().all()


def test_positions_are_no_units_of_their_own():
    _, w, x = problem()
    why = (
        "loop 'j' carries the sum of 'out' over the positions of a level; "
        "split_nnz with 'parts' makes units.*'private' would do"
    )
    for asked in (bound("j", "parallel" if DEVICE == "cpu" else "block.y"), [steps.Race("j", "private")]):
        with pytest.raises(lacis.CompileError, match=why):
            lacis.compile("ij,bj->bi", w, x, steps=asked)


@pytest.mark.long
def test_atomic_parts_of_blocks_in_float64():
    a, w, x = problem(lacis.Bsr(4, 4), torch.float64)
    kernel = lacis.compile("ij,bj->bi", w, x, steps=shares("atomic", "i0_j0", 3), deterministic=False)
    torch.testing.assert_close(kernel(w, x), x @ a.T, rtol=1e-12, atol=1e-12)


def test_a_group_is_of_known_number_and_innermost():
    _, w, x = problem()
    given = shares("segment")
    with pytest.raises(lacis.CompileError, match="is none; split it and take the inner loop; 'order', 'private'"):
        lacis.compile("ij,bj->bi", w, x, steps=[given[0], steps.Race("i_j0", "segment")])
    outside = [*given[:2], steps.Reorder("i_j00", "i_j01", "b"), given[2]]
    with pytest.raises(lacis.CompileError, match="'i_j01' is not the innermost around the rows of a share"):
        lacis.compile("ij,bj->bi", w, x, steps=outside)
    with pytest.raises(lacis.CompileError, match="'i_j01' is marked already"):
        lacis.compile("ij,bj->bi", w, x, steps=[*given, steps.Vectorize("i_j01", 4)])
    with pytest.raises(lacis.CompileError, match="'i_j01' has the strategy .segment. already"):
        lacis.compile("ij,bj->bi", w, x, steps=[*given, steps.Race("i_j01", "private")])


def test_a_largest_value_needs_no_leave():
    a, w, x = problem()
    kernel = lacis.compile("ij,bj->bi", w, x, steps=shares("atomic"), semiring="max_plus")
    default = lacis.einsum("ij,bj->bi", w, x, semiring="max_plus", target="eager")
    for _ in range(20):
        torch.testing.assert_close(kernel(w, x), default, rtol=0, atol=0)


def test_what_depends_on_timing_or_follows_the_sum_is_refused():
    _, w, x = problem()
    with pytest.raises(lacis.CompileError, match="depends on which part arrives first.*; 'order', 'private' would do"):
        lacis.compile("ij,bj->bi", w, x, steps=shares("atomic"))
    relu = lacis.Epilogue(activation="relu")
    with pytest.raises(lacis.CompileError, match="nothing can follow the sum"):
        lacis.compile("ij,bj->bi", w, x, steps=shares("atomic"), deterministic=False, epilogue=relu)
    with pytest.raises(lacis.CompileError, match="race: no strategy 'luck' has code"):
        lacis.compile("ij,bj->bi", w, x, steps=shares("luck"))


def test_a_schedule_says_whether_results_may_depend_on_timing():
    for deterministic in (True, False):
        model = torch.nn.Sequential(torch.nn.Linear(40, len(ROWS), bias=False)).to(DEVICE).requires_grad_(False)
        s = lacis.create_schedule(model, deterministic=deterministic)
        s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
        s["0.weight"].split_nnz("i_j", 16).race("i_j0", "atomic")
        if deterministic:
            with pytest.raises(lacis.CompileError, match="depends on which part arrives first"):
                s.build()
            continue
        s.build()
        x = torch.randn(16, 40, device=DEVICE)
        torch.testing.assert_close(model(x), x @ model[0].weight.to_dense().T)
