# SPDX-License-Identifier: Apache-2.0
"""Packed tensors as neighbours of others: products by `@`, SciPy, notebooks, and what a packed weight answers."""

import sys

import lacis
import pytest
import torch

D = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
D = D * (torch.rand(7, 5, generator=torch.Generator().manual_seed(1)) < 0.5)
P = lacis.pack(D, lacis.Csr)
LONG_COLUMNS, LONG_ROWS = [(5,), (2, 5, 3), (2, 0, 5, 3)], [(7,), (0, 3, 7)]


@pytest.mark.parametrize("shape", [(5, 3), *(pytest.param(s, marks=pytest.mark.long) for s in LONG_COLUMNS)])
def test_matrix_times_dense(shape):
    x = torch.randn(shape)
    torch.testing.assert_close(P @ x, D @ x)


@pytest.mark.parametrize("shape", [(3, 7), (2, 3, 7), *(pytest.param(s, marks=pytest.mark.long) for s in LONG_ROWS)])
def test_dense_times_matrix(shape):
    x = torch.randn(shape)
    torch.testing.assert_close(x @ P, x @ D)


@pytest.mark.long
def test_products_are_differentiable():
    x, values = torch.randn(3, 7, requires_grad=True), P.values.clone().requires_grad_()
    found = torch.autograd.grad((x @ P.with_values(values)).sum(), [x, values])
    torch.testing.assert_close(found[0], D.sum(1).expand(3, 7))
    torch.testing.assert_close(found[1], P.pattern.gather(x.detach().sum(0)[:, None].expand(7, 5)))


def test_transposes():
    assert P.T.values is P.values
    torch.testing.assert_close(P.T.to_dense(), D.T)


def test_refused_products():
    cube = lacis.pack(torch.ones(2, 2, 2), lacis.Csf(3))
    for product in (lambda: cube @ torch.ones(2), lambda: torch.ones(2) @ cube, lambda: cube.T):
        with pytest.raises(lacis.DataError, match="of matrices, the packed tensor has 3 axes"):
            product()
    with pytest.raises(lacis.DataError, match="two packed operands has no code.*take .to_dense"):
        P @ P
    with pytest.raises(lacis.DataError, match="einsum: 'j' is 5 long, but 4"):
        P @ torch.ones(4)
    with pytest.raises(TypeError, match="unsupported operand"):
        P @ 3


KINDS = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("class_", ["array", "matrix"])
def test_from_scipy(kind, class_):
    scipy = pytest.importorskip("scipy.sparse")
    matrix = getattr(scipy, f"{kind}_{class_}")(D.numpy())
    packed = lacis.pack(matrix, lacis.Csr)
    assert packed.storage["crd1"].equal(P.storage["crd1"]) and packed.values.equal(P.values)


def test_scipys_duplicates_and_zeros():
    scipy = pytest.importorskip("scipy.sparse")
    matrix = scipy.coo_array(([1.0, 2.0, 0.0], ([1, 1, 0], [2, 2, 1])), (3, 4))
    assert lacis.pack(matrix, lacis.Csr).values.tolist() == [0.0, 3.0]
    assert sorted(lacis.pack(matrix, lacis.Coo).values.tolist()) == [0.0, 1.0, 2.0]
    assert lacis.pack(matrix, lacis.Csr, mask=torch.eye(3, 4, dtype=torch.bool)).values.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(lacis.DataError, match="torch has no dtype for the SciPy matrix's float128"):
        lacis.pack(scipy.csr_array(D.numpy().astype("longdouble")), lacis.Csr)


@pytest.mark.parametrize("format", [lacis.Csr(), lacis.Csc(), lacis.Coo(), lacis.Bsr(7, 5), lacis.Bsr(1, 5)], ids=str)
def test_to_scipy(format):
    scipy = pytest.importorskip("scipy.sparse")
    matrix = lacis.pack(D, format).to_scipy()
    assert scipy.issparse(matrix) and matrix.format == type(format).__name__.lower()
    torch.testing.assert_close(torch.from_numpy(matrix.toarray()), D)
    torch.testing.assert_close(lacis.pack(matrix, format).to_dense(), D)


def test_to_scipy_refuses(monkeypatch):
    pytest.importorskip("scipy.sparse")
    for format in (lacis.Ell, lacis.Dense, lacis.Bsr(2, 2)):
        with pytest.raises(lacis.FormatError, match="SciPy has no layout for .*to_scipy..csr.. has the same"):
            lacis.pack(D, format).to_scipy()
    with pytest.raises(lacis.DataError, match=r"no sparse arrays of torch.bfloat16; call .to\(torch.float32\)"):
        P.to(torch.bfloat16).to_scipy()
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(lacis.DataError, match="SciPy is not installed"):
        P.to_scipy()


@pytest.mark.parametrize("layout", KINDS)
def test_to_a_layout_of_scipy(layout):
    scipy = pytest.importorskip("scipy.sparse")
    for format in (lacis.Csc(), lacis.Ell(), lacis.Bsr(2, 3), lacis.Hyb(2, 1)):
        matrix = lacis.pack(D, format).to_scipy(layout)
        assert isinstance(matrix, getattr(scipy, f"{layout}_array"))
        torch.testing.assert_close(torch.from_numpy(matrix.toarray()), D)
        assert lacis.pack(matrix, lacis.Csr, mask=D != 0).values.equal(P.values)
    assert lacis.pack(torch.zeros(3, 0), lacis.Csr).to_scipy(layout).shape == (3, 0)


def test_layouts_that_scipy_lacks():
    pytest.importorskip("scipy.sparse")
    with pytest.raises(lacis.FormatError, match="SciPy has no layout 'ell'; it has csr, csc, coo, bsr, dia, lil, dok"):
        P.to_scipy("ell")
    cube = lacis.pack(torch.ones(2, 2, 2), lacis.Csf)
    assert cube.to_scipy("coo").shape == (2, 2, 2)
    with pytest.raises(lacis.FormatError, match="SciPy's dia has 2 axes, the tensor has 3; coo takes any"):
        cube.to_scipy("dia")


def test_blocked_ell_there_and_back():
    dense = torch.randn(12, 20) * (torch.rand(3, 5) < 0.5).repeat_interleave(4, 0).repeat_interleave(4, 1)
    dense[4:8] = 0
    packed = lacis.pack(dense, lacis.BlockedEll(4, 4))
    col_ind, values = packed.to_blocked_ell()
    assert col_ind.shape[0] == 3 and col_ind[1].eq(-1).all() and values.shape == (12, 4 * col_ind.shape[1])
    for row, blocks in enumerate(col_ind.tolist()):
        for n, column in enumerate(blocks):
            mine = dense[4 * row : 4 * row + 4, 4 * column : 4 * column + 4] if column >= 0 else torch.zeros(4, 4)
            assert values[4 * row : 4 * row + 4, 4 * n : 4 * n + 4].equal(mine)
    assert lacis.from_blocked_ell(col_ind, values, 4, columns=20).to_dense().equal(dense)
    order = torch.randperm(col_ind.shape[1])  # blocks may lie in any order, and anything under -1
    shuffled = values.reshape(12, -1, 4)[:, order].masked_fill(
        col_ind[:, order].repeat_interleave(4, 0)[..., None] < 0, 9
    )
    again = lacis.from_blocked_ell(col_ind[:, order].long(), shuffled.reshape(12, -1).requires_grad_(), 4, columns=20)
    assert again.to_dense().equal(dense) and again.nnz == 16 * int((col_ind >= 0).sum())
    again.values.sum().backward()
    assert again.storage["crd1"].dtype == torch.int64


def test_blocked_ell_of_nothing():
    packed = lacis.from_blocked_ell(torch.zeros(0, 0, dtype=torch.int32), torch.zeros(0, 0), 4)
    assert packed.shape == (0, 0)
    packed = lacis.from_blocked_ell(torch.full((2, 1), -1), torch.full((8, 4), torch.nan), 4, columns=6)
    assert packed.to_dense().equal(torch.zeros(8, 6))


@pytest.mark.parametrize(
    "col_ind, values, block, message",
    [
        (torch.tensor([[0]]), torch.ones(4, 4), 0, "a block size must be a positive integer"),
        (torch.tensor([0]), torch.ones(4, 4), 4, "'col_ind' must be a dense tensor with 2 axes"),
        (torch.tensor([[0.0]]), torch.ones(4, 4), 4, "'col_ind' must be int32 or int64, not torch.float32"),
        (torch.tensor([[0]]), torch.ones(4, 8), 4, r"'values' must be \[4, 4\] on cpu"),
        (torch.tensor([[1, 1]]), torch.ones(4, 8), 4, "'crd1' at .*coordinate 1 is there twice"),
        (torch.tensor([[5]]), torch.ones(4, 4), 4, "coordinate 5 is out of range, the level has 3"),
    ],
)
def test_blocked_ell_arrays_that_do_not_fit(col_ind, values, block, message):
    with pytest.raises(lacis.DataError, match=message):
        lacis.from_blocked_ell(col_ind, values, block, columns=12)


def test_blocked_ell_needs_its_format():
    for format in (lacis.Csr(), lacis.Bsr(5, 5), lacis.BlockedEll(7, 5)):
        with pytest.raises(lacis.FormatError, match=r"square blocks.*to.lacis.BlockedEll.16, 16.. stores"):
            lacis.pack(D, format).to_blocked_ell()
    with pytest.raises(lacis.FormatError, match=r"whole blocks, 5 does not divide \[7, 5\]"):
        lacis.pack(D, lacis.BlockedEll(5, 5)).to_blocked_ell()


def build():
    model = torch.nn.Sequential(torch.nn.Linear(5, 7))
    s = lacis.create_schedule(model, target="eager")
    s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    return s, s.build()[0].weight


def test_notebooks():
    s, _ = build()
    for shown, word in ((P, "nnz="), (s, "Linear"), (s.report(), "sparse layers")):
        text = shown._repr_html_()
        assert text.startswith("<pre") and text.rstrip().endswith("</pre>") and word in text
    assert "(i : dense, j : compressed)&gt;" in P._repr_html_()


def test_weights_say_what_they_have_instead():
    _, weight = build()
    torch.testing.assert_close(weight.T.to_dense(), weight.to_dense().T)
    x = torch.randn(3, 5)
    torch.testing.assert_close(x @ weight.T, x @ weight.to_dense().T)
    for name, instead in (("data", "set_packed"), ("grad", "weight.values.grad")):
        with pytest.raises(AttributeError, match=f"a packed weight has no '{name}': .*{instead}"):
            getattr(weight, name)
        with pytest.raises(lacis.DataError, match=f"a packed weight has no '{name}': .*{instead}"):
            setattr(weight, name, torch.zeros(7, 5))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int8])
def test_semi_structured_arrays_are_bit_for_bit_those_of_torch(dtype):
    from torch.sparse import _semi_structured_conversions as theirs

    for rows, columns in ((32, 128), (96, 256)):
        n, m = (1, 2) if dtype == torch.float32 else (2, 4)
        order = torch.rand(rows, columns // m, m).argsort(-1).argsort(-1)
        keep = (order < n) & (torch.rand(order.shape) < 0.8)  # some groups have fewer
        w = torch.randint(1, 9, (rows, columns)).to(dtype) * keep.reshape(rows, columns)
        packed = lacis.pack(w, lacis.NMFormat(n, m))
        values, metadata = lacis.to_semi_structured(packed)
        for mine, other in zip((values, metadata), theirs.sparse_semi_structured_from_dense_cutlass(w)):
            assert mine.dtype == other.dtype and torch.equal(mine, other)
        again = lacis.from_semi_structured(values, metadata).validate()
        assert again.format == packed.format and torch.equal(again.to_dense(), w)
        assert torch.equal(theirs.sparse_semi_structured_to_dense_cutlass(values, metadata), w)


def test_semi_structured_values_have_gradients():
    w = torch.tensor([0.0, 3.0]).repeat(32, 16)
    packed = lacis.pack(w, lacis.NMFormat(1, 2))
    packed = packed.with_values(packed.values.clone().requires_grad_())
    values, metadata = lacis.to_semi_structured(packed)
    lacis.from_semi_structured(values * 2, metadata).to_dense().sum().backward()
    assert torch.equal(packed.values.grad, torch.full_like(packed.values, 2))


@pytest.mark.parametrize(
    "values, metadata, message",
    [
        (torch.ones(32), torch.ones(32, 4), "'values' must be a dense tensor with 2 axes"),
        (torch.ones(32, 32).double(), torch.ones(32, 4), "torch has semi-structured float16.*not torch.float64"),
        (torch.ones(30, 32).half(), torch.ones(30, 4).short(), r"are multiples of \[32, 32\], not \[30, 32\]"),
        (torch.ones(32, 32).half(), torch.ones(32, 4).int(), r"must be torch.int16 \[32, 4\] on cpu, not torch.int32"),
        (torch.ones(32, 32).half(), torch.zeros(32, 4).short(), "group 0 in row 0 is 0, 0, which are no 2 of 4"),
    ],
)
def test_semi_structured_arrays_that_do_not_fit(values, metadata, message):
    with pytest.raises(lacis.DataError, match=message):
        lacis.from_semi_structured(values, metadata)


def test_semi_structured_needs_its_format_and_whole_tiles():
    with pytest.raises(lacis.FormatError, match=r"keep 1 of 2.*to.lacis.NMFormat.1, 2.. stores"):
        lacis.to_semi_structured(lacis.pack(D, lacis.Csr))
    with pytest.raises(lacis.FormatError, match=r"multiples of \[32, 64\] rows and columns, not \[32, 32\]"):
        lacis.to_semi_structured(lacis.pack(torch.zeros(32, 32).half(), lacis.TwoFour))


RAGGED = "(i, j, k) -> (i : dense, j : ragged, k : dense)"


@pytest.mark.parametrize("lengths", [(4, 0, 7, 1), (0, 0), (3,)])
def test_jagged_tensors_share_their_arrays(lengths):
    rows = [torch.randn(length, 3) for length in lengths]
    nested = torch.nested.nested_tensor(rows, layout=torch.jagged)
    packed = lacis.pack(nested, RAGGED).validate()
    assert packed.shape == (len(rows), max(lengths), 3) and packed.nnz == 3 * sum(lengths)
    assert packed.storage["pos1"] is nested.offsets() and packed.values.data_ptr() == nested.values().data_ptr()
    for row, mine, back in zip(rows, packed.to_dense(), packed.to_torch().unbind()):
        assert torch.equal(mine[: len(row)], row) and not mine[len(row) :].any() and torch.equal(back, row)
    assert torch.equal(lacis.pack(nested, lacis.Csf(3)).to_dense(), packed.to_dense())


def test_nested_tensors_that_are_not_jagged():
    with pytest.raises(lacis.DataError, match="is packed in the layout torch.jagged"):
        lacis.pack(torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)]), RAGGED)
    narrow = torch.nested.narrow(
        torch.ones(2, 5, 3), 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=torch.jagged
    )
    with pytest.raises(lacis.DataError, match="ragged along axis 1, without gaps"):
        lacis.pack(narrow, RAGGED)
