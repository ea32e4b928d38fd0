# SPDX-License-Identifier: Apache-2.0
"""Calls in training that are bound to their tensors: the numbers of the general way, and what they leave to it."""

import gc
import weakref

import lacis
import pytest
import torch
from lacis.nn import bound_step, recorded
from lacis.runtime import bound, library
from lacis.runtime.compile import Kernel
from strategies import mostly_long
from training import FORMATS, SHAPE, build, masked, values

INPUTS = {
    "matrix": lambda: torch.randn(16, SHAPE[0]),
    "3-D": lambda: torch.randn(2, 8, SHAPE[0]),
    "vector": lambda: torch.randn(SHAPE[0]),
    "no rows": lambda: torch.randn(2, 0, SHAPE[0]),
    "strided": lambda: torch.randn(SHAPE[0], 16).t(),
}


@pytest.fixture(params=["node", "python"], autouse=True)
def way(request, monkeypatch):
    """By a node of autograd in C++, or in Python, as where none was built for the torch that is installed."""
    library.register()
    if request.param == "python":
        monkeypatch.setattr(Kernel, "bind_layer", staticmethod(lambda *call: None))
    elif not bound.has_node():
        pytest.skip("no node was built for this torch")
    return request.param


python_alone = pytest.mark.parametrize("way", ["python"], indirect=True)


def gradients(layer, x, general=False):
    """The answer and all gradients of one layer, and whether its quick way answered."""
    if layer._quick_steps is None:
        layer.bind()
    quick, answered = layer._quick_steps, []
    layer._quick_steps = lambda x: None if general else answered.append(quick(x)) or answered[-1]
    x = x.detach().requires_grad_()
    try:
        y = layer(x)
    finally:
        layer._quick_steps = quick
    y.cos().sum().backward()
    trained = [x, layer.bias, *values(layer).values()]
    found = [y.detach(), *(tensor.grad for tensor in trained)]
    for tensor in trained:
        tensor.grad = None
    return found, bool(answered) and answered[0] is not None


@pytest.mark.parametrize("format", mostly_long(list(FORMATS), "csr", "bsr", "sum"))
def test_the_quick_way_has_the_numbers_of_the_general_one(format):
    model, _ = build(format)
    for make in INPUTS.values():
        x = make()
        found, quick = gradients(model[0], x)
        assert quick, "no other way was taken"
        expected, quick = gradients(model[0], x, general=True)
        assert not quick
        assert all(map(torch.equal, found, expected))


def test_an_expanded_gradient():
    model, _ = build("csr")
    x = torch.randn(16, SHAPE[0], requires_grad=True)
    model[0](x).sum().backward()
    torch.testing.assert_close(x.grad, model[0].weight.to_dense().sum(0).expand(16, -1).detach())


@pytest.mark.parametrize("format", ["csr", "sum"])
def test_it_sees_what_the_module_holds_now(format):
    model, _ = build(format)
    layer, x = model[0], torch.randn(3, SHAPE[0])

    def check():
        found, quick = gradients(layer, x)
        dense, mine = masked(model)[0], x.clone().requires_grad_()
        dense(mine).cos().sum().backward()
        torch.testing.assert_close(found[1], mine.grad)
        torch.testing.assert_close(found[2], dense.bias.grad)
        return quick

    assert check()
    with torch.no_grad():
        for each in values(layer).values():
            each.mul_(2)
    assert check()
    layer.bias = torch.nn.Parameter(torch.randn(SHAPE[1]))
    assert check()
    crd = weakref.ref(layer.weight._parts()[-1].crd1)
    fewer = layer.weight.to_dense().detach().flip(0)
    fewer[0] = 0
    layer.weight.set_packed(lacis.pack(fewer, layer.weight.format))
    assert check()
    gc.collect()
    assert crd() is None, "an earlier pattern is kept"
    layer.weight = build(format)[0][0].weight
    assert not check(), "another weight is left to the general way"


def test_values_that_change_before_the_backward_are_noticed():
    model, _ = build("csr")
    y = model[0](torch.randn(3, SHAPE[0], requires_grad=True))
    with torch.no_grad():
        model[0].weight.values.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_pattern_as_long_as_the_one_before_is_refused_by_name():
    """Its values are written in place: the layer speaks before torch does."""
    model, _ = build("csr")
    layer, x = model[0], torch.randn(3, SHAPE[0], requires_grad=True)
    for _ in range(2):  # a call binds what the second one runs
        y = layer(x)
        values = layer.weight.values
        layer.weight.set_packed(lacis.pack(layer.weight.to_dense().detach().roll(1, 0), layer.weight.format))
        assert layer.weight.values is values
        with pytest.raises(lacis.DataError, match="given another pattern between the forward and the backward pass"):
            y.sum().backward()


def test_a_gradient_of_the_wrong_dtype_is_no_crash():
    model, _ = build("csr")
    y = model[0](torch.randn(3, SHAPE[0], requires_grad=True))
    with pytest.raises(RuntimeError):
        y.backward(torch.ones(3, SHAPE[1] + 1))


@pytest.mark.parametrize("format", mostly_long(["csr", "ell", "sum"], "csr"))
def test_gradients_of_gradients(format):
    model, _ = build(format, dtype=torch.float64)
    layer, found = model[0], []
    for general in (False, True):
        quick, layer._quick_steps = layer._quick_steps, (lambda x: None) if general else layer._quick_steps
        x = torch.linspace(-1, 1, 3 * SHAPE[0], dtype=torch.float64).reshape(3, SHAPE[0]).requires_grad_()
        wanted = [x, *values(layer).values()]
        first = torch.autograd.grad(layer(x).square().sum(), wanted, create_graph=True)
        found.append(torch.autograd.grad(sum(each.square().sum() for each in first), [*wanted, layer.bias]))
        layer._quick_steps = quick
    for one, other in zip(*found):
        torch.testing.assert_close(one, other)


def test_saved_tensors_that_lie_elsewhere_are_used():
    model, _ = build("csr")
    x = torch.randn(3, SHAPE[0])
    expected, _ = gradients(model[0], x)
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda saved: saved):
        y = model[0](x.requires_grad_())
    with torch.no_grad():
        model[0].weight.values.zero_()
    torch.autograd.backward(y, -expected[0].sin())
    torch.testing.assert_close(x.grad, expected[1])


def test_a_model_may_be_gone_before_its_backward():
    model, _ = build("csr")
    x = torch.randn(3, SHAPE[0], requires_grad=True)
    expected = model[0].weight.to_dense().detach().sum(0)
    y = model[0](x)
    del model
    gc.collect()
    y.sum().backward()
    torch.testing.assert_close(x.grad, expected.expand(3, -1))


@python_alone
def test_a_backward_pass_runs_the_kernels_that_it_asks_for(monkeypatch):
    model, _ = build("csr")
    ran = []
    for name in ("_input_gradient", "_values_gradient"):
        run = getattr(bound_step.Bound, name)
        monkeypatch.setattr(bound_step.Bound, name, lambda *a, run=run, name=name: ran.append(name) or run(*a))
    x = torch.randn(3, SHAPE[0], requires_grad=True)
    y = model[0](x).sum()
    torch.autograd.grad(y, x, retain_graph=True)
    y.backward(inputs=[model[0].weight.values])
    assert ran == ["_input_gradient", "_values_gradient"]


@pytest.mark.parametrize("way", ["node"], indirect=True)
def test_a_node_runs_the_kernels_that_it_is_asked_for():
    model, _ = build("csr")
    layer, x = model[0], torch.randn(3, SHAPE[0], requires_grad=True)
    every = [x, layer.weight.values, layer.bias]
    for wanted, kernels in ((every, 2), (every[:1], 1), (every[1:2], 1), (every[2:], 0)):
        y = layer(x).sum()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            torch.autograd.grad(y, wanted)
        assert sum(event.name == "lacis::einsum" for event in profile.events()) == kernels


def test_autograd_has_the_node_of_the_way(way):
    model, _ = build("csr")
    y = model[0](torch.randn(3, SHAPE[0], requires_grad=True))
    assert ("LayerCall" in y.grad_fn.name()) == (way == "node")


@pytest.mark.parametrize("way", ["node"], indirect=True)
def test_what_a_node_is_told_is_checked():
    values = torch.zeros(3)
    with pytest.raises(RuntimeError, match="two numbers for the values of each part"):
        torch.ops.lacis.record([values], [], values, 0, [1], [], 1, False)
    with pytest.raises(RuntimeError, match="layer 7 is not bound in this process"):
        torch.ops.lacis.recorded(values, values, 7, 7, 0)


@pytest.mark.parametrize("format", ["csr", "sum"])
def test_a_step_hands_over_no_lists_of_tensors(format, monkeypatch):
    """All its kernels run through bound calls."""
    model, _ = build(format)
    x = torch.randn(3, SHAPE[0], requires_grad=True)
    model[0](x).sum().backward()
    monkeypatch.setattr(library, "inference", lambda: pytest.fail("a kernel was called with lists"))
    expected, x.grad = x.grad, None
    model[0](x).sum().backward()
    assert torch.equal(x.grad, expected)


@python_alone
def test_torch_is_seldom_asked_which_gradients_it_wants(monkeypatch, captured):
    model, _ = build("csr")
    layer, x, asked = model[0], torch.randn(3, SHAPE[0], requires_grad=True), []
    wanted = [x, layer.weight.values, layer.bias]
    runs = recorded._runs
    monkeypatch.setattr(recorded, "_runs", lambda node: asked.append(node) or runs(node))
    layer(x)
    times = 2 * (recorded.Asked.TAKEN + 1)
    expected = torch.autograd.grad(layer(x).sum(), wanted)
    for _ in range(times - 1):
        torch.autograd.grad(layer(x).sum(), wanted)
    assert len(asked) == 2 * len(wanted)
    (found,) = torch.autograd.grad(layer(x).sum(), x)
    assert torch.equal(found, expected[0])
    for captured[0], create_graph in ((False, True), (True, False)):
        torch.autograd.grad(layer(x).sum(), wanted)
        asked.clear()
        torch.autograd.grad(layer(x).sum(), x, create_graph=create_graph)
        assert len(asked) == len(wanted), "what stays is asked for"
