# SPDX-License-Identifier: Apache-2.0
"""Formats and sums from the whole grammar: packed, read, converted, multiplied and differentiated."""

from __future__ import annotations

import contextlib

import conformance
import expressions
import lacis
import pytest
import strategies
import tally
import test_text_agrees
import torch
import whole_grammar
from lacis.formats import Format, Sum
from lacis.packing import PackedTensor, pack
from strategies import sparse

POOL, SHARDS = (800, 16) if strategies.LONG else (24, 2)
SHAPES = (((17, 23), 0.3), ((1, 33), 1.0), ((0, 5), 0.3))
# What depends on the tensor: a width, bits for all coordinates of a level, numbers of 16 bits.
LIMITS = " has width |bits for 1024 coordinates at the most|does not fit into i16"


def pool(shard: int) -> list:
    return whole_grammar.pool(POOL)[shard::SHARDS]


def packed(tensor, format) -> PackedTensor | None:
    """The tensor in the format; None where that is too narrow for it, and says so."""
    try:
        return pack(tensor, format).validate()
    except lacis.DataError as error:
        assert any(limit in str(error) for limit in LIMITS.split("|")), error
        return None


@pytest.mark.long
def test_the_pool_has_everything():
    formats = whole_grammar.pool(POOL)
    texts = "\n".join(map(str, formats))
    words = (
        "rank(",
        "slot(",
        "@my_morton",
        "j - i",
        "i + j",
        "nnz(",
        "batch",
        "range",
        "@my_hash",
        "structured",
        "var2",
    )
    assert all(word in texts for word in (*words, "unique=false", "ordered=false", "pos=i64", "crd=i16", "full*bitmap"))
    assert sum(isinstance(format, Sum) for format in formats) > 20


@pytest.mark.parametrize("shard", range(SHARDS))
def test_what_is_packed_is_read_and_converted(shard):
    for n, format in enumerate(pool(shard)):
        assert Format.parse(str(format)) == format
        for shape, density in SHAPES:
            w = sparse(*shape, density=density, dtype=torch.float64, seed=n)
            found = packed(w, format)
            if found is None:
                continue
            assert torch.equal(found.to_dense(), w), format
            again = PackedTensor.from_storage(found.format, found.shape, found.tensors)
            assert torch.equal(again.to_dense(), w), format
            assert torch.equal(found.to(lacis.Csr).validate().to_dense(), w), format
            assert torch.equal(pack(w, lacis.Csc).to(format).validate().to_dense(), w), format
            tally.counts["tensors in the whole grammar"] += 1


@pytest.mark.parametrize("shard", range(SHARDS))
def test_products_and_gradients_of_the_reference(shard):
    for format in pool(shard)[:: 1 if strategies.LONG else 2]:
        gradients(format, "eager")


def gradients(format, target: str) -> None:
    """A linear layer and both its gradients against float64 dense."""
    w, x = sparse(17, 23, dtype=torch.float64), torch.randn(3, 23, dtype=torch.float64, requires_grad=True)
    found = packed(w, format)
    if found is None:
        return
    values = {name: each.clone().requires_grad_() for name, each in found.values_by_part.items()}
    y = lacis.einsum("ij,bj->bi", PackedTensor(found.pattern, values), x, target=target)
    arrived = torch.randn_like(y)
    dx, *dvalues = torch.autograd.grad(y, [x, *values.values()], arrived)
    torch.testing.assert_close(y, x @ w.T, msg=lambda m: f"{format}: {m}")
    torch.testing.assert_close(dx, arrived @ w, msg=lambda m: f"{format}: {m}")
    dw = PackedTensor(found.pattern, dict(zip(values, dvalues))).validate().to_dense()
    expected = (arrived.T @ x.detach()) * found.pattern.to_mask()
    torch.testing.assert_close(dw, expected, msg=lambda m: f"{format}: {m}")


@pytest.mark.skipif(test_text_agrees.OPT is None, reason="lacis-opt is not built")
def test_the_compiler_writes_the_same_text():
    test_text_agrees.agree([format for format in whole_grammar.pool(POOL) if "@" not in str(format)])


@contextlib.contextmanager
def refused_below_a_batch(format):
    """A batch of vectors has no loops that add it up along the vector: its pattern has no companion."""
    try:
        yield
    except lacis.CompileError as error:
        if not format.batch or "no walk of" not in str(error):
            raise


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_kernels(shard):
    """Expressions in turns, and of every third format both gradients."""
    for n, format in enumerate(pool(shard)):
        if packed(torch.ones(33, 23), format) is None or packed(torch.ones(17, 23), format) is None:
            continue
        expression = expressions.MATRIX[(n + shard) % len(expressions.MATRIX)]
        with refused_below_a_batch(format):
            expressions.run(expression, format, conformance.dtype_of(n), n)
            if n % 3 == 0:
                gradients(format, "cpu")
        tally.counts["products in the whole grammar"] += 1
