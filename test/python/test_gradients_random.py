# SPDX-License-Identifier: Apache-2.0
"""Gradients over formats drawn at random, in every dtype, against float64 dense."""

import pytest
import strategies
import tally
import torch
from conformance import DTYPES, sparse
from test_gradients import product
from torch.autograd import gradcheck, gradgradcheck

import lacis

EXAMPLES = 1000 if strategies.LONG else 4  # three kernels each, four with a sum
PIECES = 8 if strategies.LONG else 1  # workers that share the second derivatives
SHAPES = ((17, 23), (33, 21), (1, 9), (5, 0), (0, 5))


def some(shard: int) -> list:
    """Formats of the pool for one of four shards."""
    return strategies.pool(EXAMPLES)[shard::4]


def gradients(format, w, x, g):
    """The gradients of one product: of the values, as a dense tensor, and of the input."""
    packed = lacis.pack(w, format)
    dense = w.clone().requires_grad_()
    x = x.clone().requires_grad_()
    y = lacis.einsum("ij,bj->bi", packed.with_values(packed.pattern.gather(dense)), x)
    return torch.autograd.grad(y, (dense, x), g)


def close(found, expected, magnitude, dtype):
    """Within what rounding allows: the sum in float32 (float64), then once to the dtype."""
    unit = torch.finfo(dtype).eps + 40 * torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    assert bool(((found.double() - expected).abs() <= 2 * unit * magnitude + 1e-30).all())


@pytest.mark.parametrize("dtype", strategies.mostly_long(DTYPES, torch.float64), ids=str)
def test_random_formats(dtype):
    for seed, format in enumerate(some(DTYPES.index(dtype))):
        generator = torch.Generator().manual_seed(seed)
        draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)
        for rows, columns in SHAPES:
            for density in (0.0, 0.3, 1.0):
                w = sparse((rows, columns), density, dtype, generator)
                x, g = draw(5, columns), draw(5, rows)
                of_values, of_input = gradients(format, w, x, g)
                a, b, c = w.double(), x.double(), g.double()
                close(of_input, c @ a, c.abs() @ a.abs(), dtype)
                close(of_values, (c.T @ b) * (w != 0), c.abs().T @ b.abs(), dtype)
        tally.counts["gradients"] += 1


@pytest.mark.parametrize("piece", range(PIECES))
def test_random_formats_differentiate_twice(piece):
    for seed, format in list(enumerate(some(1)))[piece::PIECES]:
        generator = torch.Generator().manual_seed(seed)
        dense = sparse((7, 5), 0.4, torch.float64, generator).requires_grad_()
        packed = lacis.pack(dense.detach(), format)
        x = torch.randn(3, 5, generator=generator, dtype=torch.float64, requires_grad=True)
        function = product("ij,bj->bi", packed)
        assert gradcheck(function, (dense, x), fast_mode=True)
        assert gradgradcheck(function, (dense, x), fast_mode=True)
