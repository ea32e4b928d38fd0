# SPDX-License-Identifier: Apache-2.0
"""torchao's names for sparsity: what its own suite asserts, on a CPU, against float64 dense."""

import copy

import pytest
import torch
from lacis.compat.torchao import (
    BlockSparseWeightConfig,
    SemiSparseActivationLinear,
    SemiSparseLinear,
    SemiSparseWeightConfig,
    largest_of_both_ways,
    sparsify_,
    swap_linear_with_semi_sparse_linear,
    swap_semi_sparse_linear_with_linear,
)
from torch import nn

import lacis


@pytest.fixture
def eager(monkeypatch):
    for cls in (SemiSparseLinear, SemiSparseActivationLinear):
        monkeypatch.setattr(cls, "target", "eager")


def two_layers(i=128, hidden=64, o=32):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(i, hidden), nn.GELU(), nn.Linear(hidden, o, bias=False)).double()


def greedy(tile):
    """The mask of one 4×4 tile, as a loop."""
    kept = torch.zeros(tile.shape, dtype=torch.bool)
    for place in sorted(range(tile.numel()), key=lambda n: (-tile.reshape(-1)[n].item(), n)):
        row, column = divmod(place, tile.shape[1])
        if kept[row].sum() < 2 and kept[:, column].sum() < 2:
            kept[row, column] = True
    return kept


@pytest.mark.parametrize("shape", [(8, 12), (5, 7), (1, 2), (0, 4)])
def test_a_mask_is_that_of_the_greedy_loop_over_each_tile(shape):
    torch.manual_seed(0)
    tensor = torch.randint(-3, 4, shape).float()  # ties, and signs
    found = largest_of_both_ways(tensor)
    expected = torch.zeros(shape, dtype=torch.bool)
    for i in range(0, shape[0], 4):
        for j in range(0, shape[1], 4):
            expected[i : i + 4, j : j + 4] = greedy(tensor[i : i + 4, j : j + 4])
    assert torch.equal(found, expected)
    with pytest.raises(lacis.DataError, match="a mask both ways is that of a matrix"):
        largest_of_both_ways(tensor[None])


@pytest.mark.parametrize("cls", [SemiSparseLinear, SemiSparseActivationLinear])
@pytest.mark.parametrize("shape", [(128, 128), (2, 33, 128)])
def test_swapped_layers_are_the_masked_dense_ones_trained_straight_through(eager, cls, shape):
    model = two_layers()
    swapped = copy.deepcopy(model)
    swap_linear_with_semi_sparse_linear(swapped, {"0": cls, "2": cls})
    x = torch.randn(shape, dtype=torch.float64)
    inputs, twins = x.clone().requires_grad_(), x.clone().requires_grad_()

    def masked(tensor):
        kept = largest_of_both_ways(tensor.reshape(-1, tensor.shape[-1])).reshape(tensor.shape)
        return tensor + (tensor * kept - tensor).detach()

    def product(x, layer):
        of_weight = cls is SemiSparseLinear
        y = (x if of_weight else masked(x)) @ (masked(layer.weight) if of_weight else layer.weight).T
        return y if layer.bias is None else y + layer.bias

    expected = product(torch.nn.functional.gelu(product(twins, model[0])), model[2])
    found = swapped(inputs)
    torch.testing.assert_close(found, expected)
    grad = torch.randn_like(found)
    found.backward(grad)
    expected.backward(grad)
    torch.testing.assert_close(inputs.grad, twins.grad)
    for mine, theirs in zip(swapped.parameters(), model.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad)
    swap_semi_sparse_linear_with_linear(swapped)
    assert [type(m) for m in swapped] == [nn.Linear, nn.GELU, nn.Linear]


def test_parameters_stay_the_same_objects_both_ways(eager):
    model = two_layers()
    before = dict(model.named_parameters())
    model.eval()
    swap_linear_with_semi_sparse_linear(model, {"0": SemiSparseLinear})
    assert not model[0].training and all(p is before[n] for n, p in model.named_parameters())
    swap_semi_sparse_linear_with_linear(model)
    assert not model[0].training and all(p is before[n] for n, p in model.named_parameters())


def test_inference_follows_the_weight(eager):
    layer = SemiSparseLinear.from_dense(nn.Linear(16, 8).double())
    x = torch.randn(3, 16, dtype=torch.float64)
    with torch.no_grad():
        for _ in range(2):
            expected = x @ (layer.weight * largest_of_both_ways(layer.weight)).T + layer.bias
            torch.testing.assert_close(layer(x), expected)
            packed = layer._kept[1]
            layer(x)
            assert layer._kept[1] is packed
            torch.testing.assert_close(copy.deepcopy(layer)(x), expected)
            layer.weight.neg_()


def test_a_swapped_model_trains(eager):
    model = two_layers(16, 32, 8)
    swap_linear_with_semi_sparse_linear(model, {"0": SemiSparseLinear, "2": SemiSparseLinear})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x, losses = torch.randn(64, 16, dtype=torch.float64), []
    for _ in range(60):
        loss = (model(x) - x[:, :8]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_a_nested_model_and_its_path():
    model = nn.ModuleDict({"seq": two_layers()})
    swap_linear_with_semi_sparse_linear(model["seq"], {"seq.0": SemiSparseLinear}, current="seq")
    assert type(model["seq"][0]) is SemiSparseLinear and type(model["seq"][2]) is nn.Linear


@pytest.mark.parametrize("name", ["seq.0", "1", ""])
def test_a_path_that_is_no_linear_is_refused(name):
    model = two_layers()
    with pytest.raises(lacis.ScheduleError, match=f"'{name}' is no Linear of the model; it has '0', '2'"):
        swap_linear_with_semi_sparse_linear(model, {"0": SemiSparseLinear, name: SemiSparseLinear})
    assert type(model[0]) is nn.Linear
    with pytest.raises(lacis.ScheduleError, match="'0': SemiSparseLinear or"):
        swap_linear_with_semi_sparse_linear(model, {"0": nn.Linear})


@pytest.mark.parametrize("config", [SemiSparseWeightConfig(), BlockSparseWeightConfig(16)])
def test_sparse_weights_answer_as_the_dense_ones(config):
    model = two_layers()
    for layer in (model[0], model[2]):
        if isinstance(config, SemiSparseWeightConfig):
            layer.weight.data *= lacis.NM(2, 4)(layer.weight)
        else:
            layer.weight.data *= lacis.BlockRandom(0.5, block=(16, 16))(layer.weight)
    x = torch.randn(5, 128, dtype=torch.float64)
    expected, numel = model(x), model[0].weight.numel()
    assert sparsify_(model, config, target="eager") is model
    torch.testing.assert_close(model(x), expected)
    assert model[0].weight.values.numel() == model[0].weight.packed().nnz == numel // 2


@pytest.mark.long
def test_they_run_on_kernels():
    model = two_layers().float()
    swap_linear_with_semi_sparse_linear(model, {"0": SemiSparseLinear, "2": SemiSparseActivationLinear})
    x = torch.randn(33, 128)
    hidden = torch.nn.functional.gelu(x @ (model[0].weight * largest_of_both_ways(model[0].weight)).T + model[0].bias)
    expected = (hidden * largest_of_both_ways(hidden)) @ model[2].weight.T
    found = model(x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    found.square().sum().backward()
    assert model[0].weight.grad.isfinite().all()


def test_what_is_not_2_of_4_is_refused():
    model = two_layers()
    with pytest.raises(lacis.DataError, match="'0.weight' is not 2:4: row 0 has 4 non-zeros in columns 0 to 3"):
        sparsify_(model, SemiSparseWeightConfig(), target="eager")
    assert type(model[0]) is nn.Linear
    with pytest.raises(lacis.DataError, match="has 6 columns, 2:4 needs a multiple of 4"):
        sparsify_(two_layers(6), SemiSparseWeightConfig(), target="eager")


def test_a_filter_chooses():
    model = two_layers()
    sparsify_(model, BlockSparseWeightConfig(32), lambda module, path: path == "2", target="eager")
    assert type(model[0]) is nn.Linear and model[2].weight.is_packed_weight
    for chosen, text in ((lambda m, p: False, "chooses no module"), (lambda m, p: p == "1", "'1' is a GELU")):
        with pytest.raises(lacis.ScheduleError, match=text):
            sparsify_(two_layers(), BlockSparseWeightConfig(), chosen)
    with pytest.raises(lacis.ScheduleError, match="no configuration"):
        sparsify_(two_layers(), "2:4")
