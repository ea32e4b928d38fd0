# SPDX-License-Identifier: Apache-2.0
"""Packed activations that no kernel runs on: the build, the report and a warning say so."""

import re
import warnings

import lacis
import pytest
import torch


class Batched(torch.nn.Module):
    """A product with a matrix for each sample, and a module that is not called."""

    def __init__(self):
        super().__init__()
        self.relu, self.dropout = torch.nn.ReLU(), torch.nn.Dropout(0.0)
        self.matrices = torch.nn.Parameter(torch.randn(2, 8, 4))

    def forward(self, x):
        return torch.matmul(self.relu(x), self.matrices)


X = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0))


def schedule(*edges):
    s = lacis.create_schedule(Batched(), target="eager")
    for edge in edges:
        s[edge].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    return s


def test_build_finds_a_module_that_is_not_called():
    s = schedule("relu:out", "dropout:out")
    with pytest.raises(lacis.ScheduleError, match="'dropout:out': the model did not call this Dropout on the example"):
        s.build(X)
    assert not s.engine.built and not s.model.relu._forward_hooks
    s.edge("dropout:out").steps.clear()
    assert s.build(X) is s.model


def test_report_names_what_did_not_run():
    s = schedule("dropout:out")
    s.build()
    s.model(X)
    assert s.report(X).notes == ("'dropout:out' is packed, but its module was not called",)
    assert "'dropout:out' is packed, but its module was not called" in str(s.report())
    s.model.dropout(X)
    assert s.report().notes == () and s.report().to_dict()["notes"] == []


@pytest.mark.parametrize(
    "product",
    [
        lambda model, x: model(x),
        lambda model, x: torch.bmm(model.relu(x), model.matrices),
        lambda model, x: torch.einsum("bsj,bjk->bsk", model.relu(x), model.matrices),
        lambda model, x: torch.baddbmm(torch.zeros(2, 3, 4), model.relu(x), model.matrices),
    ],
    ids=["matmul", "bmm", "einsum", "baddbmm"],
)
def test_batched_products_say_that_they_run_dense(product):
    s = schedule("relu:out")
    line = s.edge("relu:out").steps[0].location[1]
    model = s.build()
    with pytest.warns(UserWarning, match=r"'relu:out' is packed, but '\w+' runs on the dense tensor") as caught:
        y = product(model, X)
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)
    hidden = torch.relu(X)
    mask = lacis.Magnitude(0.5)(hidden.reshape(6, 8)).reshape(hidden.shape)
    torch.testing.assert_close(y, torch.bmm(hidden * mask, model.matrices))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        product(model, X)
    assert re.fullmatch(r"'relu:out' is packed, but '\w+' ran on the dense tensor: products .*", s.report().notes[0])


def test_products_with_a_matrix_say_nothing():
    s = schedule("relu:out")
    model = s.build()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.nn.functional.linear(model.relu(X), torch.ones(4, 8)).sum()
    assert s.report().notes == ()
