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


class Attention(torch.nn.Module):
    def forward(self, x):
        q, k, v = x.unflatten(-1, (3, 2, -1)).movedim(-3, 0).transpose(2, 3)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("target", ["eager", pytest.param("cpu", marks=pytest.mark.long)])
def test_attention_of_blocks_that_are_alike(target):
    from lacis import Similarity as SimilaritySparsifier

    torch.manual_seed(0)
    model = torch.nn.Module()
    model.linear1 = torch.nn.Linear(12, 3 * 16)
    model.linear1.attn = Attention()
    model.forward = lambda x: model.linear1.attn(model.linear1(x))
    x = torch.randn(2, 256, 12)
    projected = model.linear1(x).detach().unflatten(-1, (3, 2, -1)).movedim(-3, 0).transpose(2, 3)
    s = sparse.create_schedule(model, target=target)
    s['linear1.attn'].set_format(sparse.BlockedEll).sparsify(SimilaritySparsifier)  # fmt: skip
    s.build()
    found = model.linear1.attn(model.linear1(x))
    expected = sparse.attention(*projected, SimilaritySparsifier(), target="eager")
    torch.testing.assert_close(found, expected.transpose(1, 2).flatten(2), rtol=1e-4, atol=1e-5)
    dense = torch.nn.functional.scaled_dot_product_attention(*projected)
    assert not torch.allclose(expected, dense, atol=1e-3)
