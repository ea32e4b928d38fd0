# SPDX-License-Identifier: Apache-2.0
"""Equal shares of entries own the rows of an output: rows that cross an edge, those without entries, all semirings."""

import pytest
import torch
from expressions import limit
from strategies import mostly_long

import lacis
from lacis import steps

OWN = steps.Own("0", "share")
PAIRS = "(i, j) -> ((i, j) : compressed)"
BLOCKS = (
    "(i, j) -> (i floordiv 4 : compressed<unique=false>, j floordiv 4 : singleton, i mod 4 : dense, j mod 4 : dense)"
)
LINEAR, VECTOR, COLUMNS = "ij,bj->bi", "ij,j->i", "ij,jk->ik"
SHAPES = [(37, 53), (33, 9), (0, 5), (5, 0), (41, 3)]


def sparse(*shape, rows=0.7, density=0.3):
    """A random tensor some of whose rows have entries, one of them all, and which of its places are entries."""
    generator = torch.Generator().manual_seed(sum(shape))
    mask = torch.rand(shape, generator=generator) < density
    mask &= torch.rand(shape[0], generator=generator)[(...,) + (None,) * (len(shape) - 1)] < rows
    mask[5:6] = rows > 0
    return torch.where(mask, torch.randn(shape, generator=generator), 0), mask


def shares(loops: str, entries: int) -> list:
    return [OWN, steps.SplitNnz(loops, entries)]


@pytest.mark.parametrize("entries", mostly_long([1, 4, 512], 4))
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_that_cross_an_edge_are_finished_once(shape, entries):
    for rows in (0.0, 0.7, 1.0):
        dense, mask = sparse(*shape, rows=rows)
        bias, packed = torch.randn(shape[0]), lacis.pack(dense, lacis.Coo, mask)
        for batch in (3, 35):
            x = torch.randn(batch, shape[1])
            expected = torch.nn.functional.gelu(x.double() @ dense.double().T + bias)
            epilogue = lacis.Epilogue(bias=bias, activation="gelu")
            y = lacis.einsum(LINEAR, packed, x, epilogue=epilogue, steps=shares("i_j", entries))
            torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-5)


CASES = [
    (VECTOR, "Coo", "i_j"),
    (COLUMNS, "Coo", "i_j"),
    (VECTOR, PAIRS, "i_j"),
    (COLUMNS, PAIRS, "i_j"),
    (LINEAR, "GroupCoo", "i_j"),
    (COLUMNS, BLOCKS, "i0_j0"),
    ("ijk,k->ij", "Coo", "i_j_k"),
    ("ijk,k->ij", "(i, j, k) -> ((i, j, k) : compressed)", "i_j_k"),
    ("ijk,jr,kr->ir", "Coo", "i_j_k"),
]
FORMATS = {"Coo": lacis.Coo(), "GroupCoo": lacis.GroupCoo(4)}


@pytest.mark.parametrize("dtype", mostly_long([torch.float32, torch.float64, torch.bfloat16], torch.float32))
@pytest.mark.parametrize("expression, format, loops", mostly_long(CASES, CASES[2]))
def test_shares_of_formats(expression, format, loops, dtype):
    sizes = {"i": 18, "j": 11, "k": 5, "b": 7, "r": 6}
    (first, *others), _ = expression.split("->")[0].split(","), None
    if "ijk" not in expression:
        sizes["k"] = 33
    dense, mask = sparse(*(sizes[letter] for letter in first))
    operands = [torch.randn([sizes[letter] for letter in term]).to(dtype) for term in others]
    dense = dense.to(dtype)
    packed = lacis.pack(dense, FORMATS.get(format) or lacis.Format.parse(format), mask)
    kernel = lacis.compile(expression, packed, *operands, steps=shares(loops, 3))
    assert "lacis.walk" not in kernel.asm["loops"]
    y, exact = kernel(packed, *operands), [t.double() for t in (dense, *operands)]
    error = (y.double() - torch.einsum(expression, *exact)).abs()
    assert bool((error <= limit(expression, [dense, *operands], sizes, dtype)).all())
    assert all(torch.equal(kernel(packed, *operands), y) for _ in range(20))


@pytest.mark.long
@pytest.mark.parametrize("format", ["Coo", PAIRS])
def test_parts_of_the_largest(format):
    dense, mask = sparse(17, 23)
    packed = lacis.pack(dense, FORMATS.get(format) or lacis.Format.parse(format), mask)
    x = torch.randn(23)
    y = lacis.einsum(VECTOR, packed, x, semiring="max_plus", steps=shares("i_j", 3))
    torch.testing.assert_close(y, torch.where(mask, dense + x, -torch.inf).amax(-1))


def test_duplicates_are_added_and_what_is_not_stored_stays_with_its_row():
    index = torch.tensor([[0, 3, 3, 3, 3, 3, 7], [1, 0, 0, 0, 2, 2, 1]])
    values = torch.arange(1.0, 8.0)
    packed = lacis.pack(torch.sparse_coo_tensor(index, values, (9, 3), check_invariants=True), lacis.Coo)
    x = torch.randn(3, 3)
    x[1, 2] = torch.nan
    epilogue = lacis.Epilogue(bias=torch.zeros(9), activation="gelu")
    y = lacis.einsum(LINEAR, packed, x, epilogue=epilogue, steps=shares("i_j", 4))
    assert packed.nnz == 7 and y.isnan().nonzero().tolist() == [[1, 3]]
    rest = torch.nn.functional.gelu(x.nan_to_num() @ packed.to_dense().T)
    torch.testing.assert_close(y[[0, 2]], rest[[0, 2]])


def test_most_rows_without_an_entry_are_not_walked():
    """The default where rows are many and entries few; a hint says so, with which a kernel runs on others too."""
    few, many = torch.zeros(2048, 8), sparse(2048, 8)[0]
    few[::5, ::3] = torch.randn(410, 3)[:, :1]
    few[:1000] = 0
    x = torch.randn(8)
    kernel = lacis.compile(VECTOR, lacis.pack(few, lacis.Coo), x)
    assert str(kernel.steps).startswith('own("0", "share")  # most i have no entry')
    assert "lacis.walk" not in kernel.asm["loops"]
    for dense in (few, many):
        packed = lacis.pack(dense, lacis.Coo)
        torch.testing.assert_close(kernel(packed, x), dense @ x)
    assert kernel.derived == []


@pytest.mark.long
@pytest.mark.parametrize("expression", [VECTOR, LINEAR, COLUMNS])
@pytest.mark.parametrize("format", ["Coo", PAIRS, "GroupCoo", BLOCKS])
def test_shares_on_a_gpu_assemble(format, expression):
    dense, mask = sparse(37, 53)
    packed = lacis.pack(dense, FORMATS.get(format) or lacis.Format.parse(format), mask)
    x = torch.randn(*{VECTOR: (53,), LINEAR: (35, 53), COLUMNS: (53, 33)}[expression])
    ptx = lacis.compile(expression, packed, x, target="cuda:sm_90a", steps=[OWN]).asm["ptx"]
    assert ".entry" in ptx


REFUSED = {
    "once": (lacis.Dcsr, "level 0 lists each i once"),
    "located": (lacis.Csr, "its levels are located, and no position is shared"),
    "columns": (
        "(i, j) -> (j : compressed<unique=false>, i : singleton)",
        "level 0 is of j, and the output does not have the first of that",
    ),
    "below": (
        "(i, j) -> (i floordiv 4 : compressed<unique=false>, (j, i mod 4) : singleton)",
        "a level below finds (j, i) of the output too",
    ),
    "no order": (
        "(i, j) -> (i : compressed<unique=false, ordered=false>, j : singleton)",
        "level 0 does not name i for each position, in ascending order",
    ),
}


@pytest.mark.parametrize("format, said", REFUSED.values(), ids=REFUSED)
def test_what_has_no_shares_is_refused(format, said):
    packed = lacis.pack(sparse(17, 23)[0], lacis.Format.parse(format) if isinstance(format, str) else format)
    with pytest.raises(lacis.CompileError, match=said.replace("(", r"\(").replace(")", r"\)")):
        lacis.compile(LINEAR, packed, torch.randn(3, 23), steps=[OWN])


@pytest.mark.long
def test_gradients_of_shares():
    dense, mask = sparse(9, 7)
    packed = lacis.pack(dense.double(), lacis.Coo, mask)
    values, x = packed.values.clone().requires_grad_(), torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    product = lambda values, x: lacis.einsum(LINEAR, packed.with_values(values), x, steps=shares("i_j", 3))
    assert torch.autograd.gradcheck(product, (values, x))
