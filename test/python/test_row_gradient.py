# SPDX-License-Identifier: Apache-2.0
"""Tables that stay dense, and whose gradient is a list of rows."""

import copy

import lacis
import pytest
import torch
from torch import nn

ROWS = lacis.Format.parse("(i, j) -> (i : compressed, j : dense)")


@pytest.mark.parametrize("make", [nn.Embedding, nn.EmbeddingBag])
@pytest.mark.parametrize("rate", [torch.optim.SGD, torch.optim.SparseAdam])
def test_a_table_with_a_gradient_in_rows_trains_as_a_dense_one(make, rate, tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(make(20, 12, padding_idx=3), nn.Linear(12, 5)).double()
    twin = copy.deepcopy(model)
    s = lacis.create_schedule(model, target="eager")
    s["0.weight"].grad.set_format(ROWS)
    s["1.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    s.save(tmp_path / "s.json")
    again = lacis.load_schedule(tmp_path / "s.json", copy.deepcopy(model))
    assert repr(again["0.weight"].grad) == repr(s["0.weight"].grad)
    assert not s["0.weight"].site.is_packed and str(s).count("  = #lacis") == 1
    s.build()
    twin[1].weight.data.copy_(s["1.weight"].packed.to_dense())
    mine, dense = (rate([each[0].weight], lr=0.5) for each in (model, twin))
    for step in range(3):
        ids = torch.randint(20, (4, 3))
        for each in (model, twin):
            each(ids).square().sum().backward()
        assert model[0].weight.grad.is_sparse and twin[0].weight.grad.layout is torch.strided
        torch.testing.assert_close(model[0].weight.grad.to_dense(), twin[0].weight.grad)
        if rate is torch.optim.SparseAdam:
            twin[0].weight.grad = twin[0].weight.grad.to_sparse(1)
        for optimizer in (mine, dense):
            optimizer.step()
            optimizer.zero_grad()
    torch.testing.assert_close(model[0].weight, twin[0].weight)
    assert "'0.weight.grad' is a list of rows" in str(s.report(ids))
    s.restore()
    assert not model[0].sparse and not twin[0].sparse


class TiedTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.head = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, ids):
        return self.head(self.emb(ids))


@pytest.mark.parametrize(
    "make, name, change, text",
    [
        (lambda: nn.Embedding(6, 4), "0.weight", lambda h: h.grad.set_format(lacis.Csr), "in rows, each whole: take"),
        (
            lambda: nn.Embedding(6, 4),
            "0.weight",
            lambda h: (h.set_format(lacis.Csr), h.grad.set_format(ROWS)),
            r"its weight is packed \(set_format\(Csr\)\)",
        ),
        (
            lambda: nn.Embedding(6, 4),
            "0.weight",
            lambda h: h.grad.sparsify(lacis.Magnitude(0.5)).set_format(ROWS),
            "rows that torch makes have no sparsify; leave it out",
        ),
        (TiedTable, "0.emb.weight", lambda h: h.grad.set_format(ROWS), r"'0.head' \(Linear\) reads the table too"),
        (
            lambda: nn.Embedding(6, 4, scale_grad_by_freq=True),
            "0.weight",
            lambda h: h.grad.set_format(ROWS),
            "has scale_grad_by_freq=True",
        ),
    ],
)
def test_gradients_that_are_no_rows(make, name, change, text):
    model = nn.Sequential(make())
    s = lacis.create_schedule(model, target="eager")
    change(s[name])
    with pytest.raises(lacis.ScheduleError, match=text):
        s.build()
    assert not any(getattr(module, "sparse", False) for module in model.modules())


def test_a_gradient_of_a_layer_is_no_list_of_rows():
    s = lacis.create_schedule(nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 4)), target="eager")
    with pytest.raises(lacis.ScheduleError, match=r"is s\['path:out'\].grad$"):
        s["1.weight"].grad.set_format(lacis.Csr)
