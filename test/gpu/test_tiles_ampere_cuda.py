# SPDX-License-Identifier: Apache-2.0
"""Tensor cores by asynchronous copies and mma.sync, as from sm_80 on: einsum with stored blocks, against float64."""

import pytest
import torch
from test_tile_schedules_cuda import FORMATS, blocked, check

import lacis

MAJOR = torch.cuda.get_device_capability()[0] if torch.cuda.is_available() else 0
pytestmark = pytest.mark.skipif(MAJOR < 8, reason="needs a GPU of compute capability 8.0 or more")
TARGET = f"cuda:sm_{MAJOR}0"  # on a Hopper GPU without what is Hopper's alone
BLOCKS = [(64, 64), (128, 128), (128, 64), (32, 32), (16, 16), (8, 8), (32, 16), (16, 128)]

SHAPES = [(256, 256, 256), (64, 64, 33), (1000, 712, 333), (2048, 1024, 1025), (8, 2048, 5000)]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_einsum(format, block, shape, dtype):
    rows, columns, tokens = shape
    for sparsity in (0.0, 0.75, 1.0):
        w, x = blocked(rows, columns, block, sparsity, dtype), torch.randn(tokens, columns, device="cuda").to(dtype)
        packed = lacis.pack(w, FORMATS[format](*block))
        kernel = lacis.compile("ij,bj->bi", packed, x, target=TARGET)
        assert "lacis.mma" in kernel.asm["tiles"]
        poison = torch.full((tokens, rows), float("nan"), device="cuda", dtype=dtype)
        del poison
        with torch.no_grad():
            got = kernel(packed, x)
        check(got, x.double() @ w.double().T, sparsity)


SAMPLED = [block for block in BLOCKS if block != (8, 8)]


@pytest.mark.parametrize("block", SAMPLED, ids=str)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shape", [(1000, 712, 333), (256, 2048, 1025), (64, 64, 8)])
@pytest.mark.parametrize("entries", [1.0, 0.3])
def test_sampled(format, block, shape, entries):
    rows, columns, tokens = shape
    w = blocked(rows, columns, block, 0.5) * (torch.rand(rows, columns, device="cuda") < entries)
    pattern = lacis.pack(w, FORMATS[format](*block)).pattern
    dy, x = (torch.randn(tokens, size, device="cuda").bfloat16() for size in (rows, columns))
    kernel = lacis.compile("ij,bi,bj->ij", pattern, dy, x, target=TARGET)
    assert "lacis.mma" in kernel.asm["tiles"]
    got = kernel(pattern, dy, x).values
    assert all(torch.equal(kernel(pattern, dy, x).values, got) for _ in range(30))
    want = pattern.gather(dy.double().T @ x.double())
    check(got, want)
    assert not got[want == 0].any()


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_gradients(block):
    w, x = blocked(256, 384, block, 0.5), torch.randn(100, 384, device="cuda").bfloat16()
    packed = lacis.pack(w, lacis.Bsr(*block))
    packed = packed.with_values(packed.values.detach().requires_grad_())
    x.requires_grad_()
    y = lacis.compile("ij,bj->bi", packed, x, target=TARGET)(packed, x)
    grad = torch.randn_like(y)
    y.backward(grad)
    check(x.grad, grad.double() @ w.double(), "of the input")
    want = packed.pattern.gather(grad.double().T @ x.detach().double())
    check(packed.values.grad, want, "of the values")


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "silu"])
@pytest.mark.parametrize("block", [(64, 64), (32, 32), (16, 16)], ids=str)
def test_epilogue(block, activation):
    w, x = blocked(520, 384, block, 0.5), torch.randn(100, 384, device="cuda").bfloat16()
    after = lacis.Epilogue(bias=torch.randn(520, device="cuda").bfloat16(), activation=activation)
    packed = lacis.pack(w, lacis.Bsr(*block))
    kernel = lacis.compile("ij,bj->bi", packed, x, epilogue=after, target=TARGET)
    assert "lacis.load_rows" in kernel.asm["tiles"]
    want = x.double() @ w.double().T + after.bias.double()
    if activation is not None:
        want = getattr(torch.nn.functional, activation)(want)
    with torch.no_grad():
        check(kernel(packed, x), want)
