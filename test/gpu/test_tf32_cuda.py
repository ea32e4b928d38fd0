# SPDX-License-Identifier: Apache-2.0
"""Products of float32 in TF32, as torch allows them: forward and both gradients, against float64."""

import pytest
import torch
from test_tile_schedules_cuda import blocked

import lacis

MAJOR = torch.cuda.get_device_capability()[0] if torch.cuda.is_available() else 0
pytestmark = pytest.mark.skipif(MAJOR < 8, reason="needs a GPU of compute capability 8.0 or more")
BLOCKS = [(64, 64), (128, 128), (64, 128), (32, 32), (16, 16), (8, 8), (32, 16)]
SHAPES = [(256, 256, 256), (64, 64, 1), (1000, 712, 333), (2048, 1024, 1025), (8, 2048, 3000)]
TARGETS = ("auto", f"cuda:sm_{MAJOR}0")


def check(got, left, right, what=""):
    """Both factors have 10 bits of the mantissa, rounded to nearest; sums are of float32."""
    want, most = left.double() @ right.double(), left.double().abs() @ right.double().abs()
    return within(got, want, most, what)


def within(got, want, most, what):
    worst = ((got.double() - want).abs() / most.clamp(min=1e-30)).max().item() if want.numel() else 0.0
    assert worst <= 2.0**-10 + 2.0**-16, f"{what}: {worst * 2**10} units of TF32"
    return worst


def gradients(format, block, shape, sparsity, target, entries=1.0):
    """The kernels of a layer, after all their answers have been checked."""
    rows, columns, tokens = shape
    w = blocked(rows, columns, block, sparsity, torch.float32)
    w = w * (torch.rand(rows, columns, device="cuda") < entries)
    x, dy = (torch.randn(tokens, size, device="cuda") for size in (columns, rows))
    packed = lacis.pack(w, format(*block))
    kernel = lacis.compile("ij,bj->bi", packed, x, target=target)
    torch.full((tokens, rows), float("nan"), device="cuda")  # what the answer's memory held before
    with torch.no_grad():
        check(kernel(packed, x), x, w.T, "forward")
    of_input, of_values = (kernel.family.gradient(slot).kernel for slot in ("1", "values"))
    with torch.no_grad():
        check(of_input.run([dy], packed, x.shape), dy, w, "of the input")
        got = of_values.run([x, dy], packed, packed.values.shape)
    gather = packed.pattern.gather
    within(got, gather(dy.double().T @ x.double()), gather(dy.double().abs().T @ x.double().abs()), "of the values")
    valid = packed.pattern.tensors["valid"]
    assert not valid.numel() or not got[~valid].any()
    return kernel, of_input, of_values


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("format", [lacis.Bsr, lacis.Bcsc, lacis.BlockedEll], ids=lambda f: f.__name__)
def test_a_layer_and_its_gradients(format, block, target, tf32):
    for shape in SHAPES:
        for sparsity in (0.0, 0.75, 1.0):
            kernels = gradients(format, block, shape, sparsity, target)
            for n, kernel in enumerate(kernels):
                assert ("in tf32" in kernel.asm["tiles"]) == (n < 2 or min(block) >= 16)


@pytest.mark.parametrize("block", [(64, 64), (16, 16)], ids=str)
def test_partly_filled_blocks(block, tf32):
    gradients(lacis.Bsr, block, (1000, 712, 333), 0.5, "auto", entries=0.3)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_bias_and_activation(activation, tf32):
    w, x = blocked(512, 768, (64, 64), 0.5, torch.float32), torch.randn(300, 768, device="cuda")
    bias, packed = torch.randn(512, device="cuda"), lacis.pack(w, lacis.Bsr(64, 64))
    kernel = lacis.compile("ij,bj->bi", packed, x, epilogue=lacis.Epilogue(bias=bias, activation=activation))
    assert "in tf32" in kernel.asm["tiles"]
    want = getattr(torch.nn.functional, activation)(x.double() @ w.double().T + bias.double())
    with torch.no_grad():
        assert (kernel(packed, x) - want).norm() / want.norm() < 2.0**-10


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("expression", ["ij,bj->bi", "ij,jb->ib", "ij,bj->ib", "ij,jb->bi"])
@pytest.mark.parametrize("block", [(256, 256), (128, 128), (64, 64), (16, 16), (8, 8)], ids=str)
def test_residuals(block, expression, target, tf32):
    """With tokens that fill no tile; an element is read where it lies."""
    w, sizes = blocked(768, 1024, block, 0.5, torch.float32), {"i": 768, "j": 1024, "b": 300}
    x, residual = (torch.randn([sizes[n] for n in term], device="cuda") for term in expression[3:].split("->"))
    packed = lacis.pack(w, lacis.Bsr(*block))
    kernel = lacis.compile(expression, packed, x, epilogue=lacis.Epilogue(residual=residual), target=target)
    assert "in tf32" in kernel.asm["tiles"] and not kernel.remarks
    want = torch.einsum(expression, w.double(), x.double()) + residual.double()
    most = torch.einsum(expression, w.double().abs(), x.double().abs()) + residual.double().abs()
    with torch.no_grad():
        within(kernel(packed, x), want, most, expression)


def test_a_built_layer_trains(tf32):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(768, 512)).cuda()
    s = lacis.create_schedule(model)
    s["0.weight"].block(64, 64).sparsify(lacis.BlockMagnitude(0.75)).set_format(lacis.Bsr)
    s.build()
    kernels = s["0.weight"].kernels
    assert len(kernels) == 3 and all("in tf32" in kernel.asm["tiles"] for kernel in kernels.values())
    x, dy = (torch.randn(300, size, device="cuda") for size in (768, 512))
    model(x.requires_grad_()).backward(dy)
    w, gather = s["0.weight"].packed.to_dense().detach(), s["0.weight"].packed.pattern.gather
    check(x.grad, dy, w, "of the input")
    want, most = dy.double().T @ x.detach().double(), dy.double().abs().T @ x.detach().double().abs()
    within(model[0].weight.values.grad, gather(want), gather(most), "of the values")


def test_nothing_is_lost_where_torch_allows_nothing():
    w, x = blocked(512, 768, (64, 64), 0.5, torch.float32), torch.randn(300, 768, device="cuda")
    packed = lacis.pack(w, lacis.Bsr(64, 64))
    kernel = lacis.compile("ij,bj->bi", packed, x)
    assert "lacis.mma" not in kernel.asm["tiles"]
    want = x.double() @ w.double().T
    assert (lacis.einsum("ij,bj->bi", packed, x) - want).norm() / want.norm() < 1e-6


def test_answers_are_the_same_each_time(tf32):
    w, x = blocked(1024, 1024, (32, 32), 0.5, torch.float32), torch.randn(300, 1024, device="cuda")
    packed = lacis.pack(w, lacis.Bsr(32, 32))
    kernel = lacis.compile("ij,bj->bi", packed, x)
    with torch.no_grad():
        first = kernel(packed, x)
        assert all(torch.equal(kernel(packed, x), first) for _ in range(100))
    x[7, 5] = float("nan")
    spoiled = (~kernel(packed, x).isfinite()).any(1).nonzero().flatten().tolist()
    assert spoiled == [7]
