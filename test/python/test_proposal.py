# SPDX-License-Identifier: Apache-2.0
"""The snippets of the proposal run as they stand."""

import copy

import lacis as sparse
import pytest
import torch

TARGETS = ["eager", "cpu"]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1 = torch.nn.Linear(40, 24)
        self.linear2 = torch.nn.Linear(24, 24)
        self.linear3 = torch.nn.Linear(24, 8)

    def forward(self, x):
        return self.linear3(torch.relu(self.linear2(torch.relu(self.linear1(x)))))


class Ellpack(sparse.SparseTensor):
    def __init__(self):
        with sparse.iter(dim=2) as (I, J):
            J.compress(coordinate=True).pack()
            self.indices = [I, J]


class Positive(sparse.Sparsifier):
    def mask(self, tensor):
        return tensor > 0


@pytest.mark.parametrize("target", TARGETS)
def test_snippets(target):
    torch.manual_seed(0)
    model = Model().eval()
    dense = copy.deepcopy(model)
    s = sparse.create_schedule(model, target=target)
    s["linear1.weight"].sparsify(Positive)
    s["linear1.weight"].set_format(sparse.CscTensor)
    s["linear2.weight"].set_format(Ellpack)
    s["linear3.weight"].block(16, 16).set_format(sparse.EllpackTensor, axis=[0, 1]).set_format(
        sparse.CooTensor, axis=[2, 3]
    )
    model = s.build()
    dense.linear1.weight.data *= dense.linear1.weight > 0
    x = torch.randn(5, 40)
    with torch.no_grad():
        torch.testing.assert_close(model(x), dense(x), rtol=1e-4, atol=1e-5)
    assert s["linear2.weight"].format == sparse.Ell()
    assert s["linear3.weight"].packed.nnz == 8 * 24
