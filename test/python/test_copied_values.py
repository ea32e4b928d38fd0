# SPDX-License-Identifier: Apache-2.0
"""The quick way in training of layers whose kernels read copies of their values: the numbers of the general way."""

import copy
import pickle

import lacis
import pytest
import tile_kernels
import torch
from lacis.patterns.derivation import Derivation
from tile_kernels import FORMATS, Ways, assert_fresh, inference, tokens
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("kernels_in_torch")

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


@pytest.mark.parametrize("format, optimizer", [("16", "sgd"), ("32", "adamw"), ("sum", "adamw")])
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
        assert copies == [True, True], "the copy of the product, and that of the gradient of the input"
        y.sum().backward()
        assert copies == [True, True], "the backward pass reads what the forward pass filled"
        with torch.no_grad():
            layer.weight.values.mul_(2)
        copies.clear()
    y, z = layer(x), layer(2 * x)
    copies.clear()
    (y.sum() + z.sum()).backward()
    assert copies == [], "the values of both are the same"


def test_places_begin_where_kernels_read_16_bytes():
    layer, x = tile_kernels.layer(FORMATS["16"]), tokens(grad=True)
    layer(x).sum().backward()
    part = layer.weight._part("")
    assert len(part._copies) == 2
    assert all(getattr(part, copied.places).data_ptr() % 16 == 0 for copied in part._copies.values())


def test_frozen_values_are_copied_once(copies):
    layer, x = tile_kernels.layer(FORMATS["16"]), tokens(grad=True)
    layer.weight.values.requires_grad_(False)
    layer(x).sum().backward()
    copies.clear()
    layer(x).sum().backward()
    assert_fresh(layer)
    assert not copies


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


def test_the_general_way_has_copies_that_the_quick_one_does_not_fill():
    layer, x = tile_kernels.layer(FORMATS["16"]), tokens(grad=True)
    general = layer(x)  # binds
    layer(x)
    assert_fresh(layer)
    general.sum().backward()
    assert torch.equal(x.grad, layer.weight.to_dense().detach().float().sum(0).bfloat16().expand(5, -1))


def test_values_without_memory_are_refused():
    layer, x = tile_kernels.layer(FORMATS["16"]), tokens(grad=True)
    layer(x).sum().backward()
    layer.weight.values.untyped_storage().resize_(0)
    text = "the values .* of the weight have no memory, their storage was freed or made smaller; gather or load them"
    with pytest.raises(lacis.DataError, match=text):
        layer(x)
    with pytest.raises(lacis.DataError, match=text):
        inference(layer, x)


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
    assert_fresh(layer)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer.weight))):
        weight = getattr(twin, "weight", twin)
        with torch.no_grad():
            weight.values.mul_(2)
            for name in weight._copies:
                assert torch.equal(weight.tensor(name), 2 * layer.weight.tensor(name))
        weight.validate()
    layer.half()
    half = tokens().half().requires_grad_()
    with torch.inference_mode():
        layer(half.detach())  # puts the moved copies where they can be filled
    assert not any(array.is_inference() for array in layer.buffers())
    with torch.no_grad():
        layer.weight.values.mul_(2)
        y = torch.nn.functional.linear(half.float(), layer.weight.to_dense().float(), layer.bias.float())
        assert torch.equal(layer(half), y.half())
    for _ in range(2):
        ways, half.grad = Ways(layer), None
        layer(half).sum().backward()
        dense = layer.weight.to_dense().detach().float()
        assert ways.answered == 1 and torch.equal(half.grad, dense.sum(0).half().expand(5, -1))
    fresh = tile_kernels.layer(FORMATS["16"])
    with torch.inference_mode():
        fresh(tokens())
    assert not any(array.is_inference() for array in fresh.buffers()), "autograd could not save it"
    with torch.no_grad():
        fresh.weight.values.mul_(2)
    assert_fresh(fresh)
    ways = Ways(fresh)
    fresh(x).sum().backward()
    assert ways.answered == 1


def test_a_copy_may_have_the_step_of_the_arrays_beside_it():
    """Plain tiles, as on a CPU, exchange nothing in a line, which is all that a step says of values."""
    blocks = (torch.rand(4, 4) < 0.5).repeat_interleave(16, 0).repeat_interleave(16, 1)
    packed = lacis.pack(torch.randn(64, 64) * blocks, lacis.Bsr(16, 16))
    levels = "i floordiv 64 : dense, j floordiv 16 : compressed<unique=false>, i floordiv 16 mod 4 : bitmap"
    format = f"#lacis.format<(i, j) -> ({levels}, i mod 16 : dense, j mod 16 : dense)>"
    step = Derivation("layout", (("capacity", 4), ("format", format)))
    weight = lacis.nn.weight_module(packed)
    names = weight.bind([("", step, "pos1"), ("", step, "values")])
    for factor in (1, 2):
        with torch.no_grad():
            weight.values.mul_(factor)
        for (_, name), array in zip(names, ("pos1", "values")):
            assert torch.equal(weight.tensor(name), weight.packed().array("", step, array))
    weight.validate()
