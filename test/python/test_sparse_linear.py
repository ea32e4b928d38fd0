# SPDX-License-Identifier: Apache-2.0
"""Layers that never were dense, and their first values."""

import copy
import pickle

import lacis
import pytest
import torch
from lacis.formats import decompose
from torch.utils._python_dispatch import TorchDispatchMode

SHAPE = (24, 40)  # out, in
MASK = torch.rand(SHAPE, generator=torch.Generator().manual_seed(0)) < 0.2
PATTERNS = {
    "pattern": (lacis.Csr, lacis.Pattern.from_mask(MASK, lacis.Csr)),
    "mask": (lacis.Csc, MASK),
    "sparse": ("coo", MASK.double().to_sparse()),
    "random": (lacis.Ell, lacis.Random(0.8, seed=3)),
    "blocks": (lacis.Bsr(4, 8), lacis.BlockRandom(0.5, seed=3)),
    "sum": (decompose(ell=lacis.Ell(width=4), rest=lacis.Coo), MASK),
}


def layer(case, **options):
    torch.manual_seed(0)
    format, pattern = PATTERNS[case]
    return lacis.nn.SparseLinear(SHAPE[1], SHAPE[0], format, pattern, **{"target": "eager", **options})


@pytest.mark.parametrize("case", PATTERNS)
def test_a_layer_of_its_pattern(case):
    made = layer(case, dtype=torch.float64)
    x = torch.randn(3, SHAPE[1], dtype=torch.float64, requires_grad=True)
    y = made(x)
    dense = made.weight.to_dense().detach()
    torch.testing.assert_close(y, x @ dense.T + made.bias)
    y.sum().backward()
    torch.testing.assert_close(x.grad, dense.sum(0).expand(3, -1))
    mask = made.weight.packed().pattern.to_mask()
    if case in ("pattern", "mask", "sparse", "sum"):
        assert torch.equal(mask, MASK)
    assert (dense[mask] != 0).all() and not dense[~mask].any()
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        torch.testing.assert_close(other(x), y)
    twin = lacis.densify(made)
    assert type(twin) is torch.nn.Linear
    torch.testing.assert_close(twin(x), y)


def test_kernels_and_state_dicts():
    made, x = layer("pattern", target="cpu"), torch.randn(5, SHAPE[1])
    torch.testing.assert_close(made(x), x @ made.weight.to_dense().T + made.bias)
    other = layer("pattern", target="cpu")
    other.reset_parameters()
    other.load_state_dict(made.state_dict())
    assert torch.equal(other(x), made(x))
    model = torch.nn.Sequential(made)
    with pytest.raises(lacis.ScheduleError, match="'0.weight' is packed already"):
        lacis.create_schedule(model)["0.weight"]


class NoDense(TorchDispatchMode):
    """Fails where a tensor is made that is as large as the dense weight."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor) and not found.is_meta:
            assert found.layout != torch.strided or found.numel() < 1000 * 1000, func
        return found


def test_no_dense_weight_is_made():
    ids = torch.randint(1000, (2, 500), generator=torch.Generator().manual_seed(0))
    entries = torch.sparse_coo_tensor(ids, torch.ones(500), (1000, 1000))
    with NoDense():
        lacis.nn.SparseLinear(1000, 1000, lacis.Csr, entries, target="eager")
    with pytest.raises(AssertionError), NoDense():
        torch.zeros(1000, 1000)


def test_each_row_varies_as_a_dense_one():
    """Rows of 20 to 400 entries: their outputs have the deviation of a dense row's, gain · sqrt(mean of x²)."""
    torch.manual_seed(0)
    counts = torch.tensor([20, 100, 400, 0])
    mask = torch.arange(2000).expand(4, -1) < counts[:, None]
    made = lacis.nn.SparseLinear(2000, 4, lacis.Csr, mask, bias=False, dtype=torch.float64, target="eager")
    squares = torch.zeros(4, dtype=torch.float64)
    for _ in range(200):
        lacis.nn.init.kaiming_uniform_(made.weight, nonlinearity="relu")
        dense = made.weight.to_dense().detach()
        squares += dense.square().sum(1) / 200
        assert (dense.abs() < (6 / counts.clamp_min(1)).sqrt()[:, None]).all()
    torch.testing.assert_close(squares.sqrt()[:3], torch.full((3,), 2**0.5).double(), rtol=0.05, atol=0)
    assert squares[3] == 0


def test_init_by_generator_axis_and_padding():
    made = layer("blocks")
    draw = lambda **options: (
        lacis.nn.init.kaiming_uniform_(made.weight, generator=torch.Generator().manual_seed(1), **options)
        .values.detach()
        .clone()
    )
    assert torch.equal(draw(), draw()) and not torch.equal(draw(), draw(axis=1))
    fixed = lacis.nn.SparseLinear(7, 5, lacis.Bsr(3, 4), torch.eye(5, 7, dtype=torch.bool), target="eager")
    assert int((fixed.weight.values != 0).sum()) == 5


def test_the_bias_has_the_bound_of_its_row():
    mask = torch.arange(100).expand(50, -1) < 4
    mask = torch.cat([mask, torch.zeros(1, 100, dtype=torch.bool)])
    bias = lacis.nn.SparseLinear(100, 51, lacis.Csr, mask, target="eager").bias
    assert 0.4 < bias.abs().max() <= 0.5 and bias[-1] == 0
    assert lacis.nn.SparseLinear(100, 51, lacis.Csr, mask, bias=False, target="eager").bias is None


REFUSED = {
    "another shape": (lacis.Csr, MASK.T, r"the pattern is \[40, 24\], the weight \[out, in\] is \[24, 40\]"),
    "another format": (lacis.Csc, PATTERNS["pattern"][1], "the pattern is in .*, the format is"),
    "by value": (lacis.Csr, lacis.Magnitude(0.5), "there are no values to choose by"),
    "nothing": (lacis.Csr, None, "the pattern is NoneType"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    format, pattern, message = REFUSED[case]
    with pytest.raises(lacis.DataError, match=message):
        lacis.nn.SparseLinear(SHAPE[1], SHAPE[0], format, pattern)


def test_refusals_of_init():
    made = layer("mask")
    with pytest.raises(lacis.DataError, match="a packed weight is expected, as layer.weight, not a SparseLinear"):
        lacis.nn.init.kaiming_uniform_(made)
    with pytest.raises(lacis.DataError, match="the weight has 2 axes, not an axis 2"):
        lacis.nn.init.kaiming_uniform_(made.weight, axis=2)
