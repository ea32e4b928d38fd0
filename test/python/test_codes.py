# SPDX-License-Identifier: Apache-2.0
"""Codes of n:m groups on a CPU: groups that are full and that are not, of sizes known to be even and of others."""

from __future__ import annotations

import pytest
import torch

import lacis

SHAPES = [(128, 256), (6, 40), (17, 36)]  # of 128 columns a multiple, of two groups of four, of one
TOKENS = [16, 3, 40]


def groups(rows: int, columns: int, n: int, m: int, share: float) -> torch.Tensor:
    """A matrix of which this share of the groups has `n` entries, the others fewer."""
    generator = torch.Generator().manual_seed(rows + n)
    order = torch.rand(rows, columns // m, m, generator=generator).argsort(-1)
    full = torch.rand(rows, columns // m, 1, generator=generator) < share
    kept = order < torch.where(full, n, torch.randint(0, n, full.shape, generator=generator))
    return torch.randn(rows, columns, generator=generator) * kept.reshape(rows, columns)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.0])
@pytest.mark.parametrize(
    "n, m, shape",
    [
        pytest.param(n, m, shape, marks=() if (n, m, shape) == (2, 4, SHAPES[0]) else pytest.mark.long)
        for n, m in ((2, 4), (1, 4), (4, 8), (2, 2))
        for shape in SHAPES
        if shape[1] % m == 0
    ],
)
def test_products_and_what_is_not_a_number(n, m, shape, share):
    w = groups(*shape, n, m, share)
    packed = lacis.pack(w, lacis.NMFormat(n, m))
    for tokens in TOKENS:
        x = torch.randn(tokens, shape[1], generator=torch.Generator().manual_seed(tokens))
        got = lacis.einsum("ij,bj->bi", packed, x, target="cpu")
        torch.testing.assert_close(got.double(), x.double() @ w.double().T, rtol=1e-5, atol=1e-4)
        column = tokens % shape[1]
        x[0, column] = torch.nan  # reaches the rows with an entry there, and no others
        got = lacis.einsum("ij,bj->bi", packed, x, target="cpu")
        assert torch.equal(got[0].isnan(), w[:, column] != 0) and not got[1:].isnan().any()
