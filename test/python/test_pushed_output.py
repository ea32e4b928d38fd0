# SPDX-License-Identifier: Apache-2.0
"""Formats whose levels end with the rows of the output add to it in memory: CSC, coordinates by columns."""

import grid
import pytest
import torch
from expressions import limit
from strategies import mostly_long

import lacis
from lacis import steps

BY_COLUMNS = "(i, j) -> (j : compressed<unique=false>, i : singleton)"
BLOCKS = "(i, j) -> (j floordiv 3 : dense, i floordiv 4 : compressed, i mod 4 : dense, j mod 3 : dense)"
PADDED = "(i, j) -> (j : dense, i : packed<?>)"
OWNED = "(i, j) -> (i floordiv 300 : dense, j : dense, i mod 300 : compressed)"
TWICE = "(i, j) -> (j : dense, i : compressed<unique=false>), multiset"
CSC = "(i, j) -> (j : dense, i : compressed)"
LINEAR, PUSH = "ij,bj->bi", steps.Own("0", "push")


def sparse(*shape, density=0.3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(shape, generator=generator) < density
    return torch.where(mask, torch.randn(shape, generator=generator), 0), mask


def dense_of(expression, sizes, dtype=torch.float32):
    return torch.randn([sizes[letter] for letter in expression.split(",")[1].split("->")[0]]).to(dtype)


def check(expression, packed, dense, x, **options):
    kernel = lacis.compile(expression, packed, x, steps=options.pop("steps", [PUSH]), **options)
    y = kernel(packed, x)
    sizes = dict(zip(expression.split(",")[0], dense.shape))
    error = (y.double() - torch.einsum(expression, dense.double(), x.double())).abs()
    assert bool((error <= limit(expression, [dense, x], sizes, x.dtype)).all())
    return kernel


FORMATS = [CSC, BY_COLUMNS, BLOCKS, PADDED, OWNED]
SHAPES = [(17, 23), (0, 5), (5, 0), (331, 9)]


@pytest.mark.parametrize("expression", mostly_long([LINEAR, "ij,jk->ik", "ij,j->i", "ij,bjk->bik"], LINEAR))
@pytest.mark.parametrize("format", mostly_long(FORMATS, CSC))
def test_what_columns_find_is_added_to_the_output(format, expression):
    for shape in SHAPES:
        dense, mask = sparse(*shape)
        packed = lacis.pack(dense, lacis.Format.parse(format), mask)
        for few in (3, 37):
            x = dense_of(expression, {"j": shape[1], "b": few, "k": few})
            assert "lacis.walk" not in check(expression, packed, dense, x).asm["loops"]


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_half_types_are_added_up_in_a_workspace_of_float32(dtype):
    dense, mask = sparse(40, 61)
    dense = (dense * 4).to(dtype)
    packed, x = lacis.pack(dense, lacis.Csc, mask), (torch.randn(3, 61) * 4).to(dtype)
    y = lacis.einsum(LINEAR, packed, x, steps=[PUSH])
    expected = x.double() @ dense.double().T
    assert y.dtype == dtype
    torch.testing.assert_close(y, expected.to(dtype), rtol=2**-7 if dtype == torch.bfloat16 else 1e-3, atol=1e-2)


@pytest.mark.long
@pytest.mark.parametrize("activation", [None, "gelu"])
def test_what_follows_the_sum_is_done_behind_it(activation):
    dense, mask = sparse(17, 23)
    packed, x, bias = lacis.pack(dense, lacis.Csc, mask), torch.randn(3, 23), torch.randn(17)
    y = lacis.einsum(LINEAR, packed, x, epilogue=lacis.Epilogue(bias=bias, activation=activation), steps=[PUSH])
    expected = x.double() @ dense.double().T + bias
    expected = torch.nn.functional.gelu(expected) if activation else expected
    torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.long
def test_the_largest_and_entries_that_are_there_twice():
    dense, mask = sparse(17, 23)
    x = torch.randn(3, 23)
    y = lacis.einsum(LINEAR, lacis.pack(dense, lacis.Csc, mask), x, semiring="max_plus", steps=[PUSH])
    torch.testing.assert_close(y, torch.where(mask, dense + x[:, None], -torch.inf).amax(-1))
    index, values = torch.tensor([[2, 2, 2, 0], [1, 1, 1, 3]]), torch.tensor([1.0, 2.0, 4.0, 8.0])
    twice = lacis.pack(torch.sparse_coo_tensor(index, values, (4, 5), check_invariants=True), lacis.Format.parse(TWICE))
    assert twice.slots == 4
    y = lacis.einsum("ij,j->i", twice, torch.ones(5), steps=[PUSH, steps.Unroll("i", 4)])
    assert y.tolist() == [8.0, 0.0, 7.0, 0.0]


UNITS = [steps.Split("j", 8), steps.Race("j0", "private"), steps.Parallel("j0")]


@pytest.mark.long
@pytest.mark.parametrize("expression", ["ij,j->i", LINEAR])
def test_units_that_meet_have_copies(expression):
    dense, mask = sparse(40, 61)
    packed, x = lacis.pack(dense, lacis.Csc, mask), dense_of(expression, {"j": 61, "b": 3})
    kernel = check(expression, packed, dense, x, steps=[PUSH, *UNITS])
    outer = "b" if expression == LINEAR else "i"  # of the nest that adds the copies up
    assert {steps.Parallel("j0.copy"), steps.Parallel(f"j0.{outer}")} <= set(kernel.steps)
    first = kernel(packed, x)
    assert all(torch.equal(kernel(packed, x), first) for _ in range(50))
    assert lacis.compile(expression, packed, x, steps=kernel.steps).loaded.code == kernel.loaded.code


@pytest.mark.long
@pytest.mark.parametrize("expression", ["ij,j->i", LINEAR])
def test_units_that_meet_add_atomically(expression):
    dense, mask = sparse(40, 61)
    packed, x = lacis.pack(dense, lacis.Csc, mask), dense_of(expression, {"j": 61, "b": 3})
    atomic = [PUSH, steps.Split("j", 8), steps.Race("j0", "atomic"), steps.Parallel("j0")]
    check(expression, packed, dense, x, steps=atomic, deterministic=False)


def test_it_is_taken_where_most_rows_have_no_entry():
    dense = torch.zeros(2048, 16)
    dense[torch.arange(0, 2048, 64), torch.arange(32) % 16] = 1.5
    packed, x = lacis.pack(dense, lacis.Csc), torch.randn(16)
    kernel = lacis.compile("ij,j->i", packed, x)
    assert str(kernel.steps).startswith('own("0", "push")  # most i have no entry')
    torch.testing.assert_close(kernel(packed, x), dense @ x)
    assert lacis.compile("ij,j->i", packed, x, steps=[steps.Own("0", "companion")]).loaded.code != kernel.loaded.code


@pytest.mark.long
def test_gradients():
    dense, mask = sparse(9, 7)
    packed = lacis.pack(dense.double(), lacis.Csc, mask)
    values, x = packed.values.clone().requires_grad_(), torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    product = lambda values, x: lacis.einsum(LINEAR, packed.with_values(values), x, steps=[PUSH])
    assert torch.autograd.gradcheck(product, (values, x))


@pytest.mark.long
@pytest.mark.parametrize("expression", ["ij,j->i", LINEAR, "ij,jk->ik"])
def test_a_gpu_adds_atomically_where_timing_may_decide(expression):
    packed = lacis.pack(sparse(40, 61)[0], lacis.Csc)
    x = dense_of(expression, {"j": 61, "b": 3, "k": 64})
    for deterministic in (True, False):
        kernel = lacis.compile(expression, packed, x, steps=[PUSH], target="cuda:sm_90a", deterministic=deterministic)
        ptx = kernel.asm["ptx"]
        assert ("red." in ptx or "atom." in ptx) != deterministic
        races = {step.strategy for step in kernel.steps if isinstance(step, steps.Race)}
        assert races == ({"atomic"} if not deterministic else {"private"} if expression == "ij,j->i" else set())


@pytest.mark.long
@pytest.mark.parametrize("shard", range(12))
def test_formats_of_the_grid(shard):
    """All that has the form, with one vector and with several; the others say what stands in the way."""
    pushed = 0
    for format, text in list(grid.formats(2).items())[shard::12]:
        if not grid.is_packed(text):
            continue
        dense, mask = sparse(17, 23)
        packed = lacis.pack(dense, format, mask)
        try:
            check("ij,j->i", packed, dense, torch.randn(23))
        except lacis.CompileError as error:
            assert "has no form 'push'" in str(error), text
            continue
        pushed += 1
    assert pushed > 5


@pytest.mark.long
def test_shares_of_rows_are_no_push():
    """They add to what other parts of a sum have stored, and are brought together as shares are."""
    lengths = torch.tensor([0, 700, 1, 0, 40, 256, 255, 0, 2000, 0, 7, 300])
    mask = torch.rand(len(lengths), 4096).argsort(1).argsort(1) < lengths[:, None]
    packed = lacis.pack(mask.float(), lacis.Hyb(3, 4))
    kernel = lacis.compile("ij,j->i", packed, torch.ones(4096), target="cuda:sm_90a")
    assert {step.strategy for step in kernel.steps if step.mnemonic == "race"} == {"order"}
