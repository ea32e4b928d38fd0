# SPDX-License-Identifier: Apache-2.0
"""Sums whose blocks run on tensor cores, against float64: forward, both gradients, and a layer that trains."""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from bench.sums_of_tiles import hybrid, scattered  # noqa: E402

import lacis

NEW = torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0)
pytestmark = pytest.mark.skipif(not NEW, reason="needs a GPU from sm_80 on")
HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
TARGETS = ["cuda", *(["cuda:sm_90"] if HOPPER else [])]
SHAPES = [(256, 256, 256), (64, 64, 1), (1000, 712, 333), (2048, 1024, 1025), (8, 2048, 3000)]
RULE = "nnz(i floordiv {0}, j floordiv {0}) ge"
TWO = lacis.Format.parse(
    f"#lacis.sum<large = {lacis.Bsr(64, 64)} when {RULE.format(64)} 1000, "
    f"small = {lacis.Bsr(16, 16)} when {RULE.format(16)} 20, rest = {lacis.Csr()}>"
)


def check(got, want):
    error = ((got.double() - want).norm() / want.norm().clamp(min=1e-30)).item()
    assert error < 6e-3, error


def run(packed, x, target="cuda", **options):
    """The product, the same bits each time on poisoned memory."""
    kernel = lacis.compile("ij,bj->bi", packed, x, target=target, **options)
    assert "lacis.load_acc" in kernel.asm["tiles"]
    found = []
    with torch.no_grad():
        for _ in range(3):
            poison = [torch.full((1 << 22,), float("nan"), device="cuda") for _ in range(4)]
            del poison
            found.append(kernel(packed, x))
    assert all(torch.equal(other, found[0]) for other in found)
    return found[0]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("block", [16, 32, 64])
def test_product(block, shape, dtype, target):
    """Blocks or entries elsewhere may be missing, or both."""
    rows, columns, tokens = shape
    x = torch.randn(tokens, columns, device="cuda").to(dtype)
    for sparsity, share in ((0.5, 0.01), (0.75, 0.0), (1.0, 0.01), (1.0, 0.0)):
        weight = scattered(rows, columns, block, sparsity, share, dtype)
        check(run(lacis.pack(weight, hybrid(block)), x, target), x.double() @ weight.double().T)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rest", [lacis.Coo, lacis.Dcsr, lacis.Csc, lacis.Ell])
def test_formats_of_the_rest(rest, target):
    weight = scattered(1000, 712, 64, 0.5, 0.01)
    x = torch.randn(333, 712, device="cuda").bfloat16()
    check(run(lacis.pack(weight, hybrid(64, rest)), x, target), x.double() @ weight.double().T)


@pytest.mark.parametrize("target", TARGETS)
def test_two_parts_are_summed_up_before(target):
    weight = scattered(1000, 712, 64, 0.5, 0.01)
    weight[:16, :300:2] = 1
    x = torch.randn(333, 712, device="cuda").bfloat16()
    check(run(lacis.pack(weight, TWO), x, target), x.double() @ weight.double().T)


def test_any_number_of_tokens_by_one_kernel():
    weight = scattered(512, 712, 64, 0.5, 0.01)
    packed = lacis.pack(weight, hybrid(64))
    kernel = lacis.compile("ij,bj->bi", packed, torch.randn(64, 712, device="cuda").bfloat16())
    with torch.no_grad():
        for tokens in (1, 0, 3, 300, 8, 5000, 256):
            x = torch.randn(tokens, 712, device="cuda").bfloat16()
            got = kernel(packed, x)
            assert got.shape == (tokens, 512)
            check(got, x.double() @ weight.double().T)


def test_nan_stays_in_its_token():
    weight = scattered(512, 712, 64, 0.5, 0.01)
    x = torch.randn(333, 712, device="cuda").bfloat16()
    x[100, 5] = float("nan")
    got = run_once(lacis.pack(weight, hybrid(64)), x)
    kept = torch.arange(333, device="cuda") != 100
    check(got[kept], x[kept].double() @ weight.double().T)
    assert got[100].isnan().any()


def run_once(packed, x):
    with torch.no_grad():
        return lacis.compile("ij,bj->bi", packed, x)(packed, x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block", [16, 32, 64])
@pytest.mark.parametrize("adds", [False, True])
def test_bias_activation_and_residual(block, adds, target):
    weight = scattered(1000, 712, block, 0.5, 0.01)
    x, residual = (torch.randn(333, size, device="cuda").bfloat16() for size in (712, 1000))
    bias = torch.randn(1000, device="cuda").bfloat16()
    after = lacis.Epilogue(bias=bias, activation="gelu", residual=residual if adds else None)
    got = run(lacis.pack(weight, hybrid(block)), x, target, epilogue=after)
    want = torch.nn.functional.gelu(x.double() @ weight.double().T + bias.double())
    check(got, want + residual.double() if adds else want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block", [16, 32, 64])
@pytest.mark.parametrize("shape", [(256, 256, 256), (1000, 712, 333)], ids=str)
def test_gradients(block, shape, target):
    rows, columns, tokens = shape
    weight = scattered(rows, columns, block, 0.5, 0.01)
    packed = lacis.pack(weight, hybrid(block))
    x, dy = (torch.randn(tokens, size, device="cuda").bfloat16() for size in (columns, rows))
    family = lacis.compile("ij,bj->bi", packed, x, target=target).family
    assert "lacis.load_acc" in family.gradient("1").kernel.asm["tiles"]
    with torch.no_grad():
        check(family.gradient("1").kernel.run([dy], packed, x.shape), dy.double() @ weight.double())


@pytest.mark.parametrize("block", [16, 32, 64])
def test_a_layer_trains(block):
    """Values of small blocks are copied to the order of the tiles, again when they change."""
    dense = torch.nn.Linear(712, 1000, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        dense.weight.copy_(scattered(1000, 712, block, 0.5, 0.01))
    mask = dense.weight != 0
    weight, bias = (p.detach().double().clone() for p in dense.parameters())
    model = torch.nn.Sequential(dense)
    s = lacis.create_schedule(model)
    handle = s["0.weight"].set_format(hybrid(block))
    s.build()
    assert "lacis.load_acc" in handle.kernel.asm["tiles"]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
    for _ in range(2):
        x = torch.randn(333, 712, device="cuda").bfloat16().requires_grad_()
        dy = torch.randn(333, 1000, device="cuda").bfloat16()
        optimizer.zero_grad()
        y = model(x)
        y.backward(dy)
        check(y.detach(), x.detach().double() @ weight.T + bias)
        check(x.grad, dy.double() @ weight)
        wanted = handle.packed.pattern.gather(dy.double().T @ x.detach().double())
        found = {name: part.values.grad for name, part in zip(wanted, model[0].weight._parts())}
        for name, want in wanted.items():
            check(found[name], want)
        optimizer.step()
        weight = model[0].weight.to_dense().detach().double()
        bias = model[0].bias.detach().double()
        assert not weight[~mask].any()
