# SPDX-License-Identifier: Apache-2.0
"""Every format of the suite, named and drawn at random, against float64 dense."""

from __future__ import annotations

import itertools

import conformance
import pytest
import strategies
import tally
import torch

import lacis
from lacis.formats import compose, decompose


class Ellpack(lacis.Format):
    def __init__(self):
        with lacis.iter(dim=2) as (I, J):
            J.compress(coordinate=True).pack()
            self.indices = [I, J]


NAMED = {
    "csr": lacis.Csr(),
    "csc": lacis.Csc(),
    "coo": lacis.Coo(),
    "dcsr": lacis.Dcsr(),
    "ell": lacis.Ell(),
    "bsr": lacis.Bsr(16, 16),
    "bcsc": lacis.Bcsc(8, 16),
    "blocked_ell": lacis.BlockedEll(3, 5),
    "ellpack": Ellpack(),
    "dense": lacis.Dense(),
    "nest": compose(2, [(16, 16)], [(Ellpack(), (0, 1)), (lacis.Coo(), (2, 3))]),
    "sum": decompose(ell=lacis.Ell(width=4), rest=lacis.Coo()),
    "three_parts": decompose(a=lacis.Ell(width=1), b=lacis.Ell(width=2), rest=lacis.Csc()),
}


LONG = strategies.LONG


def dtype_here(name) -> torch.dtype:
    """One dtype for each format, in turns; all of them in the long run."""
    return conformance.DTYPES[list(NAMED).index(name) % len(conformance.DTYPES)]


def has_bias(name) -> tuple[bool, ...]:
    """Without a bias or with one, in turns, so that each dtype meets both; both for each format in the long run."""
    turn = list(NAMED).index(name)
    return (False, True) if LONG else ((turn + turn // len(conformance.DTYPES)) % 2 == 1,)


CASES = list(itertools.product(NAMED, conformance.DTYPES))
HERE = ("bsr", "nest")  # the others are layers of other tests, too
CASES = strategies.mostly_long(CASES, *((name, dtype_here(name)) for name in HERE))


@pytest.mark.parametrize("name, dtype", CASES, ids=lambda each: str(each).removeprefix("torch."))
def test_named_format(name, dtype):
    conformance.run(NAMED[name], dtype, biases=has_bias(name))
    if LONG or name == "bsr":
        conformance.run(NAMED[name], dtype, shapes=[conformance.ALIGNED], biases=[True])


@pytest.mark.parametrize("shard", range(strategies.SHARDS))
def test_random_format(shard):
    """Formats of the pool, those of one dtype, with a bias and without."""
    for n, format in strategies.share("layers", shard)[:: 1 if LONG else 2]:
        conformance.run(format, conformance.dtype_of(shard), n, conformance.ODD_SHAPES, biases=(n % 4 == 0,))
        tally.counts["layers"] += 1


def test_duplicates_of_coo_are_summed():
    crd = torch.tensor([[0, 0, 2], [1, 1, 0]])
    w = torch.sparse_coo_tensor(crd, torch.tensor([1.0, 2.0, 4.0]), (3, 2), device=conformance.DEVICE)
    packed = lacis.pack(w, lacis.Coo)
    x = torch.randn(5, 2, device=conformance.DEVICE)
    with torch.no_grad():
        torch.testing.assert_close(lacis.einsum("ij,bj->bi", packed, x), x @ w.to_dense().T)


@pytest.mark.parametrize("name", strategies.mostly_long(("csr", "csc", "coo", "dcsr", "ell", "bsr"), "dcsr"))
def test_wide_indices(name):
    """Positions and coordinates of 64 bits, as tensors of more than 2**31 slots have them."""
    w = conformance.sparse((40, 30), 0.3, torch.float32, torch.Generator().manual_seed(1))
    packed = lacis.pack(w.to(conformance.DEVICE), NAMED[name])
    tensors = {key: v.long() if v.dtype == torch.int32 else v for key, v in packed.tensors.items()}
    valid = packed.pattern.valid.get("")
    wide = lacis.PackedTensor.from_storage(
        packed.format, packed.shape, tensors | ({} if valid is None else {"valid": valid})
    )
    assert "i64" in wide.pattern.typed_text
    x = torch.randn(5, 30)
    with torch.no_grad():
        torch.testing.assert_close(lacis.einsum("ij,bj->bi", wide, x.to(conformance.DEVICE)).cpu(), x @ w.T)


def test_results_repeat():
    w = torch.randn(200, 300) * (torch.rand(200, 300) < 0.3)
    packed = lacis.pack(w.to(conformance.DEVICE), lacis.Csc)
    x = torch.randn(40, 300, device=conformance.DEVICE)
    with torch.no_grad():
        first = lacis.einsum("ij,bj->bi", packed, x)
        for threads in (1, 2):
            torch.set_num_threads(threads)
            assert all(torch.equal(first, lacis.einsum("ij,bj->bi", packed, x)) for _ in range(10))
