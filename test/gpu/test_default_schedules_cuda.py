# SPDX-License-Identifier: Apache-2.0
"""Defaults of the GPU that depend on what is known of the operands: long rows, and few columns."""

import lacis
import pytest
import torch
from lacis import steps

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

LONG, ROWS = 5000, 700


def skewed(dtype=torch.float32) -> torch.Tensor:
    """A matrix with one long row, one long column, and rows without entries at both ends."""
    dense = torch.randn(ROWS, LONG, device="cuda") * (torch.rand(ROWS, LONG, device="cuda") < 0.002)
    dense[300] = torch.randn(LONG, device="cuda")
    dense[:, 17] = torch.randn(ROWS, device="cuda")
    dense[:40] = dense[-40:] = 0
    return dense.to(dtype)


def close(found, expected, length=LONG):
    error = torch.finfo(found.dtype).eps * length**0.5 * 8
    torch.testing.assert_close(found.double(), expected, rtol=error, atol=error * 8)


HYBRIDS = [lacis.formats.decompose(ell=lacis.Ell(4), rest=rest) for rest in (lacis.Csr, lacis.Coo, lacis.Dcsr)]


@pytest.mark.parametrize("format", [lacis.Csr, lacis.Coo, lacis.Csc, lacis.Dcsr, *HYBRIDS], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("columns", [32, 33, 96, 128, 200])
def test_long_rows(format, dtype, columns):
    dense, x = skewed(dtype), torch.randn(LONG, columns, device="cuda", dtype=dtype)
    packed = lacis.pack(dense, format)
    assert packed.pattern.uneven[0]
    kernel = lacis.compile("ij,jk->ik", packed, x)
    found = kernel(packed, x)
    close(found, dense.double() @ x.double())
    for _ in range(20):
        assert torch.equal(kernel(packed, x), found)


@pytest.mark.parametrize("format", [lacis.Csr, lacis.Coo, lacis.Csc, lacis.Dcsr])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize("rows", [700, 70000])
def test_long_rows_times_a_vector(format, dtype, rows):
    """Many rows share a warp, few do not; entries of a row in several shares, and many rows in one."""
    torch.manual_seed(0)
    lengths = torch.cat([torch.randint(0, 4, (rows - 400,)), torch.randint(0, 300, (399,)), torch.tensor([5000])])
    row = torch.repeat_interleave(torch.arange(rows), lengths[torch.randperm(rows)])
    index = torch.stack([row, torch.randint(0, LONG, row.shape)]).cuda()
    matrix = torch.sparse_coo_tensor(index, torch.randn(len(row), device="cuda"), (rows, LONG)).coalesce().to(dtype)
    packed, x = lacis.pack(matrix, format), torch.randn(LONG, device="cuda", dtype=dtype)
    assert packed.pattern.uneven[0]
    kernel = lacis.compile("ij,j->i", packed, x)
    assert any(isinstance(step, steps.SplitNnz) for step in kernel.steps)
    found = kernel(packed, x)
    close(found, matrix.double() @ x.double())
    assert all(torch.equal(kernel(packed, x), found) for _ in range(20))


def test_long_rows_are_walked_in_equal_shares():
    packed, x = lacis.pack(skewed(), lacis.Csr), torch.randn(LONG, 64, device="cuda")
    default = lacis.compile("ij,jk->ik", packed, x).steps
    assert any(isinstance(step, steps.SplitNnz) for step in default)
    even = lacis.pack(torch.eye(512, device="cuda"), lacis.Csr)
    default = lacis.compile("ij,jk->ik", even, torch.randn(512, 64, device="cuda")).steps
    assert not any(isinstance(step, steps.SplitNnz) for step in default)


@pytest.mark.parametrize("columns", [32, 64, 96, 128, 160])
def test_linear_layers_and_their_gradients(columns):
    dense = skewed()
    packed, x = lacis.pack(dense, lacis.Csr), torch.randn(columns, LONG, device="cuda", requires_grad=True)
    values = packed.values.clone().requires_grad_()
    y = lacis.einsum("ij,bj->bi", packed.with_values(values), x)
    close(y, x.detach().double() @ dense.double().T)
    arriving = torch.randn_like(y)
    y.backward(arriving)
    close(x.grad, arriving.double() @ dense.double(), ROWS)
    expected = packed.pattern.gather(arriving.double().T @ x.detach().double())
    close(values.grad, expected, columns)


@pytest.mark.parametrize("features", [1, 30, 32, 64, 96, 128, 129])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_sampled_products_of_few_columns(features, dtype):
    pattern = lacis.pack(skewed(), lacis.Csr).pattern
    a, b = (torch.randn(size, features, device="cuda", dtype=dtype) for size in (ROWS, LONG))
    found = lacis.einsum("ij,ik,jk->ij", pattern, a, b).values
    expected = pattern.gather(a.double() @ b.double().T)
    error = torch.finfo(dtype).eps * features**0.5 * 16
    torch.testing.assert_close(found.double(), expected, rtol=error, atol=error)


@pytest.mark.parametrize("features", [1, 30, 32, 128, 129])
@pytest.mark.parametrize("width", ["i16", "i32"])
def test_sampled_products_by_rows(features, width):
    format = lacis.Format.parse(f"(i, j) -> (i : dense<crd={width}>, j : compressed<crd={width}>)")
    pattern = lacis.pack(skewed(), format).pattern
    a, b = (torch.randn(size, features, device="cuda") for size in (ROWS, LONG))
    kernel = lacis.compile("ij,ik,jk->ij", pattern, a, b, steps=[steps.Walk("0", "i")])
    assert "lacis.walk %" not in kernel.asm["loops"]
    expected = pattern.gather(a.double() @ b.double().T)
    error = torch.finfo(torch.float32).eps * features**0.5 * 16
    torch.testing.assert_close(kernel(pattern, a, b).values.double(), expected, rtol=error, atol=error)
