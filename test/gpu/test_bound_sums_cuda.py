# SPDX-License-Identifier: Apache-2.0
"""Loops that carry a sum, bound to units: parts side by side (`horizontal_fuse`), entries whose lanes hold vectors."""

import lacis
import pytest
import torch
from lacis.formats import decompose
from lacis.schedule.steps import Bind, HorizontalFuse, Reorder, Specialize, Split, SplitNnz, Unroll, Vectorize

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

COLUMNS = [Reorder("k0", "i", "k1"), Bind("k0", "block.x"), Bind("k1", "lane")]


def agree(format, features, steps, rows=203, dtype=torch.float32):
    """Sparse rows of any length, the empty and the full too; the same bits each time."""
    torch.manual_seed(0)
    dense = torch.randn(rows, 517, dtype=dtype) * (torch.rand(rows, 517) < torch.rand(rows, 1) ** 4)
    dense[0], dense[-1] = 1, 0
    dense, x = dense.cuda(), torch.randn(517, features, dtype=dtype).cuda()
    packed = lacis.pack(dense, format)
    kernel = lacis.compile("ij,jk->ik", packed, x, steps=steps)
    first = kernel(packed, x)
    torch.testing.assert_close(first, (dense.double() @ x.double()).to(dtype), rtol=1e-4, atol=1e-3)
    assert all(torch.equal(first, kernel(packed, x)) for _ in range(20))


@pytest.mark.parametrize("rest", [lacis.Csr, lacis.Coo], ids=["Csr", "Coo"])
@pytest.mark.parametrize("unit, lanes", [("warp", 32), ("lane", 16)])
@pytest.mark.parametrize("features", [64, 20])
def test_parts_side_by_side(unit, lanes, rest, features):
    steps = [HorizontalFuse("ell", "rest"), Split("k", lanes), *COLUMNS, Bind("i", "block.x"), Bind("ell_rest", unit)]
    agree(decompose(ell=lacis.Ell(8), rest=rest), features, steps)


@pytest.mark.parametrize("features, rows", [(32, 4), (16, 4), (32, 8), (20, 4)])
def test_lanes_share_a_sum_of_vectors(features, rows):
    """Rows share a warp where there are fewer columns or lanes for their entries; columns may be over."""
    columns, inner = 32 if features == 20 else features, rows // 4
    parts = 32 // (columns // 4) // inner
    steps = [Split("k", columns), *COLUMNS[:2], Split("k1", 4), Vectorize("k11", 4), Bind("k10", "lane")]
    steps += [Split("i", rows)]
    steps += [Split("i1", inner), Bind("i11", "lane"), Bind("i10", "warp")] if inner > 1 else [Bind("i1", "warp")]
    steps += [SplitNnz("j", parts), Reorder("j1", "j0"), Bind("j1", "lane"), Unroll("j0", 2)]
    agree(lacis.Csr, features, [Specialize(k=features), *steps])


@pytest.mark.parametrize("features", [64, 20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_columns_that_sink_below_the_walk(features, dtype):
    """Eight columns are a tile of a lane, to which each entry of its row adds."""
    steps = [Split("k", 8), Reorder("k0", "i", "j", "k1"), Bind("k0", "block.x"), Split("i", 32)]
    agree(lacis.Csr, features, [*steps, Bind("i0", "block.x"), Bind("i1", "lane")], dtype=dtype)
