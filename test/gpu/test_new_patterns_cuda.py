# SPDX-License-Identifier: Apache-2.0
"""Setting a pattern of the same density class compiles nothing, nor does the step after it, and the host waits for
nothing in them; captured graphs see the pattern."""

import pytest
import torch
from test_tile_schedules_cuda import blocked, check

import lacis
from lacis.patterns import hand_out as rule
from lacis.runtime import kernels, pattern_kernels

MAJOR = torch.cuda.get_device_capability()[0] if torch.cuda.is_available() else 0
pytestmark = pytest.mark.skipif(MAJOR < 8, reason="needs a GPU of compute capability 8.0 or more")
FORMATS = {
    "Bsr 128": lacis.Bsr(128, 128),
    "Bsr 64": lacis.Bsr(64, 64),
    "Bcsc 32": lacis.Bcsc(32, 32),
    "BlockedEll 16": lacis.BlockedEll(16, 16, width=40),
    "Bsr 16": lacis.Bsr(16, 16),
    "Csr": lacis.Csr(),
    "Csc": lacis.Csc(),
}


@pytest.fixture
def no_waiting():
    """While it is on, torch refuses what would make the host wait for the device."""
    yield lambda: torch.cuda.set_sync_debug_mode("error")
    torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("is_uneven", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_a_new_pattern(name, is_uneven, no_waiting, monkeypatch):
    format, block = FORMATS[name], FORMATS[name].tile or (1, 1)
    weight = blocked(512, 768, tuple(block), 0.82 if is_uneven else 0.56)
    if is_uneven and "Ell" not in name:  # a row of blocks is full
        weight[: block[0]] = torch.randn(block[0], 768, device="cuda").bfloat16()
    # As many blocks in each row, or another kernel might serve: few blocks are not drawn far from a class's border.
    weights = [weight, weight.roll(block[1], 1)]
    model = torch.nn.Sequential(torch.nn.Linear(768, 512)).cuda().bfloat16()
    with torch.no_grad():
        model[0].weight.copy_(weights[0])
    s = lacis.create_schedule(model)
    s["0.weight"].set_format(format)
    s.build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    x, dy = (torch.randn(300, size, device="cuda").bfloat16() for size in (768, 512))
    x.requires_grad_()

    def step():
        optimizer.zero_grad()
        y = model(x)
        y.backward(dy)
        optimizer.step()
        with torch.no_grad():
            return y.detach(), model(x)

    step()
    step()  # copies of values are filled by torch first, by a kernel from then on
    packed = lacis.pack(weights[1], format)
    x.grad = None
    monkeypatch.setattr(kernels, "_make", lambda *_: pytest.fail("a kernel is compiled"))
    no_waiting()
    model[0].weight.set_packed(packed)
    found = step()
    torch.cuda.set_sync_debug_mode("default")
    for y in found:
        check(y, x.detach().double() @ weights[1].double().T + model[0].bias.detach().double())
    check(x.grad, dy.double() @ weights[1].double())
    packed = model[0].weight.packed()
    check(packed.values.grad, packed.pattern.gather(dy.double().T @ x.detach().double()))


@pytest.mark.parametrize(
    "n, workers, raster, groups", [(64, 132, 4, 3), (300, 132, 1, 1), (22, 5, 8, 16), (0, 3, 2, 2)]
)
def test_the_kernel_hands_out_as_the_heap_does(n, workers, raster, groups):
    cost = torch.rand(n, dtype=torch.float64).sort(descending=True).values
    cost[: n // 3], cost[n - n // 5 :] = cost[:1], -1.0
    tiles = range(1, raster + 1)
    want = rule.hand_out(cost, workers=workers, tiles=tiles, groups=groups)
    given = cost.cuda().expand(raster, -1).contiguous()
    assert torch.equal(pattern_kernels.hand_out(given, workers, tiles, groups).cpu(), want)


@pytest.mark.parametrize("name", [name for name in FORMATS if "Cs" not in name])
def test_the_arrays_are_those_of_a_cpu(name):
    """But for the lists, of which there are as many as processors."""
    packed = lacis.pack(blocked(512, 768, tuple(FORMATS[name].tile), 0.8), FORMATS[name])
    lacis.einsum("ij,bj->bi", packed, torch.zeros(64, 768, device="cuda", dtype=packed.dtype))
    layouts = [key[1] for key in packed.pattern._kept if key[0] == "derived" and key[1].function == "layout"]
    assert layouts
    other = packed.pattern.to("cpu")
    for step in layouts:
        here, there = packed.pattern.derived(step), other.derived(step)
        assert all(torch.equal(here[array].cpu(), there[array]) for array in there)


def as_many_slots(weight, block):
    """The rows of blocks in another order."""
    return weight.roll(-(-weight.shape[0] // block[0] // 2) * block[0], 0)


@pytest.mark.parametrize("is_trained", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_a_captured_graph_sees_a_new_pattern(name, is_trained):
    """Nothing that it walks was freed, which is poisoned here."""
    format, block = FORMATS[name], tuple(FORMATS[name].tile or (1, 1))
    weights = [blocked(512, 768, block, 0.6)]
    weights += [as_many_slots(weights[0], block)]
    model = torch.nn.Sequential(torch.nn.Linear(768, 512)).cuda().bfloat16()
    with torch.no_grad():
        model[0].weight.copy_(weights[0])
    s = lacis.create_schedule(model)
    s["0.weight"].set_format(format)
    s.build()
    x, dy = (torch.randn(300, size, device="cuda").bfloat16() for size in (768, 512))
    x.requires_grad_(is_trained)

    def step():
        x.grad = model[0].weight.values.grad = model[0].bias.grad = None
        with torch.set_grad_enabled(is_trained):
            y = model(x)
        if is_trained:
            y.backward(dy)
        return y, x.grad

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y, dx = step()
    model[0].weight.set_packed(lacis.pack(weights[1], format))
    poison = [torch.full((1 << 22,), -1, dtype=torch.int32, device="cuda") for _ in range(16)]
    graph.replay()
    check(y.detach(), x.detach().double() @ weights[1].double().T + model[0].bias.detach().double())
    if is_trained:
        check(dx, dy.double() @ weights[1].double())
    del poison
    if "Ell" not in name:
        with pytest.raises(lacis.DataError, match="but a CUDA graph was captured that walks it"):
            model[0].weight.set_packed(lacis.pack(blocked(512, 768, block, 0.95), format))
    graph.replay()
    check(y.detach(), x.detach().double() @ weights[1].double().T + model[0].bias.detach().double())


def test_a_kernel_follows_the_density_class():
    """Small blocks lie in other stages of the pipeline where few are stored."""
    model = torch.nn.Sequential(torch.nn.Linear(768, 512)).cuda().bfloat16()
    weights = [blocked(512, 768, (16, 16), sparsity) for sparsity in (0.3, 0.93)]
    with torch.no_grad():
        model[0].weight.copy_(weights[0])
    s = lacis.create_schedule(model)
    s["0.weight"].set_format(lacis.Bsr(16, 16))
    s.build()
    x = torch.randn(300, 768, device="cuda").bfloat16()
    with torch.no_grad():
        model(x)
        before = model[0]._spec
        model[0].weight.set_packed(lacis.pack(weights[1], lacis.Bsr(16, 16)))
        check(model(x), x.double() @ weights[1].double().T + model[0].bias.double())
    assert before.slabs != model[0]._spec.slabs
