# SPDX-License-Identifier: Apache-2.0
"""Formats whose columns add to the output on CUDA: alone, atomically, in copies of their own."""

import pytest
import torch

import lacis
from lacis import steps

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

PUSH = steps.Own("0", "push")
UNITS = [steps.Split("j", 8), steps.Race("j0", "private"), steps.Bind("j0", "block.x")]
FORMATS = [
    lacis.Csc,
    lacis.Format.parse("(i, j) -> (j : compressed<unique=false>, i : singleton)"),
    lacis.Format.parse("(i, j) -> (j : dense, i : packed<?>)"),
]


def problem(expression, shape, dtype=torch.float32):
    mask = torch.rand(shape, device="cuda") < 0.3
    dense = torch.where(mask, torch.randn(shape, device="cuda"), 0).to(dtype)
    sizes = {"j": shape[1], "b": 37, "k": 64}
    letters = expression.split(",")[1].split("->")[0]
    return dense, mask, torch.randn([sizes[letter] for letter in letters], device="cuda").to(dtype)


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("expression", ["ij,j->i", "ij,bj->bi", "ij,jk->ik"])
@pytest.mark.parametrize("format", FORMATS)
def test_columns_add_to_the_output(format, expression, deterministic):
    for shape in ((331, 130), (5, 0), (0, 5)):
        dense, mask, x = problem(expression, shape)
        packed = lacis.pack(dense, format, mask)
        kernel = lacis.compile(expression, packed, x, steps=[PUSH], deterministic=deterministic)
        first = kernel(packed, x)
        expected = torch.einsum(expression, dense.double(), x.double())
        torch.testing.assert_close(first.double(), expected, rtol=1e-4, atol=1e-4)
        for _ in range(20):
            again = kernel(packed, x)
            assert torch.equal(again, first) if deterministic else torch.allclose(again, first, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("expression", ["ij,j->i", "ij,bj->bi"])
def test_units_have_copies(expression):
    dense, mask, x = problem(expression, (331, 130))
    packed = lacis.pack(dense, lacis.Csc, mask)
    kernel = lacis.compile(expression, packed, x, steps=[PUSH, *UNITS])
    first = kernel(packed, x)
    expected = torch.einsum(expression, dense.double(), x.double())
    torch.testing.assert_close(first.double(), expected, rtol=1e-4, atol=1e-4)
    assert all(torch.equal(kernel(packed, x), first) for _ in range(100))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("deterministic", [True, False])
def test_half_types_and_what_follows(dtype, deterministic):
    dense, mask, x = problem("ij,bj->bi", (331, 130), dtype)
    packed, bias = lacis.pack(dense, lacis.Csc, mask), torch.randn(331, device="cuda").to(dtype)
    epilogue = lacis.Epilogue(bias=bias, activation="gelu")
    y = lacis.einsum("ij,bj->bi", packed, x, epilogue=epilogue, steps=[PUSH], deterministic=deterministic)
    expected = torch.nn.functional.gelu(x.double() @ dense.double().T + bias.double())
    torch.testing.assert_close(y.double(), expected, rtol=2**-6, atol=2**-6)
