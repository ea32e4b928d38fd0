# SPDX-License-Identifier: Apache-2.0
"""Formats that count diagonals, places and sorted rows: packed, read, validated, multiplied, against float64 dense."""

import expressions
import lacis
import pytest
import torch
from hypothesis import given, settings
from lacis.errors import DataError, FormatError
from lacis.formats import Format
from lacis.packing import PackedTensor, pack
from strategies import mostly_long, sparse, tensors

FORMATS = {
    "dia": str(lacis.Dia()),
    "dia of rows": "(i, j) let d = j - i -> (d : compressed, i : range)",
    "antidiagonals": "(i, j) let d = i + j -> (d floordiv 4 : compressed, d mod 4 : dense, i : range)",
    "antidiagonals of blocks of rows": "(i, j) let d = i + j -> ((d, i floordiv 4) : var*delta<8>, i mod 4 : range)",
    "shifted": "(i, j) let d = j - i -> (i : dense, d : var*delta<8>)",
    "sum of axes bound again": "(i, j) let d = j - i, e = d + i -> (d : compressed, e : range)",
    "sell": str(lacis.Sell(4, 8)),
    "sell of all": str(lacis.Sell(32)),
    "sorted rows": "(i, j) let r = rank(i by nnz within 5) -> (r : dense, j : compressed)",
    "jagged diagonals": "(i, j) let r = rank(i by nnz), s = slot(j in i) -> "
    "(s : compressed, r : ragged, j : singleton<pad=true>)",
    "sorted columns, wide": "(i, j) let d = rank(j by nnz) -> (d : dense, i : compressed<crd=i64>)",
    "places": "(i, j) let s = slot(j in i) -> (s : compressed, i : compressed, j : singleton<pad=true>)",
    "places in rows": "(i, j) let s = slot(j in i floordiv 4) -> "
    "(i floordiv 4 : dense, s : ragged, (i mod 4, j) : var*delta<8>)",
}


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=8, deadline=None)
@given(tensor=tensors())
def test_what_is_packed_is_read_again(name, tensor):
    packed = pack(tensor, FORMATS[name]).validate()
    assert torch.equal(packed.to_dense(), tensor) and packed.nnz == int((tensor != 0).sum())
    assert Format.parse(str(packed.format)) == packed.format
    again = PackedTensor.from_storage(packed.format, packed.shape, packed.tensors)
    assert torch.equal(again.to_dense(), tensor) and torch.equal(again.T.validate().to_dense(), tensor.T)


@pytest.mark.parametrize("name", FORMATS)
def test_products_and_gradients_of_the_reference(name):
    for density in (0.0, 0.05, 0.4, 1.0):
        w = sparse(9, 35, density=density, dtype=torch.float64).requires_grad_()
        packed, x = pack(w.detach(), FORMATS[name]), torch.randn(3, 35, dtype=torch.float64).requires_grad_()
        y = lacis.einsum("ij,bj->bi", packed.with_values(packed.pattern.gather(w)), x, target="eager")
        torch.testing.assert_close(y, x @ w.T)
        dw, dx = torch.autograd.grad(y.square().sum(), (w, x))
        torch.testing.assert_close(dx, 2 * y.detach() @ w.detach())
        torch.testing.assert_close(dw, (2 * y.detach().T @ x.detach()) * (w != 0))


HERE = [("dia", "ij,bj->bi"), ("sell", "ij,bi,bj->ij")]
ALL = ("ij,bj->bi", "ij,bi->bj", "ij,bi,bj->ij", "ij->i", "ij,j->", "ij,bi,bj->b")
OTHERS = [(name, e) for name in FORMATS for e in ALL]


@pytest.mark.parametrize("name, expression", mostly_long(list(dict.fromkeys(HERE + OTHERS)), *HERE))
def test_kernels(name, expression):
    expressions.run(expression, Format.parse(FORMATS[name]), torch.float32, sizes=expressions.SIZES[:5])


SHAPES = [(101, 101), (33, 201), (201, 33), (1, 41), (41, 1), (64, 64)]  # of two classes
OWN = ["dia", "dia of rows", "antidiagonals", "shifted", "sell", "sell of all", "sorted rows"]


@pytest.mark.parametrize("name", mostly_long(FORMATS, "dia", "sell"))
def test_kernels_for_a_gpu(name):
    kernel = lacis.compile("ij,bj->bi", pack(torch.eye(8, 40), FORMATS[name]), torch.ones(64, 40), target="cuda:sm_90a")
    assert ".visible .entry" in kernel.asm["ptx"]
    assert ("lacis.walk" in kernel.asm["loops"]) == (name not in OWN)
    assert ('own("0", "permute")' in str(kernel.steps)) == (name in ("sell", "sell of all", "sorted rows"))


@pytest.mark.parametrize("rows, columns", mostly_long(SHAPES, *SHAPES[:-1]))
def test_diagonals_of_any_shape(rows, columns):
    """Vectors of rows: whole ones, and those that a diagonal enters or leaves."""
    offsets = torch.arange(columns)[None] - torch.arange(rows)[:, None]
    mask = torch.isin(offsets, torch.tensor([-rows + 1, -35, -3, 0, 1, 2, 31, 64, columns - 1]))
    w = torch.randn(rows, columns, dtype=torch.float64) * mask
    x = torch.randn(columns, dtype=torch.float64).requires_grad_()
    packed = pack(w, lacis.Dia)
    values = packed.values.clone().requires_grad_()
    y = lacis.einsum("ij,j->i", packed.with_values(values), x)
    torch.testing.assert_close(y, w @ x)
    dvalues, dx = torch.autograd.grad(y.square().sum(), (values, x))
    torch.testing.assert_close(dx, 2 * w.T @ y.detach())
    expected = packed.with_values(dvalues).validate().to_dense()
    torch.testing.assert_close(expected, 2 * torch.outer(y, x).detach() * mask)


def test_diagonals_lie_as_scipy_has_them():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    w = torch.zeros(4, 6)
    w[0, 1] = w[2, 3] = w[3, 4] = 2
    w[3, 0] = w[1, 5] = 3
    packed = pack(w, lacis.Dia).validate()
    theirs = scipy_sparse.dia_array(w.numpy())
    assert (packed.storage["crd0"] - (4 - 1)).tolist() == theirs.offsets.tolist()
    ours = packed.values.reshape(len(theirs.offsets), 6)
    assert torch.equal(ours[:, : theirs.data.shape[1]], torch.from_numpy(theirs.data))
    assert not ours[:, theirs.data.shape[1] :].any() and packed.nnz == 5
    assert scipy_sparse.dia_array((ours.numpy(), theirs.offsets), shape=(4, 6)).toarray().tolist() == w.tolist()
    assert torch.equal(packed.T.validate().to_dense(), w.T)


def test_slices_lie_as_others_have_them():
    """Slices of `c` sorted rows, each as wide as its longest row, in columns: the arrays of sliced ELL."""
    w, c, sigma = sparse(11, 9, density=0.4), 2, 4
    packed = pack(w, lacis.Sell(c, sigma)).validate()
    count = (w != 0).sum(1)
    order = [
        row
        for first in range(0, 11, sigma)
        for row in sorted(range(first, min(first + sigma, 11)), key=lambda r: -count[r])
    ]
    assert packed.storage["perm0"].tolist() == order
    values, columns, begin = [], [], [0]
    for first in range(0, 11, c):
        rows = [w[row].nonzero().reshape(-1).tolist() for row in order[first : first + c]] + [[]] * (first + c - 11)
        width = max(map(len, rows))
        for place in range(width):
            at = [row[place] if place < len(row) else -1 for row in rows]
            columns += at
            values += [float(w[order[first + n], j]) if j >= 0 else 0 for n, j in enumerate(at)]
        begin.append(begin[-1] + width)
    assert packed.storage["pos1"].tolist() == begin and packed.storage["crd3"].tolist() == columns
    assert packed.values.tolist() == values


def test_an_order_of_rows_has_each_once():
    packed = pack(torch.eye(6), lacis.Sell(2))
    packed.storage["perm0"][1] = 0
    with pytest.raises(DataError, match=r"'perm0' at \[0\]: coordinate 0 is there twice"):
        PackedTensor.from_storage(packed.format, packed.shape, packed.tensors)


def test_bindings_that_make_no_sense():
    for text, message in [
        ("(i, j) let d = j - i -> (d : compressed)", "axis 'i' is missing"),
        ("(i, j) let d = j - i -> (i : dense, j : dense)", "binding 'd' is not used by any level"),
    ]:
        with pytest.raises(FormatError, match=message):
            Format.parse(text)
    with lacis.iter(dim=2) as (I, J):
        with pytest.raises(FormatError, match="whole axes"):
            lacis.diagonal(I.block(4)[0], J)
    schedule = lacis.create_schedule(torch.nn.Linear(8, 8), target="eager")
    with pytest.raises(lacis.Error, match="neither nested nor blocked"):
        schedule["weight"].block(4, 4).set_format(lacis.Dia).site.format()
