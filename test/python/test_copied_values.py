# SPDX-License-Identifier: Apache-2.0
"""Layers whose kernels read copies of their values: the quick way in training, and no copy that is older than these."""

import copy
import pickle

import lacis
import numpy
import pytest
import tile_kernels
import torch
from lacis.formats import decompose
from lacis.nn import copied, step, weight
from lacis.packing import packed as packed_tensor
from lacis.patterns import seen
from lacis.patterns.execution import TileCopy
from lacis.runtime import library
from torch.utils.checkpoint import checkpoint

FORMATS = {
    "16": lacis.Bsr(16, 16),
    "32": lacis.Bsr(32, 32),
    "sum": decompose(head=lacis.BlockedEll(16, 16, width=1), rest=lacis.Bsr(16, 16)),
}


@pytest.fixture(autouse=True)
def kernels_in_torch(monkeypatch):
    monkeypatch.setattr(library, "inference", lambda: tile_kernels.run)


@pytest.fixture
def captured(monkeypatch):
    """A list of one, which says whether a CUDA graph is captured; what its calls launch does run here."""
    now = [False]
    for module in (seen, weight, step, copied, packed_tensor):
        monkeypatch.setattr(module, "is_captured", lambda device: now[0])
    return now


@pytest.fixture
def copies(monkeypatch):
    """Every copy that is made, in the order of time: True where it was filled again."""
    made = []
    for name, again in (("__call__", False), ("again", True)):
        run = getattr(TileCopy, name)
        monkeypatch.setattr(TileCopy, name, lambda *a, run=run, again=again: made.append(again) or run(*a))
    return made


def tokens(*shape, grad=False, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(*(shape or (5, 160)), generator=draw).bfloat16().requires_grad_(grad)


def expected(layer, x):
    with torch.no_grad():
        y = x.float() @ layer.weight.to_dense().float().T
        return (y if layer.bias is None else y + layer.bias.float()).bfloat16()


def inference(layer, x):
    with torch.no_grad():
        return layer(x)


def assert_fresh(layer, x=None):
    """Inference has the numbers of the present values."""
    x = tokens() if x is None else x
    assert torch.equal(inference(layer, x), expected(layer, x))


class Ways:
    """Counts the calls that the quick way answers; `general` closes it."""

    def __init__(self, layer, general=False):
        if layer._quick_steps is None:
            layer.bind()
        self.quick, self.answered, self.general = layer._quick_steps, 0, general
        layer._quick_steps = self

    def __call__(self, x):
        y = None if self.general else self.quick(x)
        self.answered += y is not None
        return y


INPUTS = {"matrix": (5, 160), "3-D": (2, 3, 160), "vector": (160,), "no rows": (2, 0, 160)}


def frozen_values(layer, x):
    for part in layer.weight._parts():
        part.values.requires_grad_(False)


def frozen_input(layer, x):
    x.requires_grad_(False)


def frozen_bias(layer, x):
    layer.bias.requires_grad_(False)


@pytest.mark.parametrize("freeze", [None, frozen_values, frozen_input, frozen_bias])
@pytest.mark.parametrize("format", FORMATS)
def test_the_quick_way_has_the_numbers_of_the_general_one(format, freeze):
    for shape in INPUTS.values():
        found = []
        for general in (False, True):
            layer, x = tile_kernels.layer(FORMATS[format]), tokens(*shape, grad=True)
            if freeze is not None:
                freeze(layer, x)
            ways = Ways(layer, general)
            y = layer(x)
            y.float().cos().sum().backward()
            assert ways.answered == (not general)
            found.append([y.detach(), x.grad, *(each.grad for each in layer.parameters())])
        for quick, slow in zip(*found, strict=True):
            assert quick is slow is None or torch.equal(quick, slow)


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9, foreach=True),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, foreach=True),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("format", FORMATS)
def test_models_train_alike_by_both_ways(format, optimizer):
    """A layer that is used twice, steps of an optimizer, inference before and after each."""
    found = []
    for general in (False, True):
        first, twice = tile_kernels.layer(FORMATS[format]), tile_kernels.layer(FORMATS[format], 96, 96, seed=1)
        model = torch.nn.Sequential(first, torch.nn.Tanh(), twice, torch.nn.Tanh(), twice)
        ways = [Ways(layer, general) for layer in (first, twice)]
        optimize = OPTIMIZERS[optimizer](model.parameters())
        seen_by = []
        for n in range(4):
            x = tokens(grad=True, seed=n)
            seen_by.append(inference(model, x))
            assert_fresh(first)
            model(x).float().square().sum().backward()
            assert_fresh(first)
            optimize.step()
            optimize.zero_grad()
            seen_by.append(x.grad)
        assert [each.answered for each in ways] == ([0, 0] if general else [4, 8])
        found.append([*seen_by, inference(model, x), *model.parameters()])
    assert all(map(torch.equal, *found))


def test_a_step_fills_each_copy_once(copies):
    layer, x = tile_kernels.layer(FORMATS["16"]), tokens(grad=True)
    layer(x).sum().backward()  # makes the buffers
    copies.clear()
    for _ in range(3):
        y = layer(x)
        assert copies == [True], "the copy of the product"
        y.sum().backward()
        assert copies == [True, True], "that of the gradient of the input"
        with torch.no_grad():
            layer.weight.values.mul_(2)
        copies.clear()
    y, z = layer(x), layer(2 * x)
    copies.clear()
    (y.sum() + z.sum()).backward()
    assert copies == [True], "the values of both are the same"


def test_frozen_values_are_copied_once(copies):
    layer, x = tile_kernels.layer(FORMATS["16"]), tokens(grad=True)
    layer.weight.values.requires_grad_(False)
    layer(x).sum().backward()
    copies.clear()
    layer(x).sum().backward()
    assert_fresh(layer)
    assert not copies


def test_inference_copies_what_has_changed(copies):
    layer = tile_kernels.layer(FORMATS["16"])
    assert_fresh(layer)
    held = layer.weight.derived0_values
    copies.clear()
    assert_fresh(layer)
    assert not copies
    with torch.no_grad():
        layer.weight.values.mul_(2)
    assert_fresh(layer)
    assert copies == [True] and layer.weight.derived0_values is held, "where a recorded graph reads it"


@pytest.mark.parametrize("format", FORMATS)
def test_values_that_change_before_the_backward_are_noticed(format):
    for general in (False, True):
        layer = tile_kernels.layer(FORMATS[format])
        Ways(layer, general)
        y = layer(tokens(grad=True))
        with torch.no_grad():
            next(iter(layer.weight._parts())).values.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def other_values(layer):
    layer.weight.set_packed(layer.weight.packed())


def other_pattern(layer):
    layer.weight.set_packed(tile_kernels.packed(layer.weight.format, seed=7))


def other_state(layer):
    seed = 7 + next(iter(layer.weight._parts())).revision
    state = tile_kernels.layer(layer.weight.format, seed=seed).state_dict()
    layer.load_state_dict(state)


@pytest.mark.parametrize("change", [other_values, other_pattern, other_state])
@pytest.mark.parametrize("format", FORMATS)
def test_a_pattern_that_changes_before_the_backward_is_refused(format, change):
    layer, x = tile_kernels.layer(FORMATS[format]), tokens(grad=True)
    text = r"linear: the weight \[96, 160\] was given another pattern between the forward and the backward pass; "
    for general in (True, False):
        ways = Ways(layer, general)
        y = layer(x)
        assert ways.answered == (not general)
        layer._quick_steps = ways.quick
        change(layer)
        with pytest.raises(lacis.DataError, match=text + "run backward before set_packed"):
            y.sum().backward()
        assert x.grad is None
        del y  # while its graph lives, torch expects gradients of the old shape
    assert_fresh(layer)
    ways = Ways(layer)
    layer(x).sum().backward()
    assert ways.answered == 1
    assert torch.equal(x.grad, layer.weight.to_dense().detach().float().sum(0).bfloat16().expand(5, -1))


def test_other_numbers_at_an_address_that_was_seen():
    """Another storage with `.data =`, where the one before lay, with as many changes counted."""
    layer = tile_kernels.layer(FORMATS["16"])
    values = layer.weight.values
    memory = numpy.zeros(values.numel(), dtype=numpy.uint16)
    storages = [torch.from_numpy(memory).view(torch.bfloat16).reshape(values.shape) for _ in range(2)]
    storages[0].copy_(values.detach())
    values.data = storages[0]
    assert_fresh(layer)
    before = values.data_ptr(), values._version
    storages[0].mul_(2)
    values.data = storages[1]
    assert (values.data_ptr(), values._version) == before
    assert_fresh(layer)


def test_other_values_by_every_door():
    layer, x = tile_kernels.layer(FORMATS["16"]), tokens(grad=True)
    assert_fresh(layer)
    layer.weight.values.data = layer.weight.values.data * 2
    assert_fresh(layer)
    state = {name: 3 * tensor if tensor.is_floating_point() else tensor for name, tensor in layer.state_dict().items()}
    layer.load_state_dict(state)
    assert_fresh(layer)
    layer.weight.values = torch.nn.Parameter(layer.weight.values.detach() / 2)
    assert_fresh(layer)
    ways, y = Ways(layer), layer(x)
    assert ways.answered == 1 and torch.equal(y, expected(layer, x))
    layer.weight.values.data = layer.weight.values.data * 2  # torch's own layers read the new ones, too
    y.sum().backward()
    assert torch.equal(x.grad, layer.weight.to_dense().detach().float().sum(0).bfloat16().expand(5, -1))
    swapped = {name: (2 * tensor).detach() for name, tensor in layer.named_parameters()}
    found = torch.func.functional_call(layer, swapped, (x.detach(),))
    assert torch.equal(found, (2 * expected(layer, x).float()).bfloat16())
    assert_fresh(layer)


def test_a_graph_that_trains_the_values_is_remembered(captured, copies):
    """What it replays changes them unseen, here by `.data`."""
    layer, x = tile_kernels.layer(FORMATS["16"]), tokens(grad=True)
    layer(x).sum().backward()
    assert_fresh(layer)
    captured[0], ways = True, Ways(layer)
    copies.clear()
    layer(x).sum().backward()
    assert ways.answered == 0 and copies == [False, False], "a graph has copies of its own"
    captured[0] = False
    for _ in range(3):
        layer.weight.values.data.mul_(2)
        assert_fresh(layer)
        assert torch.equal(layer(x), expected(layer, x))
    layer.weight.set_packed(tile_kernels.packed(FORMATS["16"], seed=5))
    assert_fresh(layer)
    layer.weight.values.data.mul_(2)
    assert_fresh(layer)
    twin = copy.deepcopy(layer)
    assert_fresh(twin)
    copies.clear()
    assert_fresh(twin)
    assert not copies, "no graph trains it"


@pytest.mark.parametrize("trainable", [True, False])
def test_a_copy_that_a_graph_will_make_is_not_there_yet(captured, copies, trainable):
    layer = tile_kernels.layer(FORMATS["16"])
    layer.weight.values.requires_grad_(trainable)
    assert_fresh(layer)
    with torch.no_grad():
        layer.weight.values.mul_(2)
    copies.clear()
    captured[0] = True
    held = layer.weight.derived0_values.clone()
    inference(layer, tokens())
    assert copies == [False] and torch.equal(layer.weight.derived0_values, held)
    captured[0] = False
    assert_fresh(layer)
    assert copies == [False, True]
    captured[0] = True
    inference(layer, tokens())
    assert copies == [False, True] + [False] * trainable, "frozen values have one copy for all"


def test_the_dense_copy_of_a_weight_follows_it_too(captured):
    layer = tile_kernels.layer(FORMATS["16"], bias=False)
    layer.runs_dense = True
    assert_fresh = lambda: torch.testing.assert_close(inference(layer, tokens()), expected(layer, tokens()))
    assert_fresh()
    held = layer._dense.tensor
    assert layer._dense_weight() is not held, "gradients are recorded"
    assert_fresh()
    with torch.no_grad():
        layer.weight.values.mul_(2)
        captured[0] = True
        inference(layer, tokens())
        captured[0] = False
    assert layer._dense.tensor is None
    assert_fresh()
    captured[0] = True
    layer(tokens())
    captured[0] = False
    for _ in range(2):
        layer.weight.values.data.mul_(2)
        assert_fresh()


def test_a_packed_tensor_has_no_stale_copy_either(captured):
    text = tile_kernels.LAYOUTS[True][0] + " " + tile_kernels.LAYOUTS[True][1]
    packed = tile_kernels.packed(FORMATS["16"])
    values = packed.values.requires_grad_()
    first = packed.array("", text, "values")
    assert packed.array("", text, "values") is first
    assert pickle.loads(pickle.dumps(packed)).array("", text, "values") is not first
    with torch.no_grad():
        values.mul_(2)
        captured[0] = True
        assert torch.equal(packed.array("", text, "values"), 2 * first)
        captured[0] = False
        second = packed.array("", text, "values")
        assert packed.array("", text, "values") is second and torch.equal(second, 2 * first)
    captured[0] = True
    assert packed.array("", text, "values") is not second
    captured[0] = False
    values.data.mul_(2)
    assert torch.equal(packed.array("", text, "values"), 4 * first)


@pytest.mark.parametrize("general", [False, True])
def test_saved_tensors_that_lie_elsewhere_are_used(general):
    layer, x = tile_kernels.layer(FORMATS["16"]), tokens(grad=True)
    Ways(layer, general)
    dense = layer.weight.to_dense().detach().float()
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda saved: saved):
        y = layer(x)
    if not general:  # the general way has saved a copy, too
        with torch.no_grad():
            layer.weight.values.zero_()
    y.sum().backward()
    assert torch.equal(x.grad, dense.sum(0).bfloat16().expand(5, -1))


def test_gradients_of_gradients_outlive_later_calls():
    found = []
    for general in (False, True):
        layer, x = tile_kernels.layer(FORMATS["16"]), tokens(grad=True)
        Ways(layer, general)
        (first,) = torch.autograd.grad(layer(x).float().square().sum(), x, create_graph=True)
        layer(x).sum().backward(inputs=[x])  # fills the copies again
        assert_fresh(layer)
        found.append(torch.autograd.grad(first.float().square().sum(), [x, layer.weight.values]))
    assert all(map(torch.equal, *found))


def test_checkpoints():
    found = []
    for general in (False, True):
        first, second = tile_kernels.layer(FORMATS["16"]), tile_kernels.layer(FORMATS["32"], 64, 96)
        ways = [Ways(layer, general) for layer in (first, second)]
        x = tokens(grad=True)
        y = checkpoint(lambda x: second(first(x).tanh()), x, use_reentrant=False)
        assert_fresh(first)
        y.float().square().sum().backward()
        assert all(each.answered > 0 for each in ways) != general
        found.append([x.grad, first.weight.values.grad, second.weight.values.grad])
    assert all(map(torch.equal, *found))


def test_modules_that_were_copied_cast_or_bound_in_inference_train_on():
    layer, x = tile_kernels.layer(FORMATS["16"]), tokens(grad=True)
    layer(x).sum().backward()
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer.weight))):
        weight = getattr(twin, "weight", twin)
        with torch.no_grad():
            weight.values.mul_(2)
            for name in weight._copies:
                assert torch.equal(weight.tensor(name), 2 * layer.weight.tensor(name))
        weight.validate()
    layer.half()
    half = tokens().half().requires_grad_()
    for _ in range(2):
        ways, half.grad = Ways(layer), None
        layer(half).sum().backward()
        dense = layer.weight.to_dense().detach().float()
        assert ways.answered == 1 and torch.equal(half.grad, dense.sum(0).half().expand(5, -1))
    fresh = tile_kernels.layer(FORMATS["16"])
    with torch.inference_mode():
        fresh(tokens())
    with torch.no_grad():
        fresh.weight.values.mul_(2)
    assert_fresh(fresh)
    ways = Ways(fresh)
    fresh(x).sum().backward()
    assert ways.answered == 1


def test_values_made_in_inference_mode_are_copied_by_each_call():
    with torch.inference_mode():
        layer = tile_kernels.layer(FORMATS["16"])
        for _ in range(2):
            assert_fresh(layer)
            layer.weight.values.mul_(2)  # which torch does not count
