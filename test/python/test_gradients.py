# SPDX-License-Identifier: Apache-2.0
"""Gradients of einsums: once and twice differentiated in float64, half types, and only those that are asked for."""

import lacis
import pytest
import torch
from lacis.formats import compose, decompose
from strategies import mostly_long
from torch.autograd import gradcheck, gradgradcheck


class Ellpack(lacis.Format):
    def __init__(self):
        with lacis.iter(dim=2) as (I, J):
            J.compress(coordinate=True).pack()
            self.indices = [I, J]


FORMATS = {
    "csr": lacis.Csr(),
    "csc": lacis.Csc(),
    "coo": lacis.Coo(),
    "dcsr": lacis.Dcsr(),
    "ell": lacis.Ell(),
    "bsr": lacis.Bsr(2, 3),
    "bcsc": lacis.Bcsc(3, 2),
    "ellpack": Ellpack(),
    "nest": compose(2, [(3, 2)], [(Ellpack(), (0, 1)), (lacis.Coo(), (2, 3))]),
    "sum": decompose(ell=lacis.Ell(width=2), rest=lacis.Coo()),
    "sum with listed rows": decompose(ell=lacis.Ell(width=2), rest=lacis.Dcsr()),
}


def problem(format, expression="ij,bj->bi", sizes=None, dtype=torch.float64, density=0.4):
    """A packed operand, its dense form, and the other operands; all take part in autograd."""
    generator = torch.Generator().manual_seed(0)
    sizes = {"i": 7, "j": 5, "k": 3, "b": 3, "r": 3, **(sizes or {})}
    terms = expression.partition("->")[0].split(",")
    make = lambda term: torch.randn([sizes[i] for i in term], generator=generator, dtype=torch.float64).to(dtype)
    dense = make(terms[0]) * (torch.rand([sizes[i] for i in terms[0]], generator=generator) < density)
    others = [make(term).requires_grad_() for term in terms[1:]]
    return lacis.pack(dense, format), dense.requires_grad_(), others


def product(expression, packed):
    """The einsum as a function of a dense tensor, of which the entries count, and of the other operands."""
    return lambda dense, *others: lacis.einsum(expression, packed.with_values(packed.pattern.gather(dense)), *others)


@pytest.mark.parametrize("name", mostly_long(FORMATS))
def test_once_and_twice(name):
    packed, dense, others = problem(FORMATS[name])
    function = product("ij,bj->bi", packed)
    assert gradcheck(function, (dense, *others))
    assert gradgradcheck(function, (dense, *others))


def test_only_what_is_asked_for():
    """`torch.autograd.grad` of one of several tensors runs the kernel of that gradient alone."""
    packed, _, (x,) = problem(FORMATS["csr"])
    values, given = packed.values.clone().requires_grad_(), torch.ones(3, 7, dtype=torch.float64)
    doubled = x * 2
    y = lacis.einsum("ij,bj->bi", packed.with_values(values), doubled)
    runs = lambda *asked: _launches(lambda: torch.autograd.grad(y, asked, given, retain_graph=True))
    assert [runs(values), runs(x), runs(doubled), runs(values, x)] == [1, 1, 1, 2]
    assert _launches(lambda: y.backward(given, retain_graph=True)) == 2


def _launches(function) -> int:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        function()
    return {row.key: row.count for row in profile.key_averages()}["lacis::einsum"]


EXPRESSIONS = ["ij,j->i", "ij,jk->ik", "ji,jk->ki", "ij,jk->i", "bij,bj->bi", "ij->j"]
CUBES = ["ijk,jr,kr->ir", "ijk,k->ij", "ijk,kr->r"]


@pytest.mark.parametrize("expression", mostly_long(EXPRESSIONS))
def test_expressions(expression):
    format = lacis.Csf(3) if expression.startswith("bij") else lacis.Csr()
    packed, dense, others = problem(format, expression)
    assert gradcheck(product(expression, packed), (dense, *others), fast_mode=True)


@pytest.mark.parametrize("expression", mostly_long(CUBES))
def test_three_axes(expression):
    packed, dense, others = problem(lacis.Csf(3), expression)
    function = product(expression, packed)
    assert gradcheck(function, (dense, *others), fast_mode=True)
    assert gradgradcheck(function, (dense, *others), fast_mode=True)


SAMPLED = [(name, pattern) for name in ("csr", "csc", "coo", "ell", "bsr", "nest") for pattern in (True, False)]


@pytest.mark.parametrize("name, pattern", mostly_long(SAMPLED))
def test_sampled(name, pattern):
    """The gradients of a product that is sampled on a pattern, or on a tensor whose values it multiplies."""
    packed, dense, (x, y) = problem(FORMATS[name], "ij,ik,jk->ij")

    def function(dense, x, y):
        operand = packed.pattern if pattern else packed.with_values(packed.pattern.gather(dense))
        return lacis.einsum("ij,ik,jk->ij", operand, x, y).values

    inputs = (dense.detach() if pattern else dense, x, y)
    assert gradcheck(function, inputs, fast_mode=True)
    assert gradgradcheck(function, inputs, fast_mode=True)
