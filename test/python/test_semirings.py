# SPDX-License-Identifier: Apache-2.0
"""Semirings: over the entries alone, the semiring's zero where there is none, forward only."""

import math

import pytest
import torch
from strategies import LONG, mostly_long, turns

import lacis

FORMATS = [lacis.Csr, lacis.Csc, lacis.Coo, lacis.Dcsr, lacis.Ell, lacis.Bsr(4, 4)]
EXPRESSIONS = ["ij,j->i", "ij,i->j", "ij,bj->bi", "ij,jk->ik", "ki,kj->ij", "ij->i", "ij->j"]


def maximum(expression, dense, mask, others, combine):
    """The largest combination over the entries, by brute force over all letters."""
    terms, output = expression.split("->")[0].split(","), expression.split("->")[1]
    letters = list(dict.fromkeys(letter for term in terms for letter in term))
    spread = lambda t, term: torch.einsum(f"{term}->{''.join(x for x in letters if x in term)}", t)[
        tuple(slice(None) if x in term else None for x in letters)
    ]
    total = spread(dense, terms[0])
    for term, other in zip(terms[1:], others):
        total = combine(total, spread(other, term))
    total = torch.where(spread(mask, terms[0]), total, -math.inf)
    dims = [n for n, letter in enumerate(letters) if letter not in output]
    kept = "".join(letter for letter in letters if letter in output)
    return torch.einsum(f"{kept}->{output}", total.amax(dims))


@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("semiring, combine", [("max_plus", torch.add), ("max_times", torch.mul)])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_largest_over_the_entries(expression, semiring, combine, target):
    generator = torch.Generator().manual_seed(3)
    mask = torch.rand(9, 11, generator=generator) < 0.3
    mask[4] = False
    dense = torch.where(mask, torch.randn(9, 11, generator=generator) - 1, 0)
    terms = expression.split("->")[0].split(",")
    sizes = {**dict(zip(terms[0], dense.shape)), "b": 7}
    others = [torch.randn([sizes.get(letter, 5) for letter in term], generator=generator) for term in terms[1:]]
    expected = maximum(expression, dense, mask, others, combine)
    assert expected.isneginf().any() or "ki" in expression or expression in ("ij->j", "ij,i->j")
    turn = EXPRESSIONS.index(expression)
    if target == "cpu" and (turn % 3 or (semiring == "max_times" and turn)) and not LONG:
        return
    for format in FORMATS if target == "eager" else turns(FORMATS, turn):
        y = lacis.einsum(expression, lacis.pack(dense, format), *others, semiring=semiring, target=target)
        torch.testing.assert_close(y, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("format", FORMATS[: 5 if LONG else 1], ids=lambda f: f.__name__)
def test_reachable_nodes(format, target):
    edges = torch.rand(40, 40, generator=torch.Generator().manual_seed(4)) < 0.05
    frontier = torch.zeros(3, 40, dtype=torch.bool)
    frontier[0, 7] = frontier[1] = True
    y = lacis.einsum("ij,bi->bj", lacis.pack(edges, format), frontier, semiring="or_and", target=target)
    assert y.dtype == torch.bool
    assert torch.equal(y, (frontier.float() @ edges.float()) > 0)


@pytest.mark.parametrize("target", ["eager", "cpu"])
def test_nan_wins_and_stays_with_the_entries(target):
    w = lacis.pack(torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]), lacis.Csr)
    x = torch.tensor([2.0, math.nan])
    y = lacis.einsum("ij,j->i", w, x, semiring="max_plus", target=target)
    assert y[0] == 3 and y[1].isnan() and y[2] == -math.inf


@pytest.mark.parametrize("dtype", mostly_long([torch.float64, torch.float16, torch.bfloat16]))
def test_other_dtypes(dtype):
    dense, x = torch.randn(8, 6).relu().to(dtype), torch.randn(3, 6).to(dtype)
    packed = lacis.pack(dense, lacis.Csr)
    got, expected = (lacis.einsum("ij,bj->bi", packed, x, semiring="max_plus", target=t) for t in ("cpu", "eager"))
    assert got.dtype == dtype and torch.equal(got, expected)


@pytest.mark.parametrize("target", ["eager", "cpu"])
def test_gradients_raise(target):
    w, x = lacis.pack(torch.eye(3), lacis.Csr), torch.randn(3, requires_grad=True)
    y = lacis.einsum("ij,j->i", w, x, semiring="max_plus", target=target)
    with pytest.raises(lacis.Error, match="semiring 'max_plus' is forward only"):
        y.sum().backward()
    assert x.grad is None


def test_dense_around_the_entries_is_refused():
    with pytest.raises(lacis.DataError, match="has all letters of the packed operand and more"):
        lacis.einsum("ij,k->ijk", lacis.pack(torch.eye(2), lacis.Csr), torch.ones(2), semiring="max_plus")


def test_without_a_packed_operand():
    with pytest.raises(lacis.DataError, match="need one packed operand"):
        lacis.einsum("ij,j->i", torch.eye(2), torch.ones(2), semiring="max_plus")
