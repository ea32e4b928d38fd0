# SPDX-License-Identifier: Apache-2.0
"""Every format of the suite under every kind of expression, named and drawn at random, against float64 dense."""

from __future__ import annotations

import conformance
import expressions
import hypothesis
import pytest
import strategies
import tally
import torch
from hypothesis import strategies as st
from test_conformance import NAMED

import lacis
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.formats import Sum, decompose
from lacis.runtime import ptxas

LONG = strategies.LONG
CUBES = {
    "csf": lacis.Csf(3),
    "coo": lacis.Format.parse(
        "#lacis.format<(i, j, k) -> (i : compressed<unique=false>, j : singleton, k : singleton)>"
    ),
    "rows": lacis.Format.parse("#lacis.format<(i, j, k) -> (i : dense, j : compressed, k : dense)>"),
    "turned": lacis.Format.parse("#lacis.format<(i, j, k) -> (k : compressed, i : compressed, j : packed<?>)>"),
    "blocks": lacis.Format.parse(
        "#lacis.format<(i, j, k) -> (i floordiv 2 : dense, k : compressed, j floordiv 3 : compressed, "
        "i mod 2 : dense, j mod 3 : dense)>"
    ),
    "sum": decompose(
        first=lacis.Format.parse("#lacis.format<(i, j, k) -> (i : dense, j : dense, k : packed<1>)>"),
        rest=lacis.Csf(3),
    ),
}


def pairs(formats, chosen):
    """Format, expression, dtype: each expression once, formats and dtypes in turns; all triples in the long run."""
    for n, expression in enumerate(chosen):
        for name in strategies.turns(formats, n):
            yield from ((name, expression, dtype) for dtype in strategies.turns(conformance.DTYPES, n))


def ids(value):
    return str(value).removeprefix("torch.")


@pytest.mark.long
@pytest.mark.parametrize("name, expression, dtype", list(pairs(NAMED, expressions.MATRIX)), ids=ids)
def test_matrix(name, expression, dtype):
    expressions.run(expression, NAMED[name], dtype)


def random_pairs(shard: int):
    """Number, format, expression: random formats of the pool, expressions in turns; sums where they are one kernel."""
    for turn, (n, format) in enumerate(strategies.share("expressions", shard)[:: 1 if LONG else 4]):
        whole = [e for e in expressions.MATRIX if not isinstance(format, Sum) or is_one_kernel(e)]
        yield n, format, whole[(4 * turn + shard) % len(whole)]


def is_one_kernel(expression) -> bool:
    """Is a sum one kernel? Where the output has its letters each part is."""
    return not {"i", "j"} <= set(expression.split("->")[1])


@pytest.mark.parametrize("shard", range(strategies.SHARDS))
def test_random_matrix(shard):
    for n, format, expression in random_pairs(shard):
        expressions.run(expression, format, conformance.dtype_of(shard), n)
        tally.counts["expressions"] += 1


@pytest.mark.parametrize("name, expression, dtype", list(pairs(CUBES, expressions.CUBE[:: 1 if LONG else 12])), ids=ids)
def test_three_axes(name, expression, dtype):
    expressions.run(expression, CUBES[name], dtype, sizes=expressions.SIZES[:4])


PLACES = ["j,ij->i", "bj,ij->bi", "ij,bi->bj", "jl,kl,ijk->il", "ik,ij,jk->ij"]


@pytest.mark.parametrize("expression", strategies.mostly_long(PLACES, "bj,ij->bi"))
def test_the_packed_operand_at_any_place(expression):
    terms, _ = expressions.split(expression)
    sizes, generator = expressions.SIZES[0], torch.Generator().manual_seed(2)
    place = next(n for n, term in enumerate(terms) if term in ("ij", "ijk"))
    w = conformance.sparse([sizes[x] for x in terms[place]], 0.3, torch.float32, generator).to(conformance.DEVICE)
    dense = [
        d.to(conformance.DEVICE) for d in expressions.dense_operands(expression, sizes, torch.float32, generator, place)
    ]
    result = lacis.einsum(expression, *dense[:place], lacis.pack(w, lacis.Csf), *dense[place:])
    expected = torch.einsum(expression, *dense[:place], w, *dense[place:])
    torch.testing.assert_close(
        expressions.answer(result),
        expected.where(w != 0, 0).cpu() if expression[-2:] == "ij" else expected.cpu(),
    )


@pytest.mark.parametrize("name", strategies.mostly_long(NAMED, "csr"))
def test_strided_operands(name):
    """Dense operands as they come: transposed, every second, expanded."""
    generator = torch.Generator().manual_seed(3)
    w = conformance.sparse((17, 23), 0.3, torch.float32, generator).to(conformance.DEVICE)
    packed = lacis.pack(w, NAMED[name])
    x = torch.randn(46, 14, generator=generator).to(conformance.DEVICE)
    for view in (x[::2, ::2], x[:23, :7], x.T.contiguous().T[:23, 7:], x[0, 0].expand(23, 7)):
        torch.testing.assert_close(lacis.einsum("ij,jk->ik", packed, view), w @ view, rtol=1e-4, atol=1e-4)


@st.composite
def statements(draw, rank: int):
    """An expression whose first operand, of this rank, is packed."""
    own = "ijk"[:rank]
    terms = [own]
    for _ in range(draw(st.integers(0, 3))):
        letters = draw(st.lists(st.sampled_from("ijklb"), unique=True, max_size=3))
        terms.append("".join(letters))
    known = sorted({letter for term in terms for letter in term})
    output = draw(st.lists(st.sampled_from(known), unique=True, max_size=3))
    return f"{','.join(terms)}->{''.join(output)}"


# One kernel an example, eight cases each.
EXAMPLES = 1000


@pytest.mark.long
@pytest.mark.parametrize("shard", range(strategies.SHARDS))
def test_random_expression(shard):
    dtype = conformance.dtype_of(shard)

    @hypothesis.settings(
        max_examples=EXAMPLES // strategies.SHARDS,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.seed(1000 * tally.SEED + shard)
    @hypothesis.given(data=st.data(), rank=st.integers(1, 3), seed=st.integers(0, 2**31))
    def draw(data, rank, seed):
        expression = data.draw(statements(rank))
        format = data.draw(strategies.formats_and_sums(rank))
        try:
            expressions.run(expression, format, dtype, seed)
            tally.counts["expressions"] += 1
        except lacis.DataError as error:  # a width in the format that the rows do not fit is refused, by name
            hypothesis.assume("width" not in str(error))
            raise

    draw()


def ptx(expression, format, dtype) -> str:
    """The PTX of an einsum, assembled where there is an assembler."""
    from lacis import _core

    sizes, generator = expressions.SIZES[0], torch.Generator().manual_seed(0)
    w = conformance.sparse([sizes[x] for x in expressions.split(expression)[0][0]], 0.3, dtype, generator)
    dense = expressions.dense_operands(expression, sizes, dtype, generator)
    spec, _ = capture_einsum(expression, [lacis.pack(w, format), *dense])
    options = {"stages": True} | ({"ptxas": ptxas.find()} if ptxas.find() else {})
    return _core.compile(emit(spec), "cuda:sm_90a", options).stages["ptx"]


@pytest.mark.parametrize("shard", range(strategies.SHARDS))
def test_ptx(shard):
    for _, format, expression in random_pairs(shard):
        if expressions.split(expression)[1] and (is_one_kernel(expression) or not isinstance(format, Sum)):
            assert ".visible .entry" in ptx(expression, format, conformance.dtype_of(shard))
