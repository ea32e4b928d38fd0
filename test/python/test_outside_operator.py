# SPDX-License-Identifier: Apache-2.0
"""Operators, activations and names that are added from outside of the package."""

import lacis
import pytest
import torch
from lacis.activations import ACTIVATIONS
from lacis.operators import OPERATORS


class ChannelsFirst(torch.nn.Module):
    """A linear layer along the second axis: [n, in, t] to [n, out, t], or [n, out] of their transpose."""

    def __init__(self, rows: int, columns: int):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(rows, columns))

    def forward(self, x):
        return torch.einsum("ij,njt->nit", self.weight, x)


class Along(lacis.Operator):
    name = "along"
    statement = "ij,bj->bi"
    operands = ("w", "x")

    def matches(self, module):
        return isinstance(module, ChannelsFirst)

    def inputs(self, module, x):
        flat = x.movedim(1, -1).reshape(-1, x.shape[1])
        return [flat], (len(flat), module.weight.shape[0])

    def output(self, y, x):
        return y.reshape(x.shape[0], x.shape[2], -1).movedim(-1, 1)

    def eager(self, weight, module, x):
        return torch.einsum("ij,njt->nit", weight, x)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(OPERATORS, "along", Along())


@pytest.fixture
def build():
    def build(target="auto", **options):
        torch.manual_seed(0)
        model = torch.nn.Sequential(ChannelsFirst(24, 40))
        s = lacis.create_schedule(model, target=target, **options)
        s["0.weight"].sparsify(lacis.Magnitude(0.75)).set_format(lacis.Csr)
        return s.build(), s

    return build


X = torch.randn(2, 40, 40, generator=torch.Generator().manual_seed(0))  # any mixed-up axis has the right size


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_permuted_axes(build, mode):
    model, _ = build()
    with mode():
        expected = torch.einsum("ij,njt->nit", model[0].weight.to_dense(), X)
        for _ in range(2):  # the second call is bound to its tensors, where an operator asks for that
            torch.testing.assert_close(model(X), expected)


def test_training(build):
    model, _ = build()
    dense = model[0].weight.to_dense().detach().requires_grad_()
    x, given = X.clone().requires_grad_(), torch.randn(2, 24, 40)
    for _ in range(2):
        found = torch.autograd.grad(model(x), [x, model[0].weight.values], given)
    expected = torch.autograd.grad(torch.einsum("ij,njt->nit", dense, x), [x, dense], given)
    torch.testing.assert_close(found[0], expected[0])
    torch.testing.assert_close(found[1], model[0].weight.packed().pattern.gather(expected[1]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [{}, {"target": "eager"}, {"allow_dense": True}], ids=["kernel", "eager", "dense"])
def test_report(build, options):
    model, s = build(**options)
    row = s.report(X).rows[0]
    assert row.operator == "along" and row.ms is not None
    assert s.restore()[0].weight.shape == (24, 40)


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 3, 2))

    def forward(self, x):
        return torch.einsum("ijk,bjk->bi", self.weight, x)


class Core(lacis.Operator):
    name, statement, operands = "core", "ijk,bjk->bi", ("w", "x")

    def matches(self, module):
        return isinstance(module, Outer)

    def inputs(self, module, x):
        return [x], (x.shape[0], 4)

    def eager(self, weight, module, x):
        return torch.einsum("ijk,bjk->bi", weight, x)


@pytest.mark.parametrize("allow_dense", [False, True])
def test_report_of_another_rank(monkeypatch, allow_dense):
    monkeypatch.setitem(OPERATORS, "core", Core())
    model, x = torch.nn.Sequential(Outer()).eval(), torch.randn(5, 3, 2)
    s = lacis.create_schedule(model, target="eager", allow_dense=allow_dense)
    s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csf(3))
    model = s.build(x)
    row = s.report(x).rows[0]
    assert (row.name, row.density, row.predicted_ms, row.faster) == ("0.weight", 0.5, None, row.faster)
    torch.testing.assert_close(model(x), torch.einsum("ijk,bjk->bi", model[0].weight.to_dense(), x))


def test_activations_have_one_name(monkeypatch):
    for name, message in (("relu", "'relu' is the name of Relu already"), ("Cube it", "'Cube it' is no name")):
        with pytest.raises(lacis.DataError, match=message):
            lacis.activation(type("Cube", (lacis.Activation,), {"name": name}))
    assert type(ACTIVATIONS["relu"]).__name__ == "Relu"
