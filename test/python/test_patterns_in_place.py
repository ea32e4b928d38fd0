# SPDX-License-Identifier: Apache-2.0
"""Patterns that change: they lie where the one before lay, and kernels follow what is written."""

import lacis
import pytest
import tile_kernels
import torch
from strategies import mostly_long
from training import SHAPE, build

from lacis.capture import sites
from lacis.nn import known, sparse_module

FEW = mostly_long(["csr", "csc", "coo", "ell", "bsr", "sum"], "bsr", "sum")


def moved(layer):
    """Its pattern with the rows, or rows of blocks, in another order: as many slots."""
    weight = layer.weight
    return lacis.pack(weight.to_dense().detach().roll(weight.shape[0] // 3, 0) * 2, weight.format)


def pointers(layer):
    return {name: tensor.data_ptr() for name, tensor in [*layer.named_parameters(), *layer.named_buffers()]}


@torch.enable_grad()
def assert_right(layer, rtol=1e-5):
    """In inference and in training, against the dense weight."""
    x = torch.randn(5, SHAPE[0], dtype=layer.weight.dtype, requires_grad=True)
    expected = torch.nn.functional.linear(x.detach(), layer.weight.to_dense().detach(), layer.bias.detach())
    with torch.no_grad():
        torch.testing.assert_close(layer(x), expected, rtol=rtol, atol=1e-5)
    y = layer(x)
    torch.testing.assert_close(y.detach(), expected, rtol=rtol, atol=1e-5)
    y.sum().backward()
    torch.testing.assert_close(x.grad, layer.weight.to_dense().detach().sum(0).expand(5, -1), rtol=rtol, atol=1e-5)


@pytest.mark.parametrize("format", FEW)
def test_as_many_slots_stay_where_they_are(format):
    model, _ = build(format)
    layer = model[0]
    assert_right(layer)
    before, packed = pointers(layer), moved(layer)
    layer.weight.set_packed(packed)
    assert pointers(layer) == before
    torch.testing.assert_close(layer.weight.to_dense(), packed.to_dense())
    assert_right(layer)
    state = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    layer.weight.set_packed(moved(layer))
    layer.load_state_dict(state)
    assert pointers(layer) == before
    assert_right(layer)


@pytest.mark.parametrize("format", FEW)
def test_what_is_bound_stays_where_the_arrays_do(format, monkeypatch):
    """The step behind an update makes no specification and binds nothing."""
    model, _ = build(format)
    layer = model[0]
    assert_right(layer)
    found, told = layer._quick_steps._last.found(), []
    monkeypatch.setattr(sparse_module, "kernel_spec", lambda *given: told.append(given) or sites.kernel_spec(*given))
    layer.weight.set_packed(moved(layer))
    assert_right(layer)
    assert layer._quick_steps._last.found() is found and not told
    other = torch.zeros(layer.weight.shape)
    other[:8, :8] = 1
    layer.weight.set_packed(lacis.pack(other, layer.weight.format))
    assert_right(layer)
    assert layer._quick_steps._last.found() is not found and told


@pytest.mark.usefixtures("kernels_in_torch")
@pytest.mark.parametrize("format", mostly_long(list(tile_kernels.FORMATS), "32"))
def test_what_tile_kernels_walk_stays_where_it_is(format):
    """Layouts, copies of values and their places."""
    layer = tile_kernels.layer(tile_kernels.FORMATS[format])
    for _ in range(2):  # the first call binds
        layer(tile_kernels.tokens(grad=True)).sum().backward()
    layer.zero_grad()
    before, found = pointers(layer), layer._quick_steps._last.found()
    layer.weight.set_packed(moved(layer))
    assert any("derived" in name for name in before) and pointers(layer) == before
    tile_kernels.assert_fresh(layer)
    x = tile_kernels.tokens(grad=True)
    layer(x).sum().backward()
    assert layer._quick_steps._last.found() is found
    assert torch.equal(x.grad, layer.weight.to_dense().detach().float().sum(0).bfloat16().expand(5, -1))


def test_what_is_given_stays_the_callers():
    """A pattern that was set is not written to by the next one."""
    model, _ = build("csr")
    weight = model[0].weight
    first, second = moved(model[0]), lacis.pack(torch.eye(24, 40), weight.format)
    dense = first.to_dense()
    for packed in (first, second, first, moved(model[0])):
        weight.set_packed(packed)
    assert torch.equal(first.to_dense(), dense) and torch.equal(second.to_dense(), torch.eye(24, 40))


def test_a_view_of_the_present_arrays_can_be_set():
    model, _ = build("bsr")
    weight = model[0].weight
    packed = weight.packed()
    expected = packed.to_dense().detach().clone()
    weight.set_packed(packed)
    assert torch.equal(weight.to_dense(), expected)
    flipped = packed.with_values(packed.values.detach().as_strided(packed.values.shape, (32, 1, 4)))
    expected = flipped.to_dense().clone()
    weight.set_packed(flipped)
    assert torch.equal(weight.to_dense(), expected)


def test_a_packed_tensor_of_a_weight_follows_it():
    """What was derived for the pattern before is not used for the next one."""
    model, _ = build("csr")
    layer, x = model[0], torch.randn(3, SHAPE[0])
    packed = layer.weight.packed()
    with torch.no_grad():
        lacis.einsum("ij,bj->bi", packed, x)
        lacis.einsum("ij,bi->bj", packed, torch.randn(3, SHAPE[1]))
        layer.weight.set_packed(moved(layer))
        dense = layer.weight.to_dense()
        torch.testing.assert_close(lacis.einsum("ij,bj->bi", packed, x), x @ dense.T)
        torch.testing.assert_close(lacis.einsum("ij,bi->bj", packed, x @ dense.T), x @ dense.T @ dense)
    assert packed.nnz == layer.weight.packed().nnz


def test_a_pattern_that_does_not_fit_changes_nothing(monkeypatch):
    model, _ = build("sum")
    weight, part = model[0].weight, model[0].weight.rest
    packed, before = moved(model[0]), pointers(model[0])
    state = {name: tensor.clone() for name, tensor in model[0].state_dict().items()}
    assert_right(model[0])
    failing = lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError("no memory"))
    with monkeypatch.context() as patch:
        patch.setattr(part, "derived_of", failing)
        with pytest.raises(torch.OutOfMemoryError):
            weight.set_packed(packed)
    assert pointers(model[0]).items() >= before.items()
    assert all(torch.equal(tensor, state[name]) for name, tensor in model[0].state_dict().items())


def test_a_captured_graph_refuses_arrays_that_would_move(monkeypatch):
    """Where the graph lives; which arrays it walks is noted while it is captured."""
    model, _ = build("csr")
    weight, fewer = model[0].weight, torch.eye(24, 40)
    monkeypatch.setattr("lacis.nn.sparse_module.is_captured", lambda _: True)
    model[0](torch.randn(2, 40))
    monkeypatch.undo()
    weight.set_packed(moved(model[0]))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", type("CUDAGraph", (), {}))  # torch makes none without a GPU
    graph = torch.cuda.CUDAGraph()
    before = weight.to_dense().detach().clone()
    text = r"'values' \[192\] would become \[24\], but a CUDA graph was captured that walks it; give"
    with pytest.raises(lacis.DataError, match=text):
        weight.set_packed(lacis.pack(fewer, weight.format))
    assert torch.equal(weight.to_dense(), before)
    del graph
    weight.set_packed(lacis.pack(fewer, weight.format))
    assert torch.equal(weight.to_dense(), fewer)


@pytest.mark.parametrize("format", FEW)
def test_arrays_written_through_the_state_dict_are_followed(format):
    """As `torch.distributed.checkpoint` does."""
    model, _ = build(format)
    layer = model[0]
    assert_right(layer)
    state = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    layer.weight.set_packed(moved(layer))
    assert_right(layer)
    with torch.no_grad():
        for name, tensor in layer.state_dict().items():
            tensor.copy_(state[name])
    assert_right(layer)
    layer.weight.set_packed(moved(layer))
    live = layer.state_dict()
    with torch.no_grad():
        for name, tensor in live.items():
            tensor.copy_(state[name])
    layer.load_state_dict(live)
    layer.weight.validate()
    assert_right(layer)


def test_malformed_arrays_are_refused_before_a_kernel_sees_them():
    model, _ = build("csr")
    layer, x = model[0], torch.randn(2, SHAPE[0])
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            model(x)
            good = layer.weight.crd1.clone()
            layer.weight.array("crd1")[3] = 1 << 14
            with pytest.raises(lacis.DataError, match=r"linear '0': 'crd1' at \[3\]: coordinate \d+ is out of range"):
                model(x)
            layer.weight.crd1 = torch.full_like(good, 1 << 6)
            with pytest.raises(lacis.DataError, match=r"'crd1' at \[0\]"):
                model(x)
            layer.weight.crd1 = good
            assert_right(layer)


def test_the_same_numbers_again_and_again_are_no_other_pattern(monkeypatch):
    """DDP sends the buffers of the first rank before each forward pass."""
    model, _ = build("csr")
    layer, weight = model[0], model[0].weight
    seen = []
    monkeypatch.setattr(known, "fingerprint", lambda arrays: seen.append(1) or real(arrays))
    real, patterns = lacis.patterns.fingerprint.fingerprint, []
    for _ in range(3):
        weight.crd1.copy_(weight.crd1.clone())
        assert_right(layer)
        patterns.append(weight.revision)
    assert patterns == [patterns[0]] * 3 and len(seen) == 3


def test_a_kernel_follows_the_density_class(monkeypatch):
    """What the default schedule is told of a pattern is looked at for each one."""
    model, _ = build("csr")
    layer, asked = model[0], []
    loader = layer.loader
    layer.loader = lambda spec, *rest: asked.append(spec.uneven) or loader(spec, *rest)
    model(torch.randn(2, SHAPE[0]))
    weight = layer.weight
    weight.set_packed(moved(layer))
    assert_right(layer)
    assert not asked, "another pattern of the same class needs no other kernel"
    packed = moved(layer)
    packed.pattern.uneven = (True, False)  # as a GPU finds it
    weight.set_packed(packed)
    told = sites.hints
    monkeypatch.setattr(sites, "hints", lambda *given: told(*given) | {"uneven": ("i",)})
    model(torch.randn(2, SHAPE[0]))
    assert asked == [("i",)]


def test_a_kernel_follows_the_dtype_of_the_values_in_the_call():
    """Something may cast them for the call alone, as FSDP does for mixed precision."""
    model, _ = build("csr")
    layer, own = model[0], model[0].weight.values
    assert_right(layer)
    layer.weight.values = torch.nn.Parameter(own.detach().bfloat16())
    layer.bias = torch.nn.Parameter(layer.bias.detach().bfloat16())
    x = torch.randn(4, SHAPE[0]).bfloat16()
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            y = layer(x)
            dense = layer.weight.to_dense().float().detach()
            assert y.dtype == torch.bfloat16
            torch.testing.assert_close(y.float(), x.float() @ dense.T + layer.bias.float(), rtol=2e-2, atol=2e-2)
    y.float().sum().backward()
    assert layer.weight.values.grad.dtype == torch.bfloat16
    layer.weight.values, layer.bias = own, torch.nn.Parameter(layer.bias.detach().float())
    assert_right(layer)


def test_a_layer_built_in_inference_mode_takes_another_pattern():
    """Its tensors count no changes, and nobody may write into them outside of that mode."""
    x = torch.randn(3, SHAPE[0])
    with torch.inference_mode():
        model, _ = build("csr")
        layer = model[0]
        layer(x)
        for inside in (True, False):
            with torch.inference_mode(inside), torch.no_grad():
                layer.weight.set_packed(moved(layer))
                torch.testing.assert_close(layer(x), x @ layer.weight.to_dense().T + layer.bias)
