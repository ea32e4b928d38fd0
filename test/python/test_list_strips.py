# SPDX-License-Identifier: Apache-2.0
"""A list of rows writes the zeros of the others in its strips, on a CPU."""

import pytest
import torch
from strategies import LONG, mostly_long

import lacis
from lacis import steps

HERE, LISTS = (700, 0.5), [(700, 0.0), (0, 1.0), (1, 1.0), (512, 1.0), (70_000, 0.05)]


@pytest.mark.parametrize("count, rows", mostly_long([HERE, *LISTS], HERE))
def test_strips_of_a_list_write_the_rows_between(count, rows):
    """On a CPU, where the output has no other letter: also of a list that is empty, and of one that has all rows."""
    generator = torch.Generator().manual_seed(count)
    mask = (torch.rand(count, 9, generator=generator) < 0.4) & (torch.rand(count, 1, generator=generator) < rows)
    dense = torch.where(mask, torch.randn(count, 9, generator=generator), 0)
    packed, x = lacis.pack(dense, lacis.Dcsr, mask), torch.randn(9)
    kernel = lacis.compile("ij,j->i", packed, x, steps=[steps.Own("0", "list")])
    assert {steps.Split("i", 256), steps.ComputeAt("out", "i0")} <= set(kernel.steps)
    for _ in range(3):
        left = torch.full((count,), float("nan"))  # what the allocator gives next
        del left
        torch.testing.assert_close(kernel(packed, x).double(), dense.double() @ x.double(), rtol=1e-5, atol=1e-5)
    if LONG:
        assert lacis.compile("ij,j->i", packed, x, steps=kernel.steps).loaded.code == kernel.loaded.code
