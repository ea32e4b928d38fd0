# SPDX-License-Identifier: Apache-2.0
"""Outputs on a pattern: computed at the entries alone, 0 in padding, packed like the operand that gave the pattern."""

import math

import pytest
import torch
from strategies import mostly_long, turns

import lacis
from lacis.formats import compose, decompose

FORMATS = {
    "csr": lacis.Csr(),
    "csc": lacis.Csc(),
    "coo": lacis.Coo(),
    "dcsr": lacis.Dcsr(),
    "ell": lacis.Ell(),
    "bsr": lacis.Bsr(4, 4),
    "bcsc": lacis.Bcsc(2, 5),
    "blocked_ell": lacis.BlockedEll(3, 5),
    "dense": lacis.Dense(),
    "nest": compose(2, [(4, 4)], [(lacis.Ell(), (0, 1)), (lacis.Coo(), (2, 3))]),
    "sum": decompose(ell=lacis.Ell(width=2), rest=lacis.Coo()),
}
SIZES = {"i": 9, "j": 11, "k": 7, "l": 3, "r": 5}


def mask(*shape, seed=5, density=0.3):
    found = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < density
    found[1] = False
    return found


def others(expression, dtype=torch.float32):
    generator = torch.Generator().manual_seed(6)
    terms = expression.split("->")[0].split(",")[1:]
    return [torch.randn([SIZES[x] for x in term], generator=generator, dtype=torch.float64).to(dtype) for term in terms]


def check(result, expected, kept):
    """The right values at entries, exact zeros in padding."""
    torch.testing.assert_close(result.to_dense(), torch.where(kept, expected, 0).to(result.dtype))
    result.validate()


EXPRESSIONS = [
    "ij,ik,jk->ij",
    "ij,ki,kj->ij",
    "ij,kli,klj->ij",
    "ij,ij->ij",
    "ij,ji->ij",
    "ij,i->ij",
    "ij,j,->ij",
    "ij,ik,jk->ji",
]


@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("name", mostly_long(FORMATS, "sum"))
def test_a_pattern_is_sampled(name, target):
    kept = mask(SIZES["i"], SIZES["j"])
    pattern = lacis.Pattern.from_mask(kept, FORMATS[name])
    chosen = EXPRESSIONS if target == "eager" else turns(EXPRESSIONS, list(FORMATS).index(name))
    for expression in chosen:
        dense = others(expression)
        result = lacis.einsum(expression, pattern, *dense, target=target)
        expected = torch.einsum(expression, torch.ones(9, 11, dtype=torch.float64), *(d.double() for d in dense))
        turned = kept.T if expression.endswith("ji") else kept
        check(result, expected, turned)
        assert expression.endswith("ji") or result.pattern is pattern


@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("name", mostly_long(FORMATS, "bsr"))
def test_values_take_part(name, target):
    kept = mask(SIZES["i"], SIZES["j"])
    w = torch.where(kept, torch.randn(9, 11, generator=torch.Generator().manual_seed(7)), 0)
    everything = [*EXPRESSIONS, "ij->ij", "ij->ji"]
    for expression in everything if target == "eager" else turns(everything, list(FORMATS).index(name)):
        dense = others(expression)
        result = lacis.einsum(expression, lacis.pack(w, FORMATS[name], kept), *dense, target=target)
        expected = torch.einsum(expression, w.double(), *(d.double() for d in dense))
        check(result, expected, kept.T if expression.endswith("ji") else kept)


COO_3D = "(i, j, k) -> (i : compressed<unique=false>, j : singleton, k : singleton)"


@pytest.mark.long
@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("format", [lacis.Csf(3), pytest.param(COO_3D, marks=pytest.mark.long)])
def test_three_axes(format, target):
    kept = mask(9, 11, 7)
    pattern = lacis.Pattern.from_mask(kept, format)
    for expression in turns(("ijk,ir,jr,kr->ijk", "ijk,ij,k->ijk"), int(format == COO_3D)):
        dense = others(expression)
        expected = torch.einsum(expression, torch.ones(9, 11, 7), *dense)
        check(lacis.einsum(expression, pattern, *dense, target=target), expected, kept)


@pytest.mark.long
@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("dtype", mostly_long([torch.float64, torch.float16, torch.bfloat16], torch.float16))
def test_other_dtypes(dtype, target):
    kept = mask(9, 11)
    dense = others("ij,ik,jk->ij", dtype)
    result = lacis.einsum("ij,ik,jk->ij", lacis.Pattern.from_mask(kept, lacis.Bsr(4, 4)), *dense, target=target)
    assert result.dtype == dtype
    check(result, torch.einsum("ik,jk->ij", *(d.double() for d in dense)), kept)


@pytest.mark.long
@pytest.mark.parametrize("target", ["eager", "cpu"])
def test_only_the_entries_meet_nan(target):
    a, b = torch.ones(2, 3), torch.ones(2, 3)
    a[0, 0] = math.nan
    for format in turns((lacis.Csr, lacis.Bsr(2, 2)), 1):
        pattern = lacis.Pattern.from_mask(torch.tensor([[True, False], [True, True]]), format)
        result = lacis.einsum("ij,ik,jk->ij", pattern, a, b, target=target)
        dense = result.to_dense()
        assert dense[0, 0].isnan() and dense[0, 1] == 0 and (dense[1] == 3).all()
        assert result.values.isnan().sum() == 1


@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (5, 5)])
def test_no_entries(shape, target):
    pattern = lacis.Pattern.from_mask(torch.zeros(shape, dtype=torch.bool), lacis.Csr)
    result = lacis.einsum("ij,ik,jk->ij", pattern, torch.randn(shape[0], 3), torch.randn(shape[1], 3), target=target)
    assert result.nnz == 0 and result.values.numel() == 0
    some = lacis.Pattern.from_mask(torch.ones(3, 3, dtype=torch.bool), lacis.Csr)
    assert (lacis.einsum("ij,ik,jk->ij", some, torch.ones(3, 0), torch.ones(3, 0), target=target).values == 0).all()


def test_padding_of_an_axis_without_elements():
    """Padding stands at the end of a fibre that has no entry; its coordinate is taken apart by a size of 0."""
    fused = "(i, j) -> ((i floordiv 16, i mod 16, j) : packed<4>)"
    pattern = lacis.Pattern.from_mask(torch.zeros(5, 0, dtype=torch.bool), fused)
    assert (lacis.einsum("ij,i->ij", pattern, torch.ones(5)).values == 0).all()


@pytest.mark.long
@pytest.mark.parametrize("target", ["eager", "cpu"])
def test_duplicates_each_get_the_value_of_their_place(target):
    crd = torch.tensor([[0, 0, 1], [1, 1, 0]])
    packed = lacis.pack(torch.sparse_coo_tensor(crd, torch.tensor([1.0, 2.0, 4.0]), (2, 2)), lacis.Coo)
    a, b = torch.tensor([1.0, 10.0]), torch.tensor([3.0, 5.0])
    assert lacis.einsum("ij,i,j->ij", packed.pattern, a, b, target=target).values.tolist() == [5, 5, 30]
    assert lacis.einsum("ij,i,j->ij", packed, a, b, target=target).values.tolist() == [5, 10, 120]


@pytest.mark.long
@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("name", mostly_long(["csr", "bsr", "sum"], "bsr"))
def test_an_epilogue_at_the_entries(name, target):
    kept = mask(9, 11)
    a, b = others("ij,ik,jk->ij")
    bias, residual = torch.randn(11), torch.randn(9, 11)
    after = lacis.Epilogue(bias=bias, activation="relu", scale=0.5, residual=residual)
    result = lacis.einsum(
        "ij,ik,jk->ij", lacis.Pattern.from_mask(kept, FORMATS[name]), a, b, epilogue=after, target=target
    )
    check(result, torch.relu(0.5 * a @ b.T + bias) + residual, kept)


@pytest.mark.long
@pytest.mark.parametrize("target", ["eager", "cpu"])
def test_the_largest_at_the_entries(target):
    kept = mask(9, 11)
    a, b = others("ij,ik,jk->ij")
    pattern = lacis.Pattern.from_mask(kept, lacis.Csr)
    result = lacis.einsum("ij,ik,jk->ij", pattern, a, b, semiring="max_plus", target=target)
    check(result, (a[:, None] + b[None]).amax(2), kept)


def test_a_kernel_on_other_patterns():
    a, b = others("ij,kli,klj->ij")
    first, second = (lacis.Pattern.from_mask(mask(9, 11, seed=n), FORMATS["sum"]) for n in (5, 6))
    kernel = lacis.compile("ij,kli,klj->ij", first, a, b)
    assert set(kernel.parts) == {"ell", "rest"}
    check(kernel(second, a, b), torch.einsum("kli,klj->ij", a, b), second.to_mask())


@pytest.mark.long
@pytest.mark.parametrize("density", [0.3, 0])
def test_rows_are_walked_where_a_step_asks_for_them(density):
    """Row 1 has no entry."""
    kept = mask(17, 23, density=density)
    pattern = lacis.Pattern.from_mask(kept, lacis.Csr)
    a, b = (torch.randn(size, 9) for size in (17, 23))
    kernel = lacis.compile("ij,ik,jk->ij", pattern, a, b, steps=[lacis.steps.Walk("0", "i")])
    assert "lacis.walk %" not in kernel.asm["loops"]
    check(kernel(pattern, a, b), a @ b.T, kept)
    with pytest.raises(
        lacis.CompileError, match="only entries in order under dense rows, as in CSR, are walked row by"
    ):
        lacis.compile("ij,ik,jk->ij", pattern, a, b, steps=[lacis.steps.Walk("0", "j")])
