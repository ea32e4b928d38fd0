# SPDX-License-Identifier: Apache-2.0
"""The gradients that the default schedule puts on tensor cores of a Hopper GPU, against float64."""

import pytest
import torch
from test_tile_schedules_cuda import FORMATS, check

import lacis
from lacis.runtime import library

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
pytestmark = pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
BLOCKS = [(64, 64), (128, 128), (64, 128), (32, 32), (16, 16), (8, 8), (32, 16), (16, 32)]
SHAPES = [(256, 256, 256), (64, 64, 1), (1000, 712, 333), (2048, 1024, 1025), (8, 2048, 3000)]


def blocked(rows, columns, block, sparsity, dtype=torch.bfloat16, entries=1.0):
    """A random matrix with whole blocks of zeros; `entries` is the share of the other places that is not 0."""
    grid = torch.rand(-(-rows // block[0]), -(-columns // block[1]), device="cuda") >= sparsity
    mask = grid.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:rows, :columns]
    mask = mask & (torch.rand(rows, columns, device="cuda") < entries)
    return (torch.randn(rows, columns, device="cuda") * mask).to(dtype)


class Problem:
    """A packed weight, what arrives, the kernels of the gradients, and what they must answer."""

    def __init__(self, format, block, shape, sparsity, dtype=torch.bfloat16, entries=1.0):
        rows, columns, tokens = shape
        self.weight = blocked(rows, columns, block, sparsity, dtype, entries)
        self.x = torch.randn(tokens, columns, device="cuda").to(dtype)
        self.dy = torch.randn(tokens, rows, device="cuda").to(dtype)
        self.packed = lacis.pack(self.weight, FORMATS[format](*block))
        family = lacis.compile("ij,bj->bi", self.packed, self.x).family
        self.kernels = {slot: family.gradient(slot).kernel for slot in ("1", "values")}

    def input(self):
        _poison(self.x.shape, self.x.dtype)
        with torch.no_grad():
            return self.kernels["1"].run([self.dy], self.packed, self.x.shape)

    def values(self):
        _poison(self.packed.values.shape, self.x.dtype)
        with torch.no_grad():
            return self.kernels["values"].run([self.x, self.dy], self.packed, self.packed.values.shape)

    def check(self):
        check(self.input(), self.dy.double() @ self.weight.double(), "of the input")
        got = self.values()
        check(got, self.packed.pattern.gather(self.dy.double().T @ self.x.double()), "of the values")
        valid = self.packed.pattern.tensors["valid"]
        assert not valid.numel() or not got[~valid].any()


def _poison(shape, dtype):
    torch.full(shape, float("nan"), device="cuda", dtype=dtype)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients(format, block, shape):
    for sparsity in (0.0, 0.75, 1.0):
        Problem(format, block, shape, sparsity).check()


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_float16_and_partly_filled_blocks(block):
    problem = Problem("Bsr", block, (1000, 712, 333), 0.5, torch.float16, entries=0.3)
    for slot, kernel in problem.kernels.items():
        assert ("lacis.mma" in kernel.asm["tiles"]) == (slot == "1" or min(block) >= 16)
    problem.check()


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_one_full_row_and_a_single_block(block):
    problem = Problem("Bsr", block, (1024, 1024, 500), 1.0)
    problem.weight[: block[0]] = 1.0
    problem.weight[512 : 512 + block[0], 256 : 256 + block[1]] = -2.0
    problem.packed = lacis.pack(problem.weight, lacis.Bsr(*block))
    problem.check()


@pytest.mark.parametrize("block", [(32, 32), (16, 16)], ids=str)
def test_each_pattern_has_the_gradients_for_its_density(block, monkeypatch):
    """Patterns share a forward kernel; each has the gradient of its values by the schedule for its density."""
    launched = []
    monkeypatch.setattr(library, "einsum", lambda *a, run=library.einsum: launched.append(a[3]) or run(*a))
    for sparsity, is_gathered in ((0.2, False), (0.75, True), (0.5, True), (0.2, False)):
        problem = Problem("Bsr", block, (768, 1024, 300), sparsity)
        kernel = problem.kernels["values"]
        assert ("lacis.mma_gathered" in kernel.asm["tiles"]) == is_gathered
        problem.packed.values.requires_grad_()
        lacis.compile("ij,bj->bi", problem.packed, problem.x)(problem.packed, problem.x).backward(problem.dy)
        assert launched.pop() == kernel.family.key
        want = problem.packed.pattern.gather(problem.dy.double().T @ problem.x.double())
        check(problem.packed.values.grad, want, f"{sparsity}")


def model_of(block, dtype=torch.bfloat16, sparsity=0.75):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(512, 768), torch.nn.GELU(), torch.nn.Linear(768, 512)]
    model = torch.nn.Sequential(*layers).cuda().to(dtype)
    s = lacis.create_schedule(model)
    for name in ("0.weight", "2.weight"):
        s[name].block(*block).sparsify(lacis.BlockMagnitude(sparsity)).set_format(lacis.Bsr)
    return s, s.build()


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_model_trains_like_the_masked_dense_one(block):
    s, model = model_of(block)
    dense = torch.nn.Sequential(torch.nn.Linear(512, 768), torch.nn.GELU(), torch.nn.Linear(768, 512)).cuda().double()
    for n in (0, 2):
        dense[n].weight.data.copy_(s[f"{n}.weight"].packed.to_dense())
        dense[n].bias.data.copy_(model[n].bias)
    x = torch.randn(300, 512, device="cuda").bfloat16().requires_grad_()
    y, want = model(x), dense(x.detach().double().requires_grad_())
    dy = torch.randn_like(y)
    y.backward(dy)
    want.backward(dy.double())
    for n in (0, 2):
        pattern = s[f"{n}.weight"].packed.pattern
        found = (model[n].weight.values.grad.double() - pattern.gather(dense[n].weight.grad)).norm()
        assert found / dense[n].weight.grad.norm() < 2e-2
        assert (model[n].bias.grad.double() - dense[n].bias.grad).norm() / dense[n].bias.grad.norm() < 2e-2


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_new_patterns_of_the_same_density_train_without_a_compiler(block):
    s, model = model_of(block)
    x = torch.randn(300, 512, device="cuda").bfloat16().requires_grad_()
    model(x).sum().backward()
    before = len(lacis.runtime.compile._kernels)
    weight = s["0.weight"].packed.to_dense().roll((256, 128), (0, 1))
    model[0].weight.set_packed(lacis.pack(weight, lacis.Bsr(*block)))
    x.grad = None
    y = model[0](x)
    dy = torch.randn_like(y)
    y.backward(dy)
    check(x.grad, dy.double() @ weight.double(), "of the input")
    assert len(lacis.runtime.compile._kernels) == before


@pytest.mark.parametrize("block", [(64, 64), (16, 16)], ids=str)
def test_a_graph_of_a_training_step(block):
    _, model = model_of(block)
    x = torch.randn(256, 512, device="cuda").bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)

    def run():
        optimizer.zero_grad(set_to_none=False)
        loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        return loss

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        first = [run().item() for _ in range(3)]
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = run()
    for _ in range(20):
        graph.replay()
    assert loss.item() < first[-1]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_autocast_trains_float32_parameters(block):
    """Kernels on tensor cores, copies refreshed after each step; float32 gradients; nothing of it in a state dict."""
    s, model = model_of(block, torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    scaler = torch.amp.GradScaler("cuda")
    x, target = (torch.randn(256, 512, device="cuda") for _ in range(2))
    losses = []
    for n in range(12):
        dense = s["0.weight"].packed.to_dense().detach()
        with torch.autocast("cuda", torch.bfloat16):
            hidden = model[0](x)
            loss = torch.nn.functional.mse_loss(model[2](model[1](hidden)).float(), target)
        check(hidden.detach(), x.double() @ dense.double().T + model[0].bias.detach().double(), f"step {n}")
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0] and model[0].weight.values.grad.dtype == torch.float32
    family = model[0]._casts[torch.bfloat16].family
    slots = [slot for slot in family.slots if slot != "bias"]
    tiles = {slot: "lacis.mma" in family.gradient(slot).kernel.asm["tiles"] for slot in slots}
    assert "lacis.mma" in family.kernel.asm["tiles"] and tiles.pop("values") == (min(block) >= 16)
    assert all(tiles.values()) and not any("derived" in name for name in model.state_dict())
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        dense = s["0.weight"].packed.to_dense()
        check(model[0](x), x.double() @ dense.double().T + model[0].bias.double(), "inference")
