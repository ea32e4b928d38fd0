# SPDX-License-Identifier: Apache-2.0
"""Formats and sums drawn at random, below a batch: packing, a product, its gradients, and what is sampled on them."""

import lacis
import pytest
import torch
from lacis.packing import PackedTensor
from strategies import pool
from test_batch import H, close, dense, sparse

I, J, K = 17, 23, 6
SHARDS, EACH = 8, 12
pytestmark = pytest.mark.long


@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_formats(shard):
    for format in pool(200)[shard :: 200 // EACH]:
        check(format, *((I, J) if shard % 2 else (J, I)), seed=shard)


def check(format, rows: int, columns: int, seed: int) -> None:
    a = sparse(H, rows, columns, seed=seed, dtype=torch.float64)
    packed = lacis.pack(a, format.batched("h")).validate()
    assert torch.equal(packed.to_dense(), a), format
    values = {name: each.requires_grad_() for name, each in packed.values_by_part.items()}
    x = dense(H, columns, K, dtype=torch.float64).requires_grad_()
    y = lacis.einsum("hij,hjk->hik", PackedTensor(packed.pattern, values), x)
    close(y.detach(), torch.einsum("hij,hjk->hik", a, x.detach()))
    arrived = dense(H, rows, K, seed=5, dtype=torch.float64)
    *of_values, of_x = torch.autograd.grad(y, [*values.values(), x], arrived)
    close(of_x, torch.einsum("hij,hik->hjk", a, arrived))
    gradient = PackedTensor(packed.pattern, dict(zip(values, of_values))).validate()
    close(gradient.to_dense(), torch.einsum("hjk,hik->hij", x.detach(), arrived) * packed.pattern.to_mask())
    summed = lacis.einsum("hij,hjk->ik", packed, x.detach())
    close(summed, torch.einsum("hij,hjk->ik", a, x.detach()))


def test_features_of_edges():
    """A batch letter behind those of the pattern: the same values, with the axes in another order."""
    pattern = lacis.Pattern.from_mask(sparse(I, J) != 0, lacis.Csr)
    a, b = (dense(n, H, seed=n, dtype=torch.float64).requires_grad_() for n in (I, J))
    s = lacis.einsum("ij,ih,jh->ijh", pattern, a, b)
    assert s.shape == (I, J, H) and s.values.shape == (H, pattern.nnz)
    expected = torch.einsum("ij,ih,jh->ijh", pattern.to_mask().double(), a, b)
    close(s.to_dense().detach(), expected.detach())
    arrived = dense(I, J, H, seed=9, dtype=torch.float64)
    for mine, theirs in zip(*(torch.autograd.grad(y, [a, b], arrived) for y in (s.to_dense(), expected))):
        close(mine, theirs)
