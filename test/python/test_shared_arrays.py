# SPDX-License-Identifier: Apache-2.0
"""What kernels walk beside a weight repeats none of its arrays."""

import copy

import pytest
import torch

import lacis


WIDE = lacis.Format.parse("(i, j) -> (i : dense<crd=i32>, j : compressed<crd=i32>)")


def trained(sparsity=0.8, format=WIDE):
    """A model with one CSR weight of 64×48, and the dense one, both after a backward pass."""
    torch.manual_seed(0)
    dense = torch.nn.Sequential(torch.nn.Linear(48, 64))
    model = copy.deepcopy(dense)
    s = lacis.create_schedule(model, target="cpu")
    s["0.weight"].sparsify(lacis.Magnitude(sparsity)).set_format(format)
    model = s.build()
    dense[0].weight.data = model[0].weight.packed().to_dense()
    backward(model, dense)
    return model, dense


def backward(model, dense):
    """Compare results and gradients of both."""
    x, mine = (torch.randn(16, 48, requires_grad=True) for _ in range(2))
    mine.data = x.data.clone()
    y, expected = model(mine), dense(x)
    grad = torch.randn_like(y)
    y.backward(grad), expected.backward(grad)
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(mine.grad, x.grad, rtol=1e-5, atol=1e-5)
    weight = model[0].weight
    rows, columns = weight.packed().pattern.to_mask().nonzero(as_tuple=True)
    torch.testing.assert_close(weight.values.grad, dense[0].weight.grad[rows, columns], rtol=1e-5, atol=1e-5)
    weight.values.grad = dense[0].weight.grad = None


@pytest.mark.long
def test_a_weight_is_trained_beside_three_arrays_of_its_entries():
    """The rows of its entries, and rows and links in the order of columns; the columns are its own."""
    model, dense = trained()
    weight, entries = model[0].weight, model[0].weight.packed().nnz
    kept = [name for name, tensor in weight.named_buffers() if tensor.numel() == entries]
    assert len(kept) == 4 and "crd1" in kept
    stored = sum(t.numel() * t.element_size() for t in (*model.parameters(), *model.buffers()))
    small = 4 * (64 + 1 + 48 + 1 + 2 + 64)  # where rows and columns begin, and the bias
    assert stored == 5 * 4 * entries + small
    assert weight.derived_bytes == 3 * 4 * entries + 4 * (48 + 1 + 2)


@pytest.mark.long
def test_shared_arrays_follow_the_weight():
    model, dense = trained()
    weight = model[0].weight
    model.to(torch.float64).to(torch.float32)
    for share in (0.2, 0.5):  # as many entries, in other places; then more
        mask = torch.zeros(64 * 48, dtype=torch.bool)
        mask[torch.randperm(64 * 48)[: weight.packed().nnz if share == 0.2 else 1500]] = True
        mask = mask.reshape(64, 48)
        weight.set_packed(lacis.pack(torch.randn(64, 48), lacis.Csr, mask))
        dense[0].weight.data = weight.packed().to_dense()
        weight.validate()
        backward(model, dense)
    loaded, _ = trained(0.9)
    loaded.load_state_dict(model.state_dict())
    loaded[0].weight.validate()
    backward(loaded, dense)
