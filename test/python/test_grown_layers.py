# SPDX-License-Identifier: Apache-2.0
"""The gradient of empty places, which RigL reads, of all that multiplies with a weight."""

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
