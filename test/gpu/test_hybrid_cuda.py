# SPDX-License-Identifier: Apache-2.0
"""Sums whose parts run apart are one launch, with the numbers of the dense product, the same each time."""

import lacis
import pytest
import torch
from lacis import steps

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

LENGTHS = (0, 700, 1, 0, 40, 256, 255, 0, 4000, 0, 7, 300, 1, 1, 1, 1, 9, 0, 0, 40, 257, 2, 5, 0)
RULED = f"#lacis.sum<short = {lacis.Csr()} when nnz(i) lt 256, long = {lacis.Dcsr()}>"
CLASSES = ("rows by length", "three classes", "buckets", "strips")  # each row, of a strip, lies in one part
FORMATS = {
    "rows by length": lacis.Format.parse(RULED),
    "three classes": lacis.formats.decompose(
        short=(lacis.Csr, lacis.nnz("i") < 32), some=(lacis.Dcsr, lacis.nnz("i") < 256), long=lacis.Dcsr
    ),
    "buckets": lacis.Hyb(1, 5),
    "strips": lacis.Hyb(3, 4),
    "ell": lacis.formats.decompose(ell=lacis.Ell(8), rest=lacis.Dcsr),
    "ell and csr": lacis.formats.decompose(ell=lacis.Ell(8), rest=lacis.Csr),
    "ell and coo": lacis.formats.decompose(ell=lacis.Ell(8), rest=lacis.Coo),
}


def problem(format, dtype, features, rows=len(LENGTHS)):
    torch.manual_seed(0)
    lengths = torch.tensor(LENGTHS).repeat(-(-rows // len(LENGTHS)))[:rows]
    dense = torch.zeros(rows, 4096, dtype=dtype, device="cuda")
    for row, length in enumerate(lengths.tolist()):
        dense[row, torch.randperm(4096)[:length]] = torch.randn(length, device="cuda").to(dtype)
    return dense, lacis.pack(dense, format), torch.randn(4096, features, device="cuda").to(dtype)


def agree(found, dense, x):
    exact, size = dense.double() @ x.double(), dense.double().abs() @ x.double().abs()
    unit = torch.finfo(found.dtype).eps
    assert ((found.double() - exact).abs() <= 64 * unit * size + unit * exact.abs()).all()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("features", [32, 128, 20, 1])
def test_numbers(format, dtype, features):
    dense, packed, x = problem(FORMATS[format], dtype, features, 1000)
    kernel = lacis.compile("ij,jk->ik", packed, x)
    first = kernel(packed, x)
    agree(first, dense, x)
    assert all(torch.equal(first, kernel(packed, x)) for _ in range(20))
    launches = len(kernel.loaded.info["launches"])  # of classes another one adds up the parts of long rows
    if format == "strips":  # which a half type begins, and finishes, in launches of their own
        assert launches >= 6
    else:
        assert launches == 1 + (format in CLASSES) or features in (20, 1)
    assert any(isinstance(step, steps.Apart) for step in kernel.steps) == (features in (32, 128) or format in CLASSES)


@pytest.mark.parametrize("format", CLASSES)
@pytest.mark.parametrize("features", [None, 1, 3, 4, 5, 8, 33])
def test_row_classes_with_few_features(format, features):
    dense, packed, x = problem(FORMATS[format], torch.float32, features or 1, 1000)
    x = x[:, 0].contiguous() if features is None else x
    kernel = lacis.compile("ij,j->i" if features is None else "ij,jk->ik", packed, x)
    first = kernel(packed, x)
    agree(first.reshape(len(dense), -1), dense, x.reshape(4096, -1))
    assert all(torch.equal(first, kernel(packed, x)) for _ in range(20))
    if features is None and format not in (
        "buckets",
        "strips",
    ):  # the rows that no bucket has are written by a launch before
        assert len(kernel.loaded.info["launches"]) == 2  # rows, and parts of long ones


@pytest.mark.parametrize("least", [1, 40, 256, 5000])
def test_long_rows_apart(least):
    dense, packed, x = problem(lacis.Csr, torch.float32, 1, 1000)
    shares = [steps.Apart("long", least=least), steps.SplitNnz("long.i_long.j", 64)]
    kernel = lacis.compile("ij,j->i", packed, x[:, 0].contiguous(), steps=shares)
    first = kernel(packed, x[:, 0])
    agree(first[:, None], dense, x)
    assert all(torch.equal(first, kernel(packed, x[:, 0])) for _ in range(20))


@pytest.mark.parametrize("features", [None, 16, 32])
def test_the_default_of_a_skewed_graph(features):
    rows, columns = torch.arange(70_000, device="cuda").repeat(3), torch.randint(5000, (210_000,), device="cuda")
    rows = torch.cat([rows, torch.full((30_000,), 41, device="cuda"), torch.full((700,), 69_999, device="cuda")])
    columns = torch.cat([columns, torch.randint(5000, (30_700,), device="cuda")])
    keys = torch.unique(rows * 5000 + columns)
    index = torch.stack([keys // 5000, keys % 5000])
    csr = torch.sparse_coo_tensor(index, torch.randn(len(keys), device="cuda"), (70_000, 5000)).to_sparse_csr()
    sizes = (5000,) if features is None else (5000, features)
    packed, x = lacis.pack(csr, lacis.Csr), torch.randn(sizes, device="cuda")
    known = [] if features is None else [steps.Specialize(k=features)]
    kernel = lacis.compile("ij,j->i" if features is None else "ij,jk->ik", packed, x, steps=known)
    assert steps.Apart("long", least=128) in kernel.steps
    first = kernel(packed, x)
    torch.testing.assert_close(first.double(), csr.double() @ x.double(), rtol=1e-4, atol=1e-3)
    assert all(torch.equal(first, kernel(packed, x)) for _ in range(20))


@pytest.mark.parametrize("features", [8, 16, 48])
def test_known_columns(features):
    dense, packed, x = problem(FORMATS["rows by length"], torch.float32, features)
    kernel = lacis.compile("ij,jk->ik", packed, x, steps=[steps.Specialize(k=features)])
    assert any(isinstance(step, steps.Apart) for step in kernel.steps)
    agree(kernel(packed, x), dense, x)


@pytest.mark.parametrize("lengths", ["none is long", "all are long"])
def test_lists_without_rows_and_with_all(lengths):
    rows = 64
    dense = torch.randn(rows, 512, device="cuda") * (lengths == "all are long")
    packed, x = lacis.pack(dense, FORMATS["rows by length"]), torch.randn(512, 32, device="cuda")
    agree(lacis.einsum("ij,jk->ik", packed, x), dense, x)


def test_an_epilogue_is_said_once():
    dense, packed, x = problem(FORMATS["rows by length"], torch.float32, 32)
    bias = torch.randn(packed.shape[0], device="cuda")
    y = lacis.einsum("ij,jk->ik", packed, x, epilogue=lacis.Epilogue(bias=bias, activation="relu"))
    torch.testing.assert_close(y.double(), (dense.double() @ x.double() + bias[:, None]).relu(), rtol=1e-4, atol=1e-3)
