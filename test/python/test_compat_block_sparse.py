# SPDX-License-Identifier: Apache-2.0
"""pytorch_block_sparse's names: what its own suite asserts, on a CPU, against float64 dense."""

import copy
import pickle

import pytest
import torch
from lacis.compat.pytorch_block_sparse import (
    BlockSparseLinear,
    BlockSparseModelPatcher,
    PseudoBlockSparseLinear,
    SparseOptimizer,
)

import lacis


def layer(i=256, o=256, **options):
    return BlockSparseLinear(i, o, **{"target": "eager", **options})


def changed_blocks(weight, before):
    return int((weight.to_dense() != before).sum()) / 1024


@pytest.mark.parametrize("shape", [(64, 128), (70, 100), (3, 5), (128, 0)])
@pytest.mark.parametrize("density", [0.0, 0.4, 1.0])
def test_a_layer_answers_as_its_dense_twin(shape, density):
    torch.manual_seed(0)
    made = layer(shape[1], shape[0], density=density).double()
    twin = PseudoBlockSparseLinear(made)
    x = torch.randn(5, 3, shape[1], dtype=torch.float64)[:, ::2].requires_grad_()
    y, expected = made(x), twin(x)
    torch.testing.assert_close(y, expected)
    grad = torch.randn_like(y)
    found = torch.autograd.grad(y, [x, made.weight.values, made.bias], grad)
    wanted = torch.autograd.grad(expected, [x, twin.weight, twin.bias], grad)
    torch.testing.assert_close(found[0], wanted[0])
    torch.testing.assert_close(made.weight.packed().with_values(found[1]).to_dense(), wanted[1])
    grid = -(-shape[0] // 32) * -(-shape[1] // 32)
    assert made.block_count == int(density * grid) and not made.bias.any()


def test_a_layer_is_a_sparse_linear():
    made = layer(100, 70, density=0.5)
    x = torch.randn(3, 100)
    assert isinstance(made, lacis.nn.SparseLinear) and repr(made).startswith("BlockSparseLinear(")
    torch.testing.assert_close(torch.nn.functional.linear(x, made.weight, made.bias), made(x))
    torch.testing.assert_close(pickle.loads(pickle.dumps(made))(x), made(x))
    with pytest.raises(lacis.ScheduleError, match="BlockSparseLinear"):
        layer(100, 70, target="cuda")


@pytest.mark.long
def test_a_layer_runs_on_kernels():
    torch.manual_seed(0)
    made = BlockSparseLinear(128, 96, density=0.5)
    x = torch.randn(7, 128)
    torch.testing.assert_close(made(x), PseudoBlockSparseLinear(made)(x), rtol=1e-4, atol=1e-5)


def test_of_a_dense_layer_blocks_hold_its_values_there_times_the_scale():
    dense = torch.nn.Linear(100, 70)
    made = layer(0, 0, bias=False, torch_nn_linear=dense, density=0.25)
    mask = made.weight.packed().pattern.to_mask()
    torch.testing.assert_close(made.weight.to_dense(), dense.weight * mask / 0.25**0.5)
    assert torch.equal(made.bias, dense.bias) and made.bias is not dense.bias
    assert made.block_count == int(0.25 * 12) and (made.in_features, made.out_features) == (100, 70)


def test_variance_is_that_of_a_dense_layer():
    torch.manual_seed(0)
    made = layer(1024, 1024, density=0.25, bias=False)
    assert abs(made.weight.values.std().item() * 0.25**0.5 - 1) < 0.02


def test_a_layer_copies_saves_and_becomes_dense():
    torch.manual_seed(0)
    model = torch.nn.Sequential(layer(64, 96))
    twin = copy.deepcopy(model)
    other = torch.nn.Sequential(layer(64, 96))
    other.load_state_dict(model.state_dict())
    x = torch.randn(2, 64)
    expected = model(x)
    assert torch.equal(twin(x), expected) and torch.equal(other(x), expected)
    dense = lacis.densify(twin)
    assert type(dense[0]) is torch.nn.Linear
    torch.testing.assert_close(dense(x), expected)


@pytest.mark.parametrize(
    "options", [{"density": 1.5}, {"density": None}, {"block_shape": (32,)}, {"block_shape": (0, 8)}]
)
def test_refuses_what_is_no_density_and_no_block(options):
    with pytest.raises(lacis.DataError, match="density is a share|block shape is two"):
        layer(**options)


def model_of_layers():
    return torch.nn.ModuleDict(
        {n: torch.nn.Linear(64, 64) for n in ("query", "query2", "out")} | {"act": torch.nn.ReLU()}
    )


def test_patcher_patches_by_prefix():
    model, patcher = model_of_layers(), BlockSparseModelPatcher(target="eager")
    assert [each["regexp"] for each in patcher.get_patchable_layers(model)] == ["query", "query2", "out"]
    patcher.add_pattern("query", {"density": 0.5})
    patcher.add_pattern("out", {"density": 0.25, "pseudo_linear": True, "block_shape": (16, 16)})
    patcher.patch_model(model)
    kinds = [type(module).__name__ for module in model.values()]
    assert kinds == ["BlockSparseLinear", "BlockSparseLinear", "PseudoBlockSparseLinear", "ReLU"]
    assert model["out"].density == 0.25
    assert len(SparseOptimizer.sparse_objects(model)) == 2


def test_patcher_keeps_shared_layers_shared():
    shared = torch.nn.Linear(64, 64)
    model, patcher = torch.nn.Sequential(shared, shared), BlockSparseModelPatcher(target="eager")
    patcher.add_pattern("0|1", {"density": 0.5})
    patcher.patch_model(model)
    assert model[0] is model[1]


def test_patcher_refuses_before_it_changes_and_warns_of_nothing():
    model, patcher = model_of_layers(), BlockSparseModelPatcher(target="eager")
    with pytest.warns(UserWarning, match="no module of the model matches"):
        patcher.patch_model(model)
    patcher.add_pattern(".*", {"density": 0.5})
    with pytest.raises(lacis.ScheduleError, match="cannot patch 'act': it is a ReLU"):
        patcher.patch_model(model)
    assert type(model["query"]) is torch.nn.Linear
    with pytest.raises(lacis.ScheduleError, match="a pattern has a 'density'"):
        patcher.add_pattern("out", {"densty": 0.5})


@pytest.mark.parametrize("distribution", ["uniform", "gaussian"])
def test_optimizer_moves_a_share_of_the_blocks(distribution):
    torch.manual_seed(0)
    model = layer(density=0.5)
    weight = model.weight
    values, dense, mask = weight.values, weight.to_dense().detach(), weight.packed().pattern.to_mask()
    weakest = values.detach().flatten(1).norm(dim=1).sort().values[3]
    std = values.std().item()
    SparseOptimizer(weight, lr=0.1, new_coefficients_distribution=distribution).step()
    assert weight.values is values and changed_blocks(weight, dense) == 6  # int(0.1 * 32) dropped, as many grown
    now = weight.packed().pattern.to_mask()
    dropped, grown = mask & ~now, now & ~mask
    assert dropped.sum() == grown.sum() == 3 * 1024
    assert dense[dropped].reshape(3, -1).norm() < weakest * 3**0.5
    drawn = weight.to_dense().detach()[grown]
    if distribution == "uniform":
        assert drawn.abs().max() <= 0.1 * std and drawn.unique().numel() > 2000
    else:
        assert 0.05 * std < drawn.std() < 0.15 * std
    weight.validate()


def test_state_of_an_optimizer_follows_by_block():
    torch.manual_seed(0)
    model = layer(100, 70, density=0.5)
    adam = torch.optim.AdamW(model.parameters(), amsgrad=True)
    moves = SparseOptimizer(SparseOptimizer.sparse_objects(model), lr=0.4)
    moves.attach_optimizer(adam)
    moves.attach_optimizer(adam)
    for _ in range(3):
        model(torch.randn(4, 100)).square().sum().backward()
        adam.step()
    weight = model.weight
    dense = lambda values: weight.packed().with_values(values).to_dense()
    state = adam.state[weight.values]
    before = {key: dense(state[key]) for key in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")}
    mask, step = weight.packed().pattern.to_mask(), state["step"].clone()
    moves.step()
    kept = mask & weight.packed().pattern.to_mask()
    assert 0 < kept.sum() < mask.sum() and weight.values.grad is None and state["step"] == step
    for key, was in before.items():
        assert torch.equal(dense(state[key]), was * kept), key
    model(torch.randn(4, 100)).square().sum().backward()
    adam.step()
    weight.validate()


def test_optimizer_refuses_before_it_changes():
    model = layer()
    weight, dense = model.weight, model.weight.to_dense().detach()
    moves = SparseOptimizer([weight])
    moves.attach_optimizer(torch.optim.SGD([model.bias], lr=0.1))
    with pytest.raises(lacis.ScheduleError, match="no attached optimizer has the values"):
        moves.step()
    factored = torch.optim.Adafactor(model.parameters())
    moves.attach_optimizer(factored)
    model(torch.randn(2, 256)).sum().backward()
    factored.step()
    dense = weight.to_dense().detach()
    with pytest.raises(lacis.ScheduleError, match="the state 'row_var' of Adafactor .* cannot follow"):
        moves.step()
    assert torch.equal(weight.to_dense(), dense)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"lr": -0.1}, "share of blocks that move"),
        ({"method": "random"}, "the method is 'magnitude'"),
        ({"new_coefficients_distribution": "constant"}, "'uniform' or 'gaussian'"),
        ({"sparse_objects": [torch.nn.Linear(2, 2)]}, "takes packed weights, not a Linear"),
        ({"sparse_objects": [{"sparse_objects": [], "speed": 1}]}, "has no option \\['speed'\\]"),
    ],
)
def test_optimizer_refuses_options(options, text):
    given = {"sparse_objects": [layer(64, 64).weight], **options}
    with pytest.raises(lacis.ScheduleError, match=text):
        SparseOptimizer(**given)
    weight = layer(64, 64).weight
    with pytest.raises(lacis.ScheduleError, match="more than once"):
        SparseOptimizer([weight, weight])


def test_optimizer_has_a_state_that_loads():
    first, second = (SparseOptimizer([layer(64, 64).weight], lr=lr) for lr in (0.3, 0.5))
    second.load_state_dict(first.state_dict())
    assert second.param_groups[0]["lr"] == 0.3 and "sparse_objects" not in first.state_dict()["param_groups"][0]
    second.step()


def test_a_model_trains_while_blocks_move():
    torch.manual_seed(0)
    model = torch.nn.Sequential(layer(64, 96, density=0.5), torch.nn.Tanh(), layer(96, 32, density=0.5))
    adam = torch.optim.Adam(model.parameters(), lr=1e-2)
    moves = SparseOptimizer(SparseOptimizer.sparse_objects(model), lr=0.2)
    moves.attach_optimizer(adam)
    x, losses = torch.randn(64, 64), []
    for step in range(40):
        loss = (model(x) - x[:, :32]).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 10 == 9:
            moves.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
