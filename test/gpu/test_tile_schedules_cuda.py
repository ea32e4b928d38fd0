# SPDX-License-Identifier: Apache-2.0
"""Tensor cores by default on a Hopper GPU: einsum and models with stored blocks, against float64."""

import pytest
import torch

import lacis

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
pytestmark = pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
FORMATS = {"Bsr": lacis.Bsr, "Bcsc": lacis.Bcsc, "BlockedEll": lacis.BlockedEll}
BLOCKS = [(64, 64), (128, 128), (128, 64), (32, 32), (16, 16), (8, 8), (32, 16), (256, 256), (192, 128)]


def blocked(rows, columns, block, sparsity, dtype=torch.bfloat16):
    grid = torch.rand(-(-rows // block[0]), -(-columns // block[1]), device="cuda") >= sparsity
    mask = grid.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:rows, :columns]
    return (torch.randn(rows, columns, device="cuda") * mask).to(dtype)


def check(got, want, what=""):
    error = ((got.double() - want).norm() / want.norm().clamp(min=1e-30)).item()
    assert error < 6e-3, f"{what}: error {error}"


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shape", [(256, 256, 256), (64, 64, 1), (1000, 712, 333), (2048, 1024, 1025), (8, 2048, 5000)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_einsum(format, block, shape, dtype):
    rows, columns, tokens = shape
    for sparsity in (0.0, 0.75, 1.0):
        w, x = blocked(rows, columns, block, sparsity, dtype), torch.randn(tokens, columns, device="cuda").to(dtype)
        packed = lacis.pack(w, FORMATS[format](*block))
        kernel = lacis.compile("ij,bj->bi", packed, x)
        assert "lacis.mma" in kernel.asm["tiles"]
        poison = torch.full((tokens, rows), float("nan"), device="cuda", dtype=dtype)
        del poison
        with torch.no_grad():
            got = kernel(packed, x)
        check(got, x.double() @ w.double().T, sparsity)


@pytest.mark.parametrize("block, sparsity, room", [(16, 0.5, 24), (16, 0.9, 12), (32, 0.5, 24), (32, 0.9, 12)])
def test_stages_have_room_for_the_density_of_the_pattern(block, sparsity, room):
    w, x = blocked(1000, 712, (block, block), sparsity), torch.randn(333, 712, device="cuda").bfloat16()
    packed = lacis.pack(w, lacis.Bsr(block, block))
    kernel = lacis.compile("ij,bj->bi", packed, x)
    assert [step.capacity for step in kernel.steps if step.mnemonic == "regroup"] == [room]
    with torch.no_grad():
        for rest in (w, w.flip(0), blocked(1000, 712, (block, block), 0.0)):
            found = kernel(lacis.pack(rest, lacis.Bsr(block, block)), x)
            check(found, x.double() @ rest.double().T)
            assert torch.equal(kernel(lacis.pack(rest, lacis.Bsr(block, block)), x), found)


def test_any_number_of_tokens_by_one_kernel():
    """The work lists are of no number of tokens, and begin anew after their last group."""
    w = blocked(512, 512, (64, 64), 0.5)
    packed = lacis.pack(w, lacis.Bsr(64, 64))
    for tokens in (0, 1, 255, 256, 257, 768, 1024, 1300, 17000):
        x = torch.randn(tokens, 512, device="cuda").bfloat16()
        with torch.no_grad():
            check(lacis.einsum("ij,bj->bi", packed, x), x.double() @ w.double().T, tokens)


@pytest.mark.parametrize("sparsity", [0.5, 0.75, 0.9])
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_gradients(block, sparsity):
    w, x = blocked(256, 384, block, sparsity), torch.randn(100, 384, device="cuda").bfloat16()
    packed = lacis.pack(w, lacis.Bsr(*block))
    packed = packed.with_values(packed.values.detach().requires_grad_())
    x.requires_grad_()
    y = lacis.einsum("ij,bj->bi", packed, x)
    grad = torch.randn_like(y)
    y.backward(grad)
    check(x.grad, grad.double() @ w.double(), "of the input")
    want = packed.pattern.gather(grad.double().T @ x.detach().double())
    check(packed.values.grad, want, "of the values")


@pytest.mark.parametrize("shape", [(520, 384, 300), (1000, 712, 333), (64, 64, 1)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_dense_matrix(shape, dtype):
    rows, columns, tokens = shape
    w, x = torch.randn(rows, columns, device="cuda").to(dtype), torch.randn(tokens, columns, device="cuda").to(dtype)
    packed = lacis.pack(w, lacis.Dense)
    assert "lacis.mma" in lacis.compile("ij,bj->bi", packed, x).asm["tiles"]
    x.requires_grad_()
    y = lacis.einsum("ij,bj->bi", packed, x)
    check(y.detach(), x.detach().double() @ w.double().T)
    grad = torch.randn_like(y)
    y.backward(grad)
    check(x.grad, grad.double() @ w.double(), "gradient of the input")


@pytest.mark.parametrize("adds", [False, True], ids=["", "residual"])
@pytest.mark.parametrize("activation", [None, "relu", "gelu", "silu"])
@pytest.mark.parametrize("block", [(256, 192), (128, 128), (64, 64), (32, 32), (16, 16)], ids=str)
def test_epilogue(block, activation, adds):
    w, x = blocked(520, 384, block, 0.5), torch.randn(300, 384, device="cuda").bfloat16()
    bias, residual = torch.randn(520, device="cuda").bfloat16(), torch.randn(300, 520, device="cuda").bfloat16()
    after = lacis.Epilogue(bias=bias, activation=activation, residual=residual if adds else None)
    packed = lacis.pack(w, lacis.Bsr(*block))
    kernel = lacis.compile("ij,bj->bi", packed, x, epilogue=after)
    assert "lacis.load_rows" in kernel.asm["tiles"], kernel.remarks
    want = x.double() @ w.double().T + after.bias.double()
    if activation is not None:
        want = getattr(torch.nn.functional, activation)(want)
    if adds:
        want = want + residual.double()
    with torch.no_grad():
        check(kernel(packed, x), want)


def model_of(block, bias=False):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(512, 768, bias=bias), torch.nn.Linear(768, 512, bias=bias)]
    model = torch.nn.Sequential(*layers).cuda().bfloat16()
    s = lacis.create_schedule(model)
    for name in ("0.weight", "1.weight"):
        s[name].block(*block).sparsify(lacis.BlockMagnitude(0.75)).set_format(lacis.Bsr)
    return s, s.build()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_model_by_default(block, bias):
    torch._dynamo.reset()  # each case compiles the same code anew
    s, model = model_of(block, bias)
    assert "lacis.mma" in s["0.weight"].kernel.asm["tiles"]
    dense = [s[name].packed.to_dense().detach() for name in ("0.weight", "1.weight")]
    for shape in ((3, 100), (700,)):
        x = torch.randn(*shape, 512, device="cuda").bfloat16()
        first, second = (model[n].bias.double() if bias else 0 for n in (0, 1))
        hidden = (x.double() @ dense[0].double().T + first).bfloat16()
        want = hidden.double() @ dense[1].double().T + second
        with torch.no_grad():
            check(model(x), want)
        check(model(x).detach(), want)  # with gradients recorded
        check(torch.compile(model, fullgraph=True)(x).detach(), want)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_new_values_and_patterns_are_seen(block):
    s, model = model_of(block)
    x = torch.randn(300, 512, device="cuda").bfloat16()
    weight = model[0].weight
    with torch.no_grad():
        model(x)
        weight.values.mul_(2)
        check(model[0](x), x.double() @ weight.to_dense().double().T)
        weight.set_packed(lacis.pack(blocked(768, 512, block, 0.4), lacis.Bsr(*block)))
        check(model[0](x), x.double() @ weight.to_dense().double().T)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_graph(block):
    _, model = model_of(block)
    x = torch.randn(512, 512, device="cuda").bfloat16()
    with torch.no_grad():
        want = model(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            got = model(x)
        got.zero_()
        graph.replay()
    assert torch.equal(got, want)


def test_autocast_of_float32_weights():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 256, bias=False)).cuda()
    s = lacis.create_schedule(model)
    s["0.weight"].block(64, 64).sparsify(lacis.BlockMagnitude(0.5)).set_format(lacis.Bsr)
    model = s.build()
    x = torch.randn(300, 256, device="cuda")
    want = x.double() @ s["0.weight"].packed.to_dense().double().T
    with torch.autocast("cuda", torch.bfloat16):
        check(model(x).detach(), want)
        with torch.no_grad():
            check(model(x), want)


@pytest.mark.parametrize("block", [(64, 64), (16, 16)], ids=str)
def test_training_lowers_the_loss(block):
    _, model = model_of(block)
    x, target = (torch.randn(256, 512, device="cuda").bfloat16() for _ in range(2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(20):
        loss = torch.nn.functional.mse_loss(model(x).float(), target.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
