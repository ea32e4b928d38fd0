# SPDX-License-Identifier: Apache-2.0
"""Small blocks on tensor cores of a Hopper GPU: training the quick way on copies of values, of which none is stale."""

import pathlib
import sys

import lacis
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from test_tile_schedules_cuda import HOPPER, blocked, check
from tile_kernels import Ways

pytestmark = pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
BLOCKS = (16, 32)


def model_of(block, rows=768, columns=512, dtype=torch.bfloat16, seed=0):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(columns, rows)).cuda().to(dtype)
    s = lacis.create_schedule(model)
    s["0.weight"].block(block, block).sparsify(lacis.BlockMagnitude(0.75)).set_format(lacis.Bsr)
    layer = s.build()[0]
    assert layer.weight._copies or dtype == torch.float32, "it reads copies"
    return layer


def sum_of(seed=0):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(512, 768)).cuda().bfloat16()
    s = lacis.create_schedule(model)
    handle = s["0.weight"].block(16, 16).sparsify(lacis.BlockMagnitude(0.75))
    handle.decompose(head=lacis.BlockedEll(16, 16, width=4), rest=lacis.Bsr(16, 16))
    return s.build()[0]


LAYERS = {"16": lambda **k: model_of(16, **k), "32": lambda **k: model_of(32, **k), "sum": sum_of}


def tokens(count=300, columns=512, grad=False, seed=0):
    torch.manual_seed(seed)
    return torch.randn(count, columns, device="cuda").bfloat16().requires_grad_(grad)


def assert_fresh(layer, x=None, what=""):
    x = tokens() if x is None else x
    with torch.no_grad():
        want = x.double() @ layer.weight.to_dense().double().T + layer.bias.double()
        check(layer(x), want, what)


def assert_input_gradient(layer, grad, dy, what=""):
    check(grad, dy.double() @ layer.weight.to_dense().detach().double(), what)


@pytest.mark.parametrize("frozen", ["nothing", "values", "input", "bias"])
@pytest.mark.parametrize("kind", LAYERS)
def test_the_quick_way_has_the_numbers_of_the_general_one(kind, frozen):
    layer = LAYERS[kind]()
    for part in layer.weight._parts():
        part.values.requires_grad_(frozen != "values")
    layer.bias.requires_grad_(frozen != "bias")
    quick, found = layer._quick_steps, []
    for shape in ((300, 512), (2, 3, 512), (512,)):
        for general in (False, True):
            layer._quick_steps = quick
            ways = Ways(layer, general)
            x = torch.linspace(-1, 1, 512 * 300, device="cuda").bfloat16()
            x = x[: torch.Size(shape).numel()].reshape(shape).clone().requires_grad_(frozen != "input")
            y = layer(x)
            y.float().cos().sum().backward()
            assert ways.answered == (not general)
            grads = [x.grad, *(each.grad for each in layer.parameters())]
            layer.zero_grad()
            found.append([y.detach(), *grads])
        for one, other in zip(*found[-2:], strict=True):
            assert one is other is None or torch.equal(one, other)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("kind", LAYERS)
def test_models_train_alike_by_both_ways(kind, optimizer):
    """A layer that is used twice, steps of a foreach optimizer, inference in between."""
    found = []
    for general in (False, True):
        first = LAYERS[kind]()
        twice = model_of(32, 768, 768, seed=1)
        model = torch.nn.Sequential(first, torch.nn.Tanh(), twice, torch.nn.Tanh(), twice)
        ways = [Ways(layer, general) for layer in (first, twice)]
        if optimizer == "sgd":
            optimize = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9, foreach=True)
        else:
            optimize = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
        losses = []
        for n in range(6):
            loss = model(tokens()).float().sub(1).square().mean()
            assert_fresh(first, what=f"step {n}")
            loss.backward()
            optimize.step()
            optimize.zero_grad()
            losses.append(loss.detach())
        assert [each.answered for each in ways] == ([0, 0] if general else [6, 12])
        assert not torch.equal(losses[-1], losses[0])
        found.append([*losses, *model.parameters()])
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("block", BLOCKS)
def test_the_host_waits_for_nothing(block):
    layer, x = model_of(block), tokens(grad=True)
    dy = torch.randn(300, 768, device="cuda").bfloat16()
    layer(x).backward(dy)
    ways = Ways(layer)
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.no_grad():
            layer.weight.values.mul_(2)
        layer(x).backward(dy)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert ways.answered == 1


@pytest.mark.parametrize("block", BLOCKS)
def test_a_step_copies_nothing_but_values(block):
    """All arrays are read where they lie; the values are copied by two kernels, one for each layout."""
    layer, x = model_of(block), tokens(grad=True)
    dy = torch.randn(300, 768, device="cuda").bfloat16()
    for _ in range(2):
        layer(x).backward(dy)
    with torch.profiler.profile() as profile:
        layer(x).backward(dy)
    found = [event.name for event in profile.events()]
    assert sum("scatter_units" in name for name in found) == 2 and "aten::copy_" not in found


def trained(layer, x):
    """One step of training, which a graph can be made of."""
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-2, capturable=True)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = (layer(x).float() - 1).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def captured(function, warm=3):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(warm):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = function()
    return graph, found


@pytest.mark.parametrize("block", BLOCKS)
def test_inference_and_eager_steps_between_replays_of_a_step(block):
    layer, twin, x = model_of(block), model_of(block), tokens()
    step, eager = trained(layer, x), trained(twin, x)
    graph, _ = captured(step)
    for _ in range(3):
        eager()
    for n in range(4):
        assert_fresh(layer, what=f"replay {n}")
        graph.replay()
        eager()
        assert_fresh(layer, what=f"after replay {n}")
        torch.testing.assert_close(layer.weight.values, twin.weight.values)
    ways, x = Ways(layer), tokens(grad=True)
    y = layer(x)
    dy = torch.randn_like(y)
    graph.replay()  # between a forward and its backward pass, which then has the new values, as a dense layer has
    y.backward(dy)
    assert ways.answered == 1
    assert_input_gradient(layer, x.grad, dy)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_graph_of_an_optimizer_alone(block):
    layer, x = model_of(block), tokens(grad=True)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    for parameter in layer.parameters():
        parameter.grad = torch.ones_like(parameter)
    graph, _ = captured(optimizer.step, warm=1)
    for n in range(3):
        x.grad = None
        y = layer(x)
        check(y.detach(), x.detach().double() @ layer.weight.to_dense().detach().double().T + layer.bias.double(), n)
        dy = torch.randn_like(y)
        y.backward(dy)
        assert_input_gradient(layer, x.grad, dy, n)
        graph.replay()
        assert_fresh(layer, what=n)


@pytest.mark.parametrize("trainable", [True, False])
@pytest.mark.parametrize("block", BLOCKS)
def test_a_graph_of_inference_follows_the_values(block, trainable):
    layer, x = model_of(block), tokens()
    layer.weight.values.requires_grad_(trainable)
    with torch.no_grad():
        layer(x)
        layer.weight.values.mul_(2)
        if not trainable:
            layer(x)  # this copy serves the graph, too
        graph, found = captured(lambda: layer(x), warm=0)
        assert_fresh(layer, what="while the graph never ran")
        for n in range(3):
            graph.replay()
            check(found, x.double() @ layer.weight.to_dense().double().T + layer.bias.double(), n)
            layer.weight.values.mul_(-1.5)
            if not trainable:
                layer(x)  # makes the copy again, where the graph reads it
    if trainable:
        y = layer(tokens(grad=True))
        y.sum().backward()
        torch.optim.SGD(layer.parameters(), lr=0.1).step()
        graph.replay()
        with torch.no_grad():
            check(found, x.double() @ layer.weight.to_dense().double().T + layer.bias.double(), "after a step")


def test_other_values_by_every_door():
    layer, x = model_of(16), tokens(grad=True)
    values = layer.weight.values
    memory = values.detach().clone()
    values.data = torch.from_dlpack(memory)
    assert_fresh(layer)
    before = values.data_ptr(), values._version
    memory.mul_(2)
    values.data = torch.from_dlpack(memory)  # another storage of the same memory, as an allocator may give it
    assert (values.data_ptr(), values._version) == before
    assert_fresh(layer, what=".data at the same address")
    state = {name: 2 * t if t.is_floating_point() else t for name, t in layer.state_dict().items()}
    layer.load_state_dict(state)
    assert_fresh(layer, what="load_state_dict")
    ways, y = Ways(layer), layer(x)
    dy = torch.randn_like(y)
    y.backward(dy)
    assert ways.answered == 1
    assert_input_gradient(layer, x.grad, dy)


@pytest.mark.parametrize("kind", LAYERS)
def test_another_pattern_between_forward_and_backward_is_refused(kind):
    layer, x = LAYERS[kind](), tokens(grad=True)
    layer(x).sum().backward()
    x.grad, y = None, layer(x)
    layer.weight.set_packed(lacis.pack(blocked(768, 512, (16, 16), 0.6), layer.weight.format))
    with pytest.raises(lacis.DataError, match="was given another pattern between the forward and the backward pass"):
        y.sum().backward()
    del y
    layer.zero_grad()
    assert_fresh(layer)
    y = layer(x)
    dy = torch.randn_like(y)
    y.backward(dy)
    assert_input_gradient(layer, x.grad, dy)


@pytest.mark.parametrize("block", BLOCKS)
def test_compiled_and_autocast_steps_between_quick_ones(block):
    torch._dynamo.reset()
    layer, dy = model_of(block, dtype=torch.float32), torch.randn(300, 768, device="cuda").bfloat16()
    with torch.autocast("cuda", torch.bfloat16):
        x = tokens().float().requires_grad_()
        layer(x).backward(dy)
        assert_input_gradient(layer, x.grad, dy, "autocast")
    layer = model_of(block)
    compiled = torch.compile(layer, fullgraph=True)
    for n, call in enumerate([layer, compiled, layer, compiled]):
        x = tokens(grad=True)
        call(x).backward(dy)
        assert_input_gradient(layer, x.grad, dy, n)
        with torch.no_grad():
            layer.weight.values.mul_(1.5)
        assert_fresh(layer, what=n)
