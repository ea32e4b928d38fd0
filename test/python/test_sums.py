# SPDX-License-Identifier: Apache-2.0
"""Sums of formats and strips of coordinates: one launch, the numbers of the dense product."""

import pytest
import strategies
import torch

import lacis
from lacis import steps
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.runtime.kernels import compile_kernel
from lacis.schedule.steps import parse

HYBRID = f"#lacis.sum<short = {lacis.Csr()} when nnz(i) lt 20, long = {lacis.Dcsr()}>"


def test_a_sum_that_lists_its_long_rows_is_one_launch_on_a_gpu():
    packed = lacis.pack(strategies.sparse(32, 48, density=0.4), lacis.Format.parse(HYBRID))
    spec, _ = capture_einsum("ij,jk->ik", [packed, torch.randn(48, 32)], None, [])
    kernel = compile_kernel(emit(spec), "cuda:sm_90a")
    (launch,) = kernel.info["launches"]
    assert launch["block"] == [1024, 1, 1]
    assert parse(kernel.info["steps"][0]) == steps.Apart("long")


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
