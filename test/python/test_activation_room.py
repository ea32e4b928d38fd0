# SPDX-License-Identifier: Apache-2.0
"""Activations on a GPU are packed with room: as they are elsewhere, and nobody asks how many entries there are."""

import pytest
import torch
from strategies import mostly_long
from torch.utils._python_dispatch import TorchDispatchMode

import lacis
from lacis.packing import PackedTensor
from lacis.patterns.build import for_tensor
from lacis.patterns.scan import may_be_scanned, scan_pattern, scanned_values
from lacis.runtime import edges

FORMATS = {
    "csr": lacis.Csr,
    "csc": lacis.Csc,
    "coo": lacis.Coo,
    "bsr": lacis.Bsr(4, 5),
    "bcsc": lacis.Bcsc(3, 4),
    "fused": "(i, j) -> ((i, j) : compressed)",
    "blocks of columns": "(i, j) -> (j floordiv 4 : dense, i : compressed, j mod 4 : dense)",
}
OTHERS = (lacis.Ell, lacis.Dcsr, lacis.Dia, lacis.Dense, "(i, j) -> (i : dense, j : compressed<crd=i16>)")
CASES = [(name, target) for name in FORMATS for target in ("eager", "cpu")]
CASES = mostly_long(CASES, *((name, "eager") for name in FORMATS))
_AT = torch.ops.aten
_WAITS = {_AT._local_scalar_dense, _AT.nonzero, _AT.masked_select, _AT.equal, _AT._unique2, _AT.item, _AT.is_nonzero}


class NobodyWaits(TorchDispatchMode):
    """Refuses the operators for which a GPU's host would wait."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        packet, indices = func.overloadpacket, args[1] if len(args) > 1 else ()
        by_mask = packet in (_AT.index, _AT.index_put, _AT.index_put_) and any(
            index is not None and index.dtype == torch.bool for index in indices
        )
        assert packet not in _WAITS and not by_mask, func
        return func(*args, **(kwargs or {}))


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    monkeypatch.setattr(edges, "_DEVICE", "cpu")


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("shape", [(17, 23), (8, 10), (1, 9), (0, 5), (5, 0)])
def test_a_scan_packs_as_packing_does(format, shape):
    x = torch.randn(shape, dtype=torch.float64)
    format = for_tensor(format, shape)
    assert may_be_scanned(format)
    for density in (0.0, 0.3, 1.0):
        mask = torch.rand(shape) < density
        want = lacis.pack(x, format, mask)
        for slots in (None, want.slots // max(torch.Size(format.tile).numel(), 1)):
            with NobodyWaits():
                pattern, at = scan_pattern(mask, format, slots)
                values = scanned_values(x, pattern, at)
            packed = PackedTensor(pattern, {"": values}).validate()
            assert torch.equal(packed.to_dense(), x.where(mask, 0)) and torch.equal(pattern.to_mask(), mask)
        assert all(torch.equal(array, want.storage[name]) for name, array in packed.storage.items())
        assert torch.equal(packed.values, want.values)


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
def test_no_more_is_stored_than_there_are_slots(format):
    """What a rule keeps beyond the count that it promised is left out, the first are whole."""
    x, format = torch.randn(8, 10), for_tensor(format, (8, 10))
    pattern, at = scan_pattern(torch.ones(8, 10, dtype=torch.bool), format, 2)
    packed = PackedTensor(pattern, {"": scanned_values(x, pattern, at)}).validate()
    assert packed.slots == packed.nnz == 2 * torch.Size(format.tile).numel()
    assert torch.equal(packed.to_dense(), x.where(pattern.to_mask(), 0))


@pytest.mark.parametrize("format", OTHERS)
def test_others_are_packed_as_before(format):
    assert not may_be_scanned(for_tensor(format, (4, 8)))


@pytest.mark.parametrize("name, target", CASES)
def test_thresholds_of_any_density(name, target, as_on_a_gpu):
    """The model whose activation is masked, with its gradients; from nothing kept to all."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(24, 20), torch.nn.GELU(), torch.nn.Linear(20, 12)).double()
    x = torch.randn(3, 7, 24, dtype=torch.float64, requires_grad=True)
    for threshold in (10.0, 0.3, -1.0):
        built = lacis.create_schedule(model, target=target)
        edge = built["1:out"].sparsify(lacis.Threshold(threshold))
        (edge.block(4, 5) if name == "bsr" else edge).set_format(FORMATS[name])
        dense = model[1](model[0](x))
        kept = torch.where(dense.abs() > threshold, dense, 0)
        want = model[2](kept)
        expected = torch.autograd.grad(want.square().sum(), (x, *model.parameters()), retain_graph=True)
        built.build()
        y = model(x)
        torch.testing.assert_close(y, want)
        found = torch.autograd.grad(y.square().sum(), (x, *model.parameters()))
        torch.testing.assert_close(found, expected)
        built.restore()


@pytest.mark.parametrize("name", mostly_long(("csr", "csc", "coo"), "csr"))
@pytest.mark.parametrize("sparsifier", [lacis.Threshold(0.3), lacis.NM(2, 4)], ids=["threshold", "nm"])
def test_nobody_waits(sparsifier, name, as_on_a_gpu):
    """Forward and backward, after a call that compiled, and found the count where the shape says it."""
    model = torch.nn.Sequential(torch.nn.Linear(24, 20), torch.nn.GELU(), torch.nn.Linear(20, 12)).double()
    s = lacis.create_schedule(model, target="cpu")
    s["1:out"].sparsify(sparsifier).set_format(FORMATS[name])
    s.build()
    model(torch.randn(9, 24, dtype=torch.float64)).square().sum().backward()
    with NobodyWaits():
        y = model(torch.randn(9, 24, dtype=torch.float64))
        y.square().sum().backward()
    assert y.shape == (9, 12) and all(p.grad.abs().sum() > 0 for p in model.parameters())
