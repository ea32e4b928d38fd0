# SPDX-License-Identifier: Apache-2.0
"""Strategies of `race`: shares of rows that meet give the numbers of the default schedule, or are refused."""

import lacis
import pytest
import torch
from lacis import steps

DEVICE = "cpu"
# Long rows, short ones, none at all: shares end within rows, and hold several.
ROWS = (0, 31, 1, 0, 40, 2, 3, 0, 40, 0)


def problem(format=lacis.Csr, dtype=torch.float32):
    torch.manual_seed(0)
    mask = torch.arange(40) < torch.tensor(ROWS)[:, None]
    a = torch.where(mask, torch.randn(len(ROWS), 40) + 3, 0).to(DEVICE, dtype)
    return a, lacis.pack(a, format), torch.randn(16, 40).to(DEVICE, dtype)


def shares(strategy, loop="i_j", factor=16):
    return [steps.SplitNnz(loop, factor), steps.Race(f"{loop}0", strategy)]


@pytest.mark.parametrize("strategy", ["order", "atomic"])
def test_parts_of_rows_are_brought_together(strategy):
    a, w, x = problem()
    kernel = lacis.compile("ij,bj->bi", w, x, steps=shares(strategy), deterministic=False)
    for _ in range(20):
        torch.testing.assert_close(kernel(w, x), x @ a.T)
    ordered = strategy == "order"
    assert ordered == ("lacis.workspace" in kernel.asm["loops"])


def test_atomic_parts_of_blocks_in_float64():
    a, w, x = problem(lacis.Bsr(4, 4), torch.float64)
    kernel = lacis.compile("ij,bj->bi", w, x, steps=shares("atomic", "i0_j0", 3), deterministic=False)
    torch.testing.assert_close(kernel(w, x), x @ a.T, rtol=1e-12, atol=1e-12)


def test_a_largest_value_needs_no_leave():
    a, w, x = problem()
    kernel = lacis.compile("ij,bj->bi", w, x, steps=shares("atomic"), semiring="max_plus")
    default = lacis.einsum("ij,bj->bi", w, x, semiring="max_plus", target="eager")
    for _ in range(20):
        torch.testing.assert_close(kernel(w, x), default, rtol=0, atol=0)


def test_what_depends_on_timing_or_follows_the_sum_is_refused():
    _, w, x = problem()
    with pytest.raises(lacis.CompileError, match="depends on which part arrives first; 'order' would do"):
        lacis.compile("ij,bj->bi", w, x, steps=shares("atomic"))
    relu = lacis.Epilogue(activation="relu")
    with pytest.raises(lacis.CompileError, match="nothing can follow the sum"):
        lacis.compile("ij,bj->bi", w, x, steps=shares("atomic"), deterministic=False, epilogue=relu)
    with pytest.raises(lacis.CompileError, match="race: no strategy 'luck' has code"):
        lacis.compile("ij,bj->bi", w, x, steps=shares("luck"))


def test_a_schedule_says_whether_results_may_depend_on_timing():
    for deterministic in (True, False):
        model = torch.nn.Sequential(torch.nn.Linear(40, 10, bias=False)).to(DEVICE).requires_grad_(False)
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
