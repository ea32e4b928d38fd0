# SPDX-License-Identifier: Apache-2.0
"""Gradients of attention on tensor cores of a GPU: against float64, on poisoned memory, bit-equal."""

import pathlib
import sys

import poison
import pytest
import torch

import lacis
from lacis.attentions.row_products import row_products
from lacis.attentions.walks import by_columns

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from test_chain_tiles import BLOCKS, blocks, check  # noqa: E402
from test_chain_tiles_gradients import chains, given  # noqa: E402

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)


def tuple_of(found) -> tuple:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("depth, wide", [(64, 64), (128, 128), (64, 128), (32, 16)])
@pytest.mark.parametrize("rows, columns, sides", [(192, 256, (64, 64)), (2048, 1024, (64, 64)), (384, 512, (128, 128))])
def test_gradients(rows, columns, sides, depth, wide, dtype):
    """A row and a column without entries; an odd number of rows of blocks, and blocks of several tiles."""
    mask = blocks(rows, columns, sides)
    mask[:, : sides[1]] = False
    pattern = lacis.Pattern.from_mask(mask.cuda(), BLOCKS[sides])
    operands, want = given(rows, columns, depth, wide, dtype, mask, heads=3)
    operands, want = [x.cuda() for x in operands], [x.cuda() for x in want]
    for chain, side, wanted in zip(chains(), (pattern, by_columns(pattern)), (want[:1], want[1:])):
        side = side.batched((3,), "h")
        assert "lacis.mma" in chain.compile(*operands, side).asm["tiles"]
        with poison.allocations():
            poison.shared_memory()
            got = tuple_of(chain(*operands, side))
        for one, other in zip(got, wanted):
            check(one, other, 2)
        if len(got) == 1:
            assert not got[0][:, :64].any()
        else:
            assert not got[0][:, :64].any() and not got[1][:, :64].any()
        for _ in range(20):
            poison.flush_cache()
            assert all(map(torch.equal, got, tuple_of(chain(*operands, side))))


@pytest.mark.parametrize("depth", [16, 32, 64, 128])
def test_products_of_rows(depth):
    a, b = (torch.randn(3, 1001, depth, device="cuda").half() for _ in range(2))
    with poison.allocations():
        found = row_products(a, b)
    torch.testing.assert_close(found.double(), (a.double() * b.double()).sum(-1), rtol=1e-5, atol=1e-5)


def layout(rows, columns, heads=4):
    """With a row and a column without blocks."""
    kept = torch.rand(heads, rows, columns, device="cuda") < 0.5
    kept[:, 1] = kept[:, :, 2] = False
    return kept


def lists():
    """Of three blocks at the most for each row; -1 pads, and one row has none."""
    found = torch.randint(-1, 6, (1, 1, 8, 3), device="cuda", dtype=torch.int32)
    found[:, :, 2] = -1
    return found


PATTERNS = {
    "causal": (lambda: lacis.Causal(block=64), 512, {}),
    "diagonal": (lambda: lacis.Causal(block=64), 512, {"causal": True}),
    "bigbird": (lambda: lacis.BigBird(block=64), 512, {}),
    "window": (lambda: lacis.Local(128, block=64), 512, {"window": 100}),
    "own": (lambda: layout(8, 5), 320, {}),
    "lists": (lists, 384, {}),
    "blocks of 128": (lambda: layout(4, 6, 1), 768, {"causal": True}),
}


@pytest.mark.parametrize("depth", [64, 128])
@pytest.mark.parametrize("keys", [4, 2])
@pytest.mark.parametrize("name", PATTERNS)
def test_attention_and_its_gradients(name, keys, depth):
    """Three kernels, of which the log of the sums takes part in autograd; heads in groups too."""
    torch.manual_seed(0)
    make, columns, how = PATTERNS[name]
    pattern, batch = make(), 2
    sizes = (4, 512), (keys, columns), (keys, columns)
    q, k, v = (torch.randn(batch, *size, depth, device="cuda").bfloat16().requires_grad_() for size in sizes)
    arrived = torch.randn(batch, 512, 4, depth, device="cuda").bfloat16().transpose(1, 2)
    of_lse = torch.randn(batch, 4, 512, device="cuda")
    out, lse = lacis.attention(q, k, v, pattern, return_lse=True, **how)
    lse_kept = torch.where(lse.isneginf(), 0, lse)
    got = torch.autograd.grad((out, lse_kept), (q, k, v), (arrived, of_lse), retain_graph=True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        again = torch.autograd.grad((out, lse_kept), (q, k, v), (arrived, of_lse))
    assert all(map(torch.equal, got, again))
    for kernel in ("_rows", "_columns", "row_products"):
        assert sum(event.count for event in seen.key_averages() if event.key.startswith(kernel)) == 1, kernel
    wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
    out, lse = lacis.attention(*wide, pattern, return_lse=True, **how)
    lse = torch.where(lse.isneginf(), 0, lse)
    want = torch.autograd.grad((out, lse), wide, (arrived.double(), of_lse.double()))
    for one, other in zip(got, want):
        check(one, other, 2)


def test_gradients_of_gradients_take_statements():
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 128, 64, device="cuda").bfloat16().requires_grad_() for _ in range(3))
    found = []
    for x in ((q, k, v), [y.detach().double().requires_grad_() for y in (q, k, v)]):
        out = lacis.attention(*x, lacis.Causal(block=64))
        (first,) = torch.autograd.grad(out.square().sum(), x[0], create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), x[1])[0].double())
    assert (found[0] - found[1]).norm() <= 2e-2 * found[1].norm()
