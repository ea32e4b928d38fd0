# SPDX-License-Identifier: Apache-2.0
"""Tensor cores at random: block sizes, formats, tails, numbers of tokens and dtypes drawn, products and gradients."""

import pathlib
import random
import sys

import families
import poison
import pytest
import torch
from test_tile_schedules_cuda import blocked

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import conformance  # noqa: E402
import drawn_steps  # noqa: E402
import strategies  # noqa: E402
import tally  # noqa: E402

import lacis  # noqa: E402

pytestmark = pytest.mark.skipif(families.CAPABILITY < (8, 0), reason="needs a GPU of compute capability 8.0 or more")
SIDES = (8, 16, 24, 32, 48, 64, 128)  # some of them no kernel for tensor cores takes
SHARDS, DRAWS = 16, (40 if strategies.LONG else 4)


def close(found, rows, columns, pick=lambda dense: dense):
    """Against `rows @ columns.T` in float64, within what rounding allows a sum of that length."""
    expected, allowed = conformance.product(rows, columns, None), conformance.bound(rows, columns, None)
    error = (found.double() - pick(expected)).abs()
    assert bool((error <= pick(allowed)).all()), f"error {error.max():.3g}, {(error > pick(allowed)).sum()} places"


@pytest.mark.parametrize("shard", range(SHARDS))
def test_products_and_gradients(shard):
    draw = random.Random(1000 * tally.SEED + shard)
    torch.manual_seed(draw.randrange(2**31))
    for _ in range(DRAWS):
        block = (draw.choice(SIDES), draw.choice(SIDES))
        format = draw.choice((lacis.Bsr, lacis.Bcsc, lacis.BlockedEll))(*block)
        if draw.random() < 0.2:
            format, block = drawn_steps.drawn_blocks(draw)
        format = drawn_steps.drawn_width(draw, format)
        rows, columns = (draw.choice((8, 8, 64, 1)) * draw.randrange(1, 25) for _ in range(2))
        tokens, sparsity = draw.choice((1, 7, 32, 33, 200, 1000)), draw.choice((0.0, 0.3, 0.6, 0.9, 1.0))
        dtype, target = draw.choice((torch.bfloat16, torch.float16)), draw.choice(("auto", families.AMPERE))
        case = f"{format} {rows}x{columns} {tokens} {sparsity} {dtype} {target}"
        try:
            kernel = check(format, block, rows, columns, tokens, sparsity, dtype, target)
        except AssertionError as error:
            raise AssertionError(f"{case}: {error}") from None
        where = "on tensor cores" if "lacis.mma" in kernel.asm.get("tiles", "") else "in plain loops"
        tally.counts[f"blocks {where}"] += 1


def check(format, block, rows, columns, tokens, sparsity, dtype, target):
    """The kernel of the product, which and whose gradients are right on poisoned memory."""
    w = blocked(rows, columns, block, sparsity, dtype)
    w *= torch.rand_like(w.float()) < 0.9  # zeros inside of blocks, padding as far as gradients go
    packed = lacis.pack(w, format)
    x, dy = (torch.randn(tokens, size, device="cuda").to(dtype) for size in (columns, rows))
    kernel = lacis.compile("ij,bj->bi", packed, x, target=target)
    with torch.no_grad(), poison.allocations():
        close(kernel(packed, x), x, w)
        gradient = lambda slot: kernel.family.gradient(slot).kernel
        close(gradient("1").run([dy], packed, x.shape), dy, w.T)
        values = gradient("values").run([x, dy], packed, packed.values.shape)
    close(values, dy.T, x.T, packed.pattern.gather)
    return kernel
