# SPDX-License-Identifier: Apache-2.0
"""No kernel reads a copy of values that is older than these: inference, CUDA graphs, values of another storage."""

import copy
import pickle

import numpy
import pytest
import tile_kernels
import torch
from tile_kernels import FORMATS, Ways, assert_fresh, expected, inference, tokens
from torch.multiprocessing.reductions import StorageWeakRef

pytestmark = pytest.mark.usefixtures("kernels_in_torch")


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


def test_another_parameter_on_the_same_storage_with_as_many_changes():
    layer = tile_kernels.layer(FORMATS["16"])
    old, new = layer.weight.values, torch.nn.Parameter(layer.weight.values.data)
    with torch.no_grad():
        old.mul_(2)
        assert_fresh(layer)
        while new._version < old._version:
            new.mul_(2)
    layer.weight.values = new
    assert (old.data_ptr(), old._version) == (new.data_ptr(), new._version)
    assert_fresh(layer)


def test_what_changes_unseen_between_a_step_and_the_next_call():
    """A graph of the optimizer alone, or parameters that are gathered for each step, count no changes: here `.data`."""
    layer, x = tile_kernels.layer(FORMATS["16"]), tokens(grad=True)
    layer(x).sum().backward()
    for _ in range(3):
        assert_fresh(layer)
        layer.weight.values.data.mul_(2)
        ways, x.grad = Ways(layer), None
        y = layer(x)
        assert ways.answered == 1 and torch.equal(y, expected(layer, x))
        y.sum().backward()
        assert torch.equal(x.grad, layer.weight.to_dense().detach().float().sum(0).bfloat16().expand(5, -1))
        layer.weight.values.data.mul_(2)


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
def test_a_graph_of_a_backward_pass_alone(captured, copies, trainable):
    layer, x = tile_kernels.layer(FORMATS["16"]), tokens(grad=True)
    layer.weight.values.requires_grad_(trainable)
    layer(x)  # binds
    y = layer(x)
    copies.clear()
    captured[0] = True
    y.sum().backward(retain_graph=True)
    assert copies == [False, False], "a graph has copies of its own"
    captured[0] = False
    y.sum().backward()
    assert copies == [False, False] + [True] * trainable, "it ran nothing yet"
    if trainable:
        for _ in range(2):
            layer.weight.values.data.mul_(2)
            assert_fresh(layer)


def test_what_was_seen_keeps_no_memory():
    layer = tile_kernels.layer(FORMATS["16"])
    assert_fresh(layer)
    layer(tokens(grad=True)).sum().backward()
    storage = StorageWeakRef(layer.weight.values.untyped_storage())
    layer.weight.values.data = layer.weight.values.data.clone()
    assert storage.expired()


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


@pytest.mark.parametrize("trainable", [True, False])
def test_the_dense_copy_of_a_weight_follows_it_too(captured, trainable):
    layer = tile_kernels.layer(FORMATS["16"], bias=False)
    layer.weight.values.requires_grad_(trainable)
    layer.runs_dense = True
    assert_fresh = lambda: torch.testing.assert_close(inference(layer, tokens()), expected(layer, tokens()))
    assert_fresh()
    held = layer._dense.tensor
    assert (layer._dense_weight() is held) != trainable, "gradients are recorded"
    assert_fresh()
    held = layer._dense.tensor
    with torch.no_grad():
        layer.weight.values.mul_(2)
        captured[0] = True
        inference(layer, tokens())
        captured[0] = False
    assert layer._dense.tensor is (None if trainable else held), "the one that was captured is not there yet"
    assert_fresh()
    layer.weight.values.requires_grad_()
    captured[0] = True
    layer(tokens())
    captured[0] = False
    for _ in range(2):
        layer.weight.values.data.mul_(2)
        assert_fresh()


def test_a_packed_tensor_has_no_stale_copy_either(captured):
    step = tile_kernels.LAYOUTS[True]
    packed = tile_kernels.packed(FORMATS["16"])
    values, captured[0] = packed.values, True
    made = packed.array("", step, "values")
    captured[0] = False
    assert packed.array("", step, "values") is not made, "it is not there yet"
    values.requires_grad_()
    first = packed.array("", step, "values")
    assert packed.array("", step, "values") is first
    assert pickle.loads(pickle.dumps(packed)).array("", step, "values") is not first
    with torch.no_grad():
        values.mul_(2)
        captured[0] = True
        assert torch.equal(packed.array("", step, "values"), 2 * first)
        captured[0] = False
        second = packed.array("", step, "values")
        assert packed.array("", step, "values") is second and torch.equal(second, 2 * first)
    captured[0] = True
    assert packed.array("", step, "values") is not second
    captured[0] = False
    values.data.mul_(2)
    assert torch.equal(packed.array("", step, "values"), 4 * first)


def test_values_made_in_inference_mode_are_copied_by_each_call():
    with torch.inference_mode():
        layer = tile_kernels.layer(FORMATS["16"])
        for _ in range(2):
            assert_fresh(layer)
            layer.weight.values.mul_(2)  # which torch does not count
