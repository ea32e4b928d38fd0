# SPDX-License-Identifier: Apache-2.0
"""Sums of formats and strips of coordinates: one launch, the numbers of the dense product."""

import pytest
import strategies
import torch

import lacis
from lacis import steps
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.formats import decompose
from lacis.runtime.kernels import compile_kernel
from lacis.schedule.steps import parse

HYBRID = f"#lacis.sum<short = {lacis.Csr()} when nnz(i) lt 20, long = {lacis.Dcsr()}>"


def test_a_sum_that_lists_its_long_rows_runs_both_classes_in_one_launch_on_a_gpu():
    """And adds up the parts of long rows in another."""
    packed = lacis.pack(strategies.sparse(32, 48, density=0.4), lacis.Format.parse(HYBRID))
    spec, _ = capture_einsum("ij,jk->ik", [packed, torch.randn(48, 32)], None, [])
    kernel = compile_kernel(emit(spec), "cuda:sm_90a")
    assert [launch["block"] for launch in kernel.info["launches"]] == [[256, 1, 1]] * 2
    assert steps.Apart("long") in [parse(text) for text in kernel.info["steps"]]


@pytest.mark.long
@pytest.mark.parametrize("rest", [lacis.Csr, lacis.Coo, lacis.Csc])
def test_a_part_that_lists_no_rows_has_a_companion_that_does(rest):
    w = strategies.sparse(32, 48, density=0.4)
    w[3], w[[5, 31]] = 1, 0
    packed, x = lacis.pack(w, decompose(ell=lacis.Ell(8), rest=rest)), torch.randn(48, 9)
    apart = [steps.Apart("rest"), steps.Parallel("rest.i"), steps.Parallel("i")]
    torch.testing.assert_close(lacis.einsum("ij,jk->ik", packed, x, steps=apart), w @ x)


BLOCKED_ROWS = "(i, j) -> (i floordiv 4 : dense, j : compressed, i mod 4 : dense)"


@pytest.mark.parametrize(
    "rest, what",
    [
        (lacis.Ell, "pads its rows, so those without entries are not known by their length"),
        (lacis.Format.parse(f"#lacis.format<{BLOCKED_ROWS}>"), "has rows of blocks, of which no list is made"),
    ],
)
def test_a_part_whose_rows_cannot_be_listed_is_not_run_apart(rest, what):
    packed = lacis.pack(strategies.sparse(32, 48, density=0.4), decompose(ell=lacis.Ell(8), rest=rest))
    with pytest.raises(lacis.CompileError, match=f"apart: part 'rest' {what}"):
        lacis.compile("ij,jk->ik", packed, torch.randn(48, 9), steps=[steps.Apart("rest")])


STRIPS = {
    "rows": (lacis.Csr, "ij,jk->ik"),
    "columns": (lacis.Csr, "ij,ik->jk"),
    "padding": (lacis.Ell, "ij,jk->ik"),
    "blocks": (lacis.Bsr(4, 4), "ij,jk->ik"),
}


@pytest.mark.long
@pytest.mark.parametrize("case", STRIPS)
def test_strips_of_coordinates(case):
    """Strips that do not divide the axis, that are wider than it, and of one coordinate; empty rows."""
    format, expression = STRIPS[case]
    w = strategies.sparse(32, 48, density=0.2)
    w[[0, 3, 31]] = 0
    packed, x = lacis.pack(w, format), torch.randn(32 if case == "columns" else 48, 9)
    loop = {"columns": "i", "blocks": "j0"}.get(case, "j")
    for factor in (7, 500, 1):
        y = lacis.einsum(expression, packed, x, steps=[steps.Split(loop, factor), steps.Unroll(f"{loop}1", 2)])
        torch.testing.assert_close(y, torch.einsum(expression, w, x))
