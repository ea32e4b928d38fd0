# SPDX-License-Identifier: Apache-2.0
"""Layers that take no packed weight say why, and what to do; so do calls that are wrong."""

import lacis
import pytest
import torch
import torch.nn.functional as F
from test_layers import build

nn = torch.nn


class Scaled(nn.Linear):
    def forward(self, x):
        return F.linear(x, self.weight * 2, self.bias)


class Branching(nn.Linear):
    def forward(self, x):
        return F.linear(x, self.weight) if x.sum() > 0 else x


class First(nn.Module):
    def __init__(self, *_):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        return self.weight @ x


REFUSED = {
    "first": (lambda: First(4, 4), "uses it in '@ with the parameter first .torch.compile swaps"),
    "depthwise": (lambda: nn.Conv2d(4, 4, 3, groups=4), "is a depthwise convolution .4 groups."),
    "groups": (lambda: nn.Conv1d(4, 4, 3, groups=2), "is a grouped convolution .2 groups."),
    "transposed": (lambda: nn.ConvTranspose1d(4, 4, 3), "ConvTranspose1d, which has no sparse operator"),
    "max_norm": (lambda: nn.Embedding(4, 4, max_norm=1.0), "has max_norm"),
    "sparse": (lambda: nn.Embedding(4, 4, sparse=True), "has sparse=True"),
    "scaled": (lambda: Scaled(4, 4), "its forward uses it in 'mul', which needs the dense tensor"),
    "branching": (lambda: Branching(4, 4), "its forward cannot be traced"),
    "bag": (lambda: nn.EmbeddingBag(4, 4), "EmbeddingBag, which has no sparse operator"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case):
    make, message = REFUSED[case]
    model = nn.Sequential(make())
    s = lacis.create_schedule(model, target="eager")
    s["0.weight"].set_format(lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match=f"(?s)'0.weight'.*{message}"):
        s.build()
    assert isinstance(model[0].weight, nn.Parameter)


@pytest.mark.parametrize("name", ["0.weight_ih_l0", "0.weight_hh_l0"])
def test_recurrent_layers_say_the_way_out(name):
    s = lacis.create_schedule(nn.Sequential(nn.LSTM(4, 4)), target="eager")
    s[name].set_format(lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match="torch runs all of its weights in one operator; write its cell with"):
        s.build()


def test_formats_that_do_not_fit():
    model = nn.Sequential(nn.Embedding(6, 4), nn.Conv2d(4, 4, 3))
    s = lacis.create_schedule(model, target="eager")
    s["0.weight"].set_format(lacis.Csc)
    with pytest.raises(lacis.ScheduleError, match="'0.weight': an embedding reads whole rows.*take Csr, Ell, Bsr"):
        s.build()
    s = lacis.create_schedule(model, target="eager")
    with pytest.raises(lacis.FormatError, match="has 3 axes, the tensor has 4"):
        s["1.weight"].set_format(lacis.Csf(3))


def test_what_is_wrong_with_a_call():
    model, *_ = build("conv1x1")
    with pytest.raises(RuntimeError, match=r"conv2d '0': the input has shape \[2, 5, 9, 8\], it must be \[n, 6, size"):
        model(torch.randn(2, 5, 9, 8).double())
    model, *_ = build("embedding")
    with pytest.raises(IndexError, match="embedding '0': index 20 is not in a table of 20 rows"):
        model(torch.tensor([20]))
    model, *_, inputs = build("written")
    with pytest.raises(Exception, match="torch.compile does not tell 'x @ w' from 'w @ x'"):
        torch.compile(model, fullgraph=True, backend="eager")(*inputs)
    with pytest.raises(lacis.DataError, match="a packed weight has products alone.*the model asks for 'mul'"):
        torch.mul(model.fc.weight, 2)
    with pytest.raises(TypeError, match="missing a required argument: 'input'"):
        model.fc(x=torch.randn(2, 5))
