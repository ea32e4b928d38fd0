# SPDX-License-Identifier: Apache-2.0
"""Masks of other tools: taken out, they give the model that these had, packed."""

import lacis
import pytest
import torch
from torch.nn.utils import parametrizations, prune

pruning = pytest.importorskip("torch.ao.pruning")


def by_prune(model):
    prune.random_unstructured(model[0], "weight", amount=0.5)
    prune.l1_unstructured(model[0], "weight", amount=0.5)  # a second mask on top of the first
    prune.ln_structured(model[2], "weight", amount=0.5, n=2, dim=0)


def by_ao(model):
    sparsifier = pruning.WeightNormSparsifier(sparsity_level=0.5, sparse_block_shape=(1, 4), zeros_per_block=4)
    sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "2.weight"}])
    sparsifier.step()


def by_asp(model):
    for layer in (model[0], model[2]):
        mask = lacis.NM(2, 4)(layer.weight)
        layer.register_buffer("__weight_mma_mask", mask.to(torch.uint8))
        layer.register_buffer("__weight_mma_pruned_p", layer.weight.detach() * ~mask)
        layer.weight.data.mul_(mask)


def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))


@pytest.mark.parametrize("by", [by_prune, by_ao, by_asp])
def test_masks_become_patterns(by):
    model = make()
    before = [model[0].weight, model[2].weight]
    by(model)
    x = torch.randn(3, 16)
    expected = model(x)
    masks = lacis.take_masks(model)
    assert list(masks) == ["0.weight", "2.weight"] and all(0 < m.float().mean() < 1 for m in masks.values())
    assert model[0].weight is before[0] and model[2].weight is before[1]
    assert set(model.state_dict()) == set(make().state_dict())
    torch.testing.assert_close(model(x), expected)
    s = lacis.create_schedule(model, target="eager")
    for name, mask in masks.items():
        s[name].sparsify(mask).set_format(lacis.Csr)
    torch.testing.assert_close(s.build()(x), expected)
    assert all(torch.equal(s[name].packed.pattern.to_mask(), mask) for name, mask in masks.items())
    assert lacis.take_masks(make()) == {}


def test_whole_rows_of_ao():
    row = pytest.importorskip("torch.ao.pruning._experimental.pruner.parametrization")
    model = make()
    mask = torch.tensor([True, False] * 4)
    torch.nn.utils.parametrize.register_parametrization(model[0], "weight", row.FakeStructuredSparsity(mask))
    found = lacis.take_masks(model)["0.weight"]
    assert torch.equal(found, mask[:, None].expand(8, 16)) and not model[0].weight[~mask].any()


def test_entries_that_are_zero_are_kept():
    model = make()
    with torch.no_grad():
        model[0].weight[0] = 0
    prune.custom_from_mask(model[0], "weight", torch.ones(8, 16))
    assert lacis.take_masks(model)["0.weight"].all()


class Half(torch.nn.Module):
    def forward(self, x):
        return x / 2


def two_parametrizations(model):
    by_ao(model)
    torch.nn.utils.parametrize.register_parametrization(model[0], "weight", Half())


def no_mask(model):
    model[0].register_buffer("__weight_mma_mask", torch.full((8, 16), 0.5))


def another_shape(model):
    model[0].register_buffer("__weight_mma_mask", torch.ones(4))


def tied(model):
    model.append(torch.nn.Linear(8, 8))
    model[3].weight = model[2].weight
    for n in (2, 3):
        prune.random_unstructured(model[n], "weight", amount=0.5)


REFUSED = {
    two_parametrizations: "'0.weight' has 2 parametrizations, of which one is a mask; remove the others",
    no_mask: "the mask of '0.weight' holds other numbers than 0 and 1",
    another_shape: r"the mask of '0.weight' has shape \[4\] on cpu, the parameter \[8, 16\]",
    tied: "'2.weight' and '3.weight' are one parameter with two masks",
}


@pytest.mark.parametrize("by", REFUSED, ids=lambda by: by.__name__)
def test_refusals_change_nothing(by):
    model = make()
    prune.l1_unstructured(model[2], "bias", amount=0.5)
    by(model)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(lacis.DataError, match=REFUSED[by]):
        lacis.take_masks(model)
    after = model.state_dict()
    assert list(after) == list(before) and all(torch.equal(after[name], before[name]) for name in before)


def test_other_parametrizations_stay():
    model = make()
    parametrizations.weight_norm(model[0])
    assert lacis.take_masks(model) == {} and hasattr(model[0], "parametrizations")
