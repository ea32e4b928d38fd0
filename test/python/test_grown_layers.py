# SPDX-License-Identifier: Apache-2.0
"""Patterns that change of layers beyond `nn.Linear`: what RigL reads of empty places, and states that follow."""

import copy

import lacis
import pytest
import torch
import torch.nn.functional as F
from torch import nn


class Attends(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x, need_weights=False)[0]


class Twice(nn.Module):
    """A layer that is called, and whose weight a product reads besides."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(12, 12)

    def forward(self, x):
        return self.fc(x).tanh() + F.linear(x, self.fc.weight) ** 2 + x @ self.fc.weight


CASES = {
    "conv1d": (lambda: nn.Conv1d(3, 8, 3, stride=2, padding=1), lacis.Csr, (2, 3, 9), "weight"),
    "conv2d": (lambda: nn.Conv2d(3, 8, 3, padding=1, padding_mode="circular"), lacis.Csr, (2, 3, 6, 7), "weight"),
    "conv2d without a batch": (lambda: nn.Conv2d(3, 8, 3), lacis.Csr, (3, 6, 7), "weight"),
    "conv2d by taps": (lambda: nn.Conv2d(3, 8, (3, 2), dilation=2), lacis.Csf(4), (2, 3, 8, 9), "weight"),
    "conv3d": (lambda: nn.Conv3d(2, 4, 2), lacis.Csr, (2, 2, 3, 4, 5), "weight"),
    "projections in": (lambda: Attends(12, 3, batch_first=True), lacis.Csr, (2, 5, 12), "in_proj_weight"),
    "projection out": (lambda: Attends(12, 3, batch_first=True), lacis.Csr, (2, 5, 12), "out_proj.weight"),
    "written out": (Twice, lacis.Csr, (2, 5, 12), "fc.weight"),
}


def largest(scores, count, among):
    """bool: the `count` largest of those `among`."""
    chosen = torch.zeros(scores.numel(), dtype=torch.bool)
    chosen[scores.detach().masked_fill(~among, -1).flatten().topk(count).indices] = True
    return chosen.reshape(scores.shape)


@pytest.mark.parametrize("case", CASES)
def test_what_grows_has_the_largest_dense_gradients(case):
    make, format, shape, name = CASES[case]
    torch.manual_seed(0)
    model = nn.ModuleDict({"m": make()}).double()
    dense, x = copy.deepcopy(model)["m"], torch.randn(shape, dtype=torch.float64)
    s = lacis.create_schedule(model, target="eager")
    handle = s[f"m.{name}"].sparsify(lacis.Regrow(0.6, range(1, 9, 2), grow="gradient")).set_format(format)
    model = s.build()
    updates = s.attach(torch.optim.SGD(model.parameters(), lr=0.0))
    weight = dense.get_parameter(name)
    mask = handle.packed.pattern.to_mask().reshape(weight.shape)
    with torch.no_grad():
        weight.mul_(mask)
    for each in (model["m"], dense):
        y = each(x)
        (y * torch.linspace(-1, 2, y.numel(), dtype=x.dtype).reshape(y.shape)).sum().backward()
    assert updates.step()
    count = int(mask.sum())
    kept = largest(weight.abs(), count - round(0.3 * count), mask)
    expected = kept | largest(weight.grad.abs(), count - int(kept.sum()), ~kept)
    assert not torch.equal(expected, mask)
    assert torch.equal(handle.packed.pattern.to_mask().reshape(weight.shape), expected)


@pytest.mark.parametrize("format", [lacis.Csr, lacis.Csf(4)], ids=str)
def test_a_convolution_takes_the_state_of_an_optimizer_made_before_the_build(format):
    """As the matrix that its format means, or axis by axis; `restore` gives it back."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Conv2d(3, 8, 3)).double(), torch.randn(2, 3, 5, 6, dtype=torch.float64)
    optimizer = torch.optim.AdamW(model.parameters())
    model(x).square().mean().backward()
    optimizer.step()
    before = optimizer.state[model[0].weight]["exp_avg"].clone()
    s = lacis.create_schedule(model, target="eager")
    handle = s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(format)
    with pytest.warns(UserWarning, match="or have schedule.attach"):
        s.build()
    s.attach(optimizer)
    mask = handle.packed.pattern.to_mask().reshape(before.shape)
    s.restore()
    assert torch.equal(optimizer.state[model[0].weight]["exp_avg"], before * mask)
    optimizer.step()
