# SPDX-License-Identifier: Apache-2.0
"""STen's names: what its own suite asserts of builders, operators and sparsifiers, against masked dense float64."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from lacis.compat import sten

import lacis

KEPT = (sten.KeepAll(), torch.Tensor, sten.KeepAll(), torch.Tensor)


class Feed(torch.nn.Module):
    """Two layers with a function between them."""

    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(24, 32), torch.nn.Linear(32, 16)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(Feed(), torch.nn.ReLU(), torch.nn.Linear(16, 8)).double()


def batch():
    return torch.randn(5, 24, dtype=torch.float64, requires_grad=True)


def kept(x, fraction):
    return lacis.Magnitude(fraction)(x)


@pytest.mark.parametrize("form", ["poster", "head"])
@pytest.mark.parametrize("format", [sten.CsrTensor, sten.CscTensor, sten.CooTensor, sten.DenseTensor, lacis.Ell])
def test_weights_are_the_masked_dense_ones_in_a_copy(form, format):
    dense = model()
    builder = sten.SparsityBuilder(*[dense] * (form == "poster"), target="eager")
    for name in ("0.up.weight", "2.weight"):
        builder.set_weight(name, sten.ScalarFractionSparsifier(0.75), out_format=format)
    builder.set_weight_grad("2.weight", sten.KeepAll(), torch.Tensor, sten.SameFormatSparsifier(), format)
    sparse = builder.get_sparse_model(*[dense] * (form == "head"))
    assert type(dense[2]) is torch.nn.Linear and sparse[2].weight.is_packed_weight
    for layer in (dense[0].up, dense[2]):
        layer.weight.data *= kept(layer.weight.data, 0.75)
    x = batch()
    y, expected = sparse(x), dense(x)
    torch.testing.assert_close(y, expected)
    grad = torch.randn_like(y)
    torch.testing.assert_close(*(torch.autograd.grad(z, x, grad, retain_graph=True)[0] for z in (y, expected)))


def test_with_nothing_dropped_numbers_are_the_dense_ones():
    dense, builder = model(), sten.SparsityBuilder(target="eager")
    for name in ("0.up.weight", "2.weight"):
        builder.set_weight(name, sten.ScalarFractionSparsifier(0), out_format=sten.CsrTensor)
    everything = (sten.RandomFractionSparsifier(0), sten.CooTensor, sten.KeepAll(), sten.CooTensor)
    builder.set_interm("0.gelu", *everything)
    sparse, x = builder.get_sparse_model(dense), batch()
    torch.testing.assert_close(sparse(x), dense(x))


@pytest.mark.parametrize("name", ["0.gelu", "0.up", "1"])
def test_intermediates_are_masked_at_modules_and_nodes(name):
    dense = model()
    builder = sten.SparsityBuilder(dense, target="eager")
    builder.set_interm(name, external_sparsifier=sten.ScalarFractionSparsifier(0.5), out_format=sten.CsrTensor)
    sparse, x = builder.get_sparse_model(), batch()
    cut = lambda h, here: h * kept(h, 0.5) if here == name else h
    hidden = cut(F.gelu(cut(dense[0].up(x), "0.up")), "0.gelu")
    expected = dense[2](cut(dense[1](dense[0].down(hidden)), "1"))
    torch.testing.assert_close(sparse(x), expected)
    assert not isinstance(dense[0], torch.fx.GraphModule)


def test_gradients_of_intermediates_are_masked():
    dense = model()
    builder = sten.SparsityBuilder(dense, target="eager")
    builder.set_interm_grad("0.down", sten.ScalarFractionSparsifier(0.5), out_format=sten.CsrTensor)
    sparse, x = builder.get_sparse_model(), batch()
    sparse(x).square().sum().backward()
    found, x.grad = x.grad, None
    hidden = dense[0].down(F.gelu(dense[0].up(x)))
    hidden.register_hook(lambda grad: grad * kept(grad, 0.5))
    dense[2](dense[1](hidden)).square().sum().backward()
    torch.testing.assert_close(found, x.grad)


def test_inline_and_external_sparsifiers_run_in_turn():
    parts = (lacis.NM(2, 4), sten.CooTensor, sten.ScalarFractionSparsifier(0.75), sten.CsrTensor)
    cut = sten.sparsified_op(torch.mul, [parts], [None], target="eager")
    x = batch()
    half = x * lacis.NM(2, 4)(x)
    packed = cut(x, 1)
    torch.testing.assert_close(packed.dense(), half * kept(half, 0.75))
    assert packed.packed.nnz == round(0.25 * x.numel())


def test_an_operator_sparsifies_its_output_and_its_gradient():
    part = lambda fraction: (sten.ScalarFractionSparsifier(fraction), torch.Tensor, sten.KeepAll(), sten.CsrTensor)
    add = sten.sparsified_op(torch.add, [part(0.6)], [part(0.5)], target="eager")
    a, b, c = batch(), batch(), torch.randn(24, 7, dtype=torch.float64)
    z = add(a, b)
    whole = a + b
    mask = kept(whole, 0.6)
    torch.testing.assert_close(z @ c, (whole * mask) @ c)
    grad = torch.randn(5, 7, dtype=torch.float64)
    (z @ c).backward(grad)
    of_z = (grad @ c.T) * mask
    torch.testing.assert_close(a.grad, of_z * kept(of_z, 0.5))
    torch.testing.assert_close(b.grad, a.grad)


def test_an_operator_that_keeps_everything_is_the_operator():
    mm = sten.sparsified_op(torch.mm, [KEPT], [KEPT])
    a = batch()
    y = mm(a, torch.ones(24, 2, dtype=torch.float64))
    assert type(y) is torch.Tensor and torch.equal(y, a @ torch.ones(24, 2, dtype=torch.float64))
    top = sten.sparsified_op(lambda x: tuple(torch.topk(x, 2)), [KEPT, None], [KEPT, None])
    assert len(top(a)) == 2
    with pytest.raises(lacis.ScheduleError, match="the operator has 2 outputs, formats are given for 1"):
        sten.sparsified_op(lambda x: tuple(torch.topk(x, 2)), [KEPT], [KEPT])(a)


def test_a_sparse_model_trains():
    builder = sten.SparsityBuilder(model(), target="eager")
    builder.set_weight("0.up.weight", sten.RandomFractionSparsifier(0.5), out_format=sten.CscTensor)
    sparse = builder.get_sparse_model()
    optimizer, x, losses = torch.optim.Adam(sparse.parameters(), lr=1e-2), batch().detach(), []
    for _ in range(30):
        loss = (sparse(x) - x[:, :8]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0] and sparse[0].up.weight.packed().nnz == 24 * 32 // 2


def test_random_fractions_are_drawn_anew():
    torch.manual_seed(0)
    drop = sten.RandomFractionSparsifier(0.7)
    first, second = drop(torch.ones(10, 20)), drop(torch.ones(10, 20))
    assert first.sum() == second.sum() == 60 and not torch.equal(first, second)


@pytest.mark.parametrize("n, m, g", [(1, 2, 1), (2, 4, 2), (1, 4, 3), (2, 2, 1)])
@pytest.mark.parametrize("rows, columns", [(24, 16), (25, 18), (3, 5), (0, 4)])
def test_grouped_nm_keeps_n_of_m_with_few_rows_alike(n, m, g, rows, columns):
    torch.manual_seed(0)
    tensor = torch.randn(rows, columns)
    mask = sten.GroupedNMSparsifier(n, m, g)(tensor)
    groups = F.pad(mask, (0, -columns % m)).unflatten(1, (-1, m))
    assert (groups[:, : columns // m].sum(2) == n).all() and (groups.sum(2) <= n).all()
    height = g * math.comb(m, n)
    for start, group in itertools.product(range(0, rows, height), range(columns // m)):
        _, counts = groups[start : start + height, group].unique(dim=0, return_counts=True)
        assert counts.max() <= g
    assert (tensor * mask).abs().sum() >= 0.5 * (tensor * lacis.NM(n, m)(tensor)).abs().sum() if rows else True


def test_what_has_no_place_is_refused():
    builder = sten.SparsityBuilder(target="eager")
    drop = sten.ScalarFractionSparsifier(0.5)
    for mark, name in ((builder.set_weight, "'w'"), (builder.set_weight_grad, "'w.grad'")):
        with pytest.raises(NotImplementedError, match=f"{name}: the entries of a weight stay"):
            mark("w", external_sparsifier=drop)
    with pytest.raises(lacis.ScheduleError, match="'ScalarFractionSparsifier' needs arguments"):
        builder.set_interm("1", external_sparsifier=sten.ScalarFractionSparsifier)
    with pytest.raises(lacis.ScheduleError, match="no model was given"):
        builder.get_sparse_model()
    with pytest.raises(NotImplementedError, match="an optimizer that was made before"):
        builder.sparsify_model_and_optimizer_inplace(None, None)
    with pytest.raises(lacis.DataError, match="n:m:g needs"):
        sten.GroupedNMSparsifier(3, 2, 1)
    with pytest.raises(lacis.DataError, match="n:m:g is of a matrix"):
        sten.GroupedNMSparsifier(1, 2, 1)(torch.ones(3))
    part = (lacis.Threshold(0.1), torch.Tensor, sten.KeepAll(), sten.CsrTensor)
    x, y = torch.randn(2, 5, 6)
    torch.testing.assert_close(
        sten.sparsified_op(torch.add, [part], [None])(x, y) + 0, (x + y) * lacis.Threshold(0.1)(x + y)
    )
    for name, text in (("0.relu", "'0' has no node 'relu'; it has x, up, gelu"), ("9.relu", "no module '9'")):
        marked = sten.SparsityBuilder(model(), target="eager")
        marked.set_interm(name, external_sparsifier=drop, out_format=sten.CsrTensor)
        with pytest.raises(lacis.ScheduleError, match=text):
            marked.get_sparse_model()
