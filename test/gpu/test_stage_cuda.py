# SPDX-License-Identifier: Apache-2.0
"""`stage` in the rounds of a loop: tiles of dense operands in shared memory give the same numbers every time."""

import pytest
import torch

import lacis
from lacis import steps

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
TILED = [
    steps.Split("b", 64),
    steps.Split("b1", 4),
    steps.Reorder("b0", "i0", "i1", "b10", "b11"),
    steps.Bind("b10", "thread.x"),
    steps.Bind("i1", "thread.y"),
]
BLOCKS = [steps.Bind("b0", "block.x"), steps.Bind("i0", "block.y")]


def blocked(rows, columns):
    torch.manual_seed(0)
    kept = (torch.rand(-(-rows // 16), -(-columns // 16)) < 0.4).repeat_interleave(16, 0).repeat_interleave(16, 1)
    a = torch.where(kept[:rows, :columns], torch.randn(rows, columns), 0).cuda()
    return a, lacis.pack(a, lacis.Bsr(16, 16))


def agrees(kernel, operands, exact):
    first = kernel(*operands)
    dense = first if isinstance(first, torch.Tensor) else first.to_dense()
    torch.testing.assert_close(dense.double(), exact, rtol=1e-5, atol=1e-4)
    for _ in range(20):
        again = kernel(*operands)
        assert torch.equal(again if isinstance(again, torch.Tensor) else again.to_dense(), dense)


@pytest.mark.parametrize("shape", [(64, 96, 128), (70, 90, 45)], ids=["whole", "ragged"])
@pytest.mark.parametrize("columns", [steps.Jam("b11"), steps.Vectorize("b11", 4), steps.Unroll("b11")])
def test_a_product_reads_its_vectors_from_tiles(shape, columns):
    rows, depth, batch = shape
    a, w = blocked(rows, depth)
    x = torch.randn(batch, depth).cuda()
    given = [*TILED, columns, steps.Stage("1", "shared", "j0"), *BLOCKS]
    kernel = lacis.compile("ij,bj->bi", w, x, steps=given)
    assert "place<shared>" not in kernel.asm["loops"] and "@einsum_shared0" in kernel.asm["buffers"]
    agrees(kernel, (w, x), x.double() @ a.double().T)


@pytest.mark.parametrize("shape", [(64, 96, 64), (70, 90, 45)], ids=["whole", "ragged"])
def test_a_sampled_product_stages_both_operands(shape):
    rows, columns, depth = shape
    a, w = blocked(rows, columns)
    left, right = torch.randn(rows, depth).cuda(), torch.randn(columns, depth).cuda()
    given = [
        steps.Bind("i0_j0", "block.x"),
        steps.Split("k", 32),
        steps.Bind("j1", "thread.x"),
        steps.Bind("i1", "thread.y"),
        steps.Stage("1", "shared", "k0"),
        steps.Stage("2", "shared", "k0"),
    ]
    kernel = lacis.compile("ij,ik,jk->ij", w.pattern, left, right, steps=given)
    agrees(kernel, (w.pattern, left, right), torch.where(a != 0, left.double() @ right.double().T, 0))


def test_a_checked_kernel_reads_tiles(monkeypatch):
    a, w = blocked(64, 96)
    x = torch.randn(128, 96).cuda()
    monkeypatch.setenv("LACIS_DEBUG", "1")
    given = [*TILED, steps.Jam("b11"), steps.Stage("1", "shared", "j0"), *BLOCKS]
    kernel = lacis.compile("ij,bj->bi", w, x, steps=given)
    agrees(kernel, (w, x), x.double() @ a.double().T)
