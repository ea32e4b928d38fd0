# SPDX-License-Identifier: Apache-2.0
"""blocksparse's names: products, gradients, gates, inits and norms by the rules of its own oracles, in float64."""

import copy
import pickle

import pytest
import torch
from lacis.compat.blocksparse import BlocksparseMatMul, SparseProj, group_param_grads

import lacis

LAYOUTS = {
    "random": (torch.arange(20).reshape(4, 5) * 7 % 3 == 0),
    "dense": torch.ones(3, 2),
    "tall": torch.tensor([[1], [0], [1]]),
    "none": torch.zeros(2, 3),
    "diagonal": torch.eye(4),
}


def made(layout="random", **options):
    torch.manual_seed(0)
    matmul = BlocksparseMatMul(LAYOUTS[layout], block_size=8, target="eager", **options)
    return matmul, torch.randn(matmul.w_shape, dtype=torch.float64, requires_grad=True)


def dense_of(matmul, w):
    dense = torch.zeros(matmul.C, matmul.K, dtype=w.dtype)
    b = matmul.bsize
    for n in range(matmul.blocks):
        c, k = matmul.block_coord(n)
        dense[c * b : (c + 1) * b, k * b : (k + 1) * b] = w[n]
    return dense


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "options", [{}, {"feature_axis": 0}, {"head": True}, {"head": True, "feature_axis": 1}], ids=str
)
def test_a_product_and_its_gradients_are_the_dense_ones(layout, options):
    matmul, w = made(layout, **options)
    x = torch.randn(matmul.i_shape(6), dtype=torch.float64, requires_grad=True)
    twin = dense_of(matmul, w.detach()).requires_grad_()
    y = matmul(x, w)
    expected = x @ twin if matmul.axis else twin.T @ x
    assert y.shape == matmul.o_shape(6)
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(matmul.to_dense(w), twin)
    grad = torch.randn_like(y)
    found = torch.autograd.grad(y, [x, w], grad)
    wanted = torch.autograd.grad(expected, [x, twin], grad)
    torch.testing.assert_close(found[0], wanted[0])
    torch.testing.assert_close(dense_of(matmul, found[1]), wanted[1] * dense_of(matmul, torch.ones_like(w)))


@pytest.mark.parametrize("axis", [0, 1])
def test_more_axes_are_tokens(axis):
    matmul, w = made(feature_axis=axis)
    x = torch.randn(3, matmul.C, 4, dtype=torch.float64).movedim(1, -1 if axis else 0)
    y, dense = matmul(x, w), dense_of(matmul, w)
    torch.testing.assert_close(y, x @ dense if axis else torch.einsum("ck,cab->kab", dense, x))


@pytest.mark.long
def test_it_runs_on_kernels():
    matmul = BlocksparseMatMul(LAYOUTS["random"], block_size=16)
    w, x = torch.randn(matmul.w_shape), torch.randn(matmul.i_shape(9))
    torch.testing.assert_close(matmul(x, w), x @ dense_of(matmul, w), rtol=1e-4, atol=1e-4)


def test_blocks_go_down_the_columns_and_in_morton_order_with_head():
    readme, head = (BlocksparseMatMul(torch.ones(2, 3), 8, head=head) for head in (False, True))
    assert [readme.block_coord(n) for n in range(6)] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    assert [head.block_coord(n) for n in range(6)] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    head = BlocksparseMatMul(torch.ones(4, 4), 8, head=True)
    assert [head.block_coord(n) for n in range(6)] == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0)]
    assert (readme.axis, head.axis) == (1, 0)


@pytest.mark.parametrize("gate_grad, dw_gated", [(False, False), (False, True), (True, False)])
def test_gates_scale_blocks(gate_grad, dw_gated):
    matmul, w = made()
    gate = torch.randn(matmul.g_shape, dtype=torch.float64).requires_grad_()
    gate.data[1] = 0
    x = torch.randn(matmul.i_shape(6), dtype=torch.float64)
    y = matmul(x, w, gate, gate_grad=gate_grad, dw_gated=dw_gated)
    torch.testing.assert_close(y, x @ dense_of(matmul, (w * gate[:, None, None]).detach()))
    grad = torch.randn_like(y)
    found = torch.autograd.grad(y, [w, gate], grad, allow_unused=True)
    plain = torch.autograd.grad(matmul(x, w), w, grad)[0]  # as x.T @ grad, block by block
    gated = gate_grad or dw_gated
    torch.testing.assert_close(found[0], plain * gate[:, None, None] if gated else plain)
    if gate_grad:
        torch.testing.assert_close(found[1], (plain * w).sum((1, 2)))
    else:
        assert found[1] is None


@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("gain", [False, True])
def test_l2_normalize_and_its_gradient(head, gain):
    matmul, w = made(head=head)
    w.data[0] = 0  # one column of blocks below epsilon, in part
    w.data[1] *= 1e-5
    gains = torch.randn(matmul.K, dtype=torch.float64, requires_grad=True) if gain else None
    y = matmul.l2_normalize(w, gains)
    epsilon = 1e-12 if head else 1e-6
    twin = dense_of(matmul, w.detach()).requires_grad_()
    norm = twin.square().sum(0).clamp(min=epsilon).sqrt()
    expected = twin / norm * (gains if gain else 1)
    torch.testing.assert_close(dense_of(matmul, y), expected)
    grad = torch.randn_like(y)
    found = torch.autograd.grad(y, w, grad)[0]
    wanted = torch.autograd.grad(expected, twin, dense_of(matmul, grad))[0]
    torch.testing.assert_close(dense_of(matmul, found), wanted * dense_of(matmul, torch.ones_like(w)))
    assert matmul.l2_normalize(w, dtype=torch.float32).dtype == torch.float32


def test_identity_passes_features_on():
    matmul, _ = made("diagonal")
    w, x = matmul.identity_init()(matmul.w_shape), torch.randn(3, matmul.C)
    assert torch.equal(matmul(x, w), x)
    matmul, _ = made("dense")
    repeated = dense_of(matmul, matmul.identity_init(2.0)())
    for c in range(3):
        for k in range(2):
            block = repeated[8 * c : 8 * c + 8, 8 * k : 8 * k + 8]
            assert torch.equal(block, torch.eye(8) * (2.0 if c % 2 == k % 3 else 0.0))


@pytest.mark.parametrize("layout", ["dense", "random", "tall"])
def test_columns_are_orthogonal(layout):
    matmul, _ = made(layout)
    dense = dense_of(matmul, matmul.ortho_init()(matmul.w_shape, torch.float64))
    if layout == "dense":
        torch.testing.assert_close(dense.T @ dense, torch.eye(matmul.K, dtype=torch.float64), atol=1e-5, rtol=0)
    for k in range(matmul.KB):
        columns = dense[:, 8 * k : 8 * k + 8]
        if columns.any():
            torch.testing.assert_close(columns.T @ columns, torch.eye(8, dtype=torch.float64), atol=1e-5, rtol=0)


@pytest.mark.parametrize("head", [False, True])
def test_pruning_keeps_the_blocks_with_gates(head):
    matmul, w = made(head=head, feature_axis=1)
    gate = matmul.checker_init()(matmul.g_shape, torch.float64)
    assert 0 < gate.sum() < matmul.blocks
    x = torch.randn(matmul.i_shape(4), dtype=torch.float64)
    expected = matmul(x, w, gate)
    w, gate = matmul.prune(w, gate)
    assert matmul.blocks == len(w) and gate.eq(1).all()
    torch.testing.assert_close(matmul(x, w), expected)


def test_it_copies_and_pickles():
    matmul, w = made(head=True)
    x = torch.randn(matmul.i_shape(4), dtype=torch.float64)
    expected = matmul(x, w)
    for again in (copy.deepcopy(matmul), pickle.loads(pickle.dumps(matmul))):
        assert torch.equal(again(x, w), expected)
    assert group_param_grads(x) is x


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda m, w: m(torch.ones(2, 3).double(), w), "the last axis of the input must be 32, not \\[2, 3\\]"),
        (lambda m, w: m(torch.ones(2, 32).double(), w[1:]), "the weights must be a tensor \\[7, 8, 8\\]"),
        (lambda m, w: m(torch.ones(2, 32).double(), w, torch.ones(3)), "the gates must be a tensor \\[7\\]"),
        (
            lambda m, w: m(torch.ones(2, 32).double(), w, dw_dtype=torch.float16),
            "gradients of weights are torch.float64",
        ),
        (lambda m, w: m.l2_normalize(w, torch.ones(3)), "the gains must be a tensor \\[40\\]"),
        (lambda m, w: m.identity_init()((1, 8, 8)), "the shape is \\[7, 8, 8\\], not \\[1, 8, 8\\]"),
        (lambda m, w: BlocksparseMatMul(torch.ones(3)), "a layout is a matrix"),
        (lambda m, w: BlocksparseMatMul(torch.ones(3, 3), 0), "a block size is a positive whole number"),
        (lambda m, w: BlocksparseMatMul(torch.ones(3, 3), feature_axis=2), "the features are axis 0 or 1"),
        (lambda m, w: SparseProj(8), "give nproj, proj_stride or gather_lut"),
        (lambda m, w: SparseProj(8, nproj=9), "9 different features of 8"),
        (lambda m, w: SparseProj(8, gather_lut=[1, 1]), "2 different features of 8"),
        (lambda m, w: SparseProj(8, gather_lut=[8]), "1 different features of 8"),
        (lambda m, w: SparseProj(8, nproj=2).gather(w), "the first axis must be 8"),
    ],
)
def test_what_does_not_fit_is_refused(call, text):
    with pytest.raises(lacis.DataError, match=text):
        call(*made())


def test_projections_and_their_gradients():
    torch.manual_seed(0)
    some = SparseProj(64, nproj=10)
    assert len(some.gather_lut) == 10 and some.gather_lut.diff().min() > 0
    assert SparseProj(70, proj_stride=2, block_size=8).gather_lut.tolist() == list(range(0, 64, 2))
    chosen = torch.eye(64, dtype=torch.float64)[some.gather_lut]  # [nproj, nhidden]
    x, y = torch.randn(64, 3, dtype=torch.float64), torch.randn(10, 3, dtype=torch.float64)
    x.requires_grad_(), y.requires_grad_()
    kept = 1 - chosen.sum(0)[:, None]
    pairs = [
        (some.gather(x), chosen @ x),
        (some.scatter(y), chosen.T @ y),
        (some.scatter_add(x, y), x + chosen.T @ y),
        (some.scatter_mul(x, y), x * kept + x * (chosen.T @ y)),
    ]
    for found, expected in pairs:
        torch.testing.assert_close(found, expected)
        grad = torch.randn_like(found)
        of = lambda z: [g for g in torch.autograd.grad(z, [x, y], grad, allow_unused=True)]
        for mine, theirs in zip(of(found), of(expected)):
            assert (mine is None) == (theirs is None)
            if mine is not None:
                torch.testing.assert_close(mine, theirs)
