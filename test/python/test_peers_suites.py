# SPDX-License-Identifier: Apache-2.0
"""What the suites of other systems assert, where it is not among the tests of their names; see docs/migrate.md."""

import copy

import lacis
import pytest
import torch
from lacis.compat import sten
from lacis.compat.torchao import SemiSparseLinear, largest_of_both_ways, swap_linear_with_semi_sparse_linear

nn = torch.nn


def calibrated(layers, sparsifier, batch):
    """A model whose linear layers are pruned by what they are given."""
    s = lacis.create_schedule(layers, target="eager")
    s.match(r"\d\.weight").sparsify(sparsifier).set_format(lacis.Csr)
    s.calibrate([batch])
    return s.build(), s


@pytest.mark.parametrize("share", [0.5, lacis.NM(2, 4)], ids=["unstructured", "2:4"])
def test_torchao_wanda_weighs_by_the_norm_of_inputs(share):
    layers = nn.Sequential(nn.Linear(4, 1, bias=False))
    layers[0].weight.data.copy_(torch.tensor([[1.0, 2, 3, 4]]))
    model, s = calibrated(layers, lacis.Wanda(share), torch.tensor([[100.0, 10, 1, 0.1]]))
    assert s["0.weight"].packed.to_dense().tolist() == [[1.0, 2, 0, 0]]


@pytest.mark.parametrize("share", [0.5, lacis.NM(2, 4)], ids=["unstructured", "2:4"])
def test_torchao_wanda_prunes_each_layer_to_its_share_and_restore_keeps_it(share):
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(128, 200), nn.ReLU(), nn.Linear(200, 12))
    model, s = calibrated(layers, lacis.Wanda(share), torch.randn(100, 128))
    for name in ("0.weight", "2.weight"):
        assert s[name].packed.nnz == s[name].packed.shape.numel() // 2
    expected = model(x := torch.randn(3, 128))
    dense = s.restore()  # what `squash_mask` leaves: plain parameters with zeros
    assert isinstance(dense[0].weight, nn.Parameter) and int((dense[0].weight == 0).sum()) == 128 * 100
    torch.testing.assert_close(dense(x), expected)


@pytest.mark.parametrize("compiled", [False, True])
def test_torchao_fast_training_is_the_same_under_compile(compiled):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.Linear(32, 16))
    twin = copy.deepcopy(model)
    swap_linear_with_semi_sparse_linear(model, {"0": SemiSparseLinear, "1": SemiSparseLinear})
    model[0].target = model[1].target = "eager"
    with torch.no_grad():
        for layer in twin:
            layer.weight.mul_(largest_of_both_ways(layer.weight))
    x = torch.randn(8, 64)
    run = torch.compile(model, backend="eager") if compiled else model
    torch.testing.assert_close(run(x), twin(x))
    run(x).sum().backward()
    twin(x).sum().backward()
    torch.testing.assert_close(model[0].weight.grad, twin[0].weight.grad)


@pytest.mark.parametrize("sizes", [(96, 64, 128), (32, 160, 32)], ids=str)
@pytest.mark.parametrize("density", [0.0, 0.4, 1.0])
def test_pytorch_block_sparse_products_of_a_block_matrix(sizes, density):
    """`BlockSparseMatrix`: dense and back, the transpose, both products, and the product at its blocks alone."""
    m, n, k = sizes
    torch.manual_seed(0)
    mask = lacis.BlockRandom(1 - density, block=(32, 32))(torch.ones(n, k))
    dense = (torch.randn(n, k, dtype=torch.float64) + 3) * mask
    packed = lacis.pack(dense, lacis.Bsr(32, 32), mask=mask)
    x, y = torch.randn(m, k, dtype=torch.float64), torch.randn(m, n, dtype=torch.float64)
    einsum = lambda *given: lacis.einsum(*given, target="eager")
    assert torch.equal(packed.to_dense(), dense) and torch.equal(packed.T.to_dense(), dense.T)
    torch.testing.assert_close(einsum("nk,mk->mn", packed, x), x @ dense.T)
    torch.testing.assert_close(einsum("nk,mn->mk", packed, y), y @ dense)
    torch.testing.assert_close(einsum("nk,mn,mk->nk", packed.pattern, y, x).to_dense(), (y.T @ x) * mask)


@pytest.mark.parametrize("fraction", [0.0, 0.8])
def test_sten_modifies_an_encoder_layer(fraction):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    sb = sten.SparsityBuilder(layer, target="eager")
    names = ["linear1.weight", "linear2.weight", "self_attn.out_proj.weight"]
    for name in names:
        sb.set_weight(name, sten.ScalarFractionSparsifier(fraction), out_format=sten.CsrTensor)
    sparse, twin, x = sb.get_sparse_model(), copy.deepcopy(layer), torch.randn(2, 5, 16)
    with torch.no_grad():
        for name in names:
            dense = twin.get_parameter(name)
            dense.mul_(lacis.Magnitude(fraction)(dense))
    torch.testing.assert_close(sparse(x), twin(x))
    sparse(x).square().sum().backward()
    twin(x).square().sum().backward()
    torch.testing.assert_close(sparse.norm1.weight.grad, twin.norm1.weight.grad)
    assert torch.equal(layer.linear1.weight == 0, torch.zeros(32, 16, dtype=torch.bool))  # the given one is as it was
