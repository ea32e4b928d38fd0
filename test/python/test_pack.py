# SPDX-License-Identifier: Apache-2.0
"""Packing into any format and back changes no number."""

import copy
import pickle

import lacis
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lacis.errors import DataError, FormatError
from lacis.formats import Bcsc, Bsr, Coo, Csc, Csf, Csr, Dcsr, Dense, Ell, Format, companion, decompose
from lacis.packing import PackedTensor, pack
from strategies import DTYPES, NEST, PREDEFINED, formats, formats_and_sums, sparse, tensors

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


def same(a, b):
    """Equal to the bit, the sign of zero and NaN included."""
    assert a.shape == b.shape and a.dtype == b.dtype and a.device == b.device
    assert torch.equal(a.isnan(), b.isnan())
    assert torch.equal(a.nan_to_num(), b.nan_to_num())
    assert torch.equal(a.signbit(), b.signbit())


@QUICK
@given(formats_and_sums(), tensors())
def test_round_trip_of_any_format(fmt, tensor):
    packed = pack(tensor, fmt)
    same(packed.to_dense(), tensor)
    packed.validate()
    assert packed.nnz == int((tensor != 0).sum())
    assert tuple(packed.storage) == packed.format.buffers


@settings(QUICK, max_examples=60)
@given(formats(inner_first=True), tensors())
def test_inner_digits_may_come_first(fmt, tensor):
    packed = pack(tensor, fmt)
    same(packed.validate().to_dense(), tensor)


@settings(QUICK, max_examples=60)
@given(st.sampled_from([1, 3]).flatmap(lambda rank: st.tuples(formats_and_sums(rank), tensors(rank))))
def test_other_numbers_of_axes(case):
    fmt, tensor = case
    same(pack(tensor, fmt).validate().to_dense(), tensor)


@settings(QUICK, max_examples=80)
@given(formats_and_sums(), tensors())
def test_from_storage_takes_what_pack_makes(fmt, tensor):
    packed = pack(tensor, fmt)
    arrays = {
        **packed.tensors,
        **{f"{n}.valid" if n else "valid": v for n, v in packed.pattern.valid.items()},
    }
    again = PackedTensor.from_storage(packed.format, packed.shape, arrays)
    same(again.to_dense(), tensor)
    assert again.nnz == packed.nnz


@pytest.mark.parametrize("device", DEVICES)
def test_storage_of_the_predefined_formats(device):
    a = torch.tensor([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 5.0]], device=device)
    csr, csc, coo, ell, dcsr = (pack(a, f) for f in (Csr, Csc, Coo, Ell, Dcsr))
    assert {k: v.tolist() for k, v in csr.storage.items()} == {"pos1": [0, 2, 2, 5], "crd1": [1, 3, 0, 2, 3]}
    assert {k: v.tolist() for k, v in csc.storage.items()} == {
        "pos1": [0, 1, 2, 3, 5],
        "crd1": [2, 0, 2, 0, 2],
    }
    assert {k: v.tolist() for k, v in coo.storage.items()} == {
        "pos0": [0, 5],
        "crd0": [0, 0, 2, 2, 2],
        "crd1": [1, 3, 0, 2, 3],
    }
    assert {k: v.tolist() for k, v in ell.storage.items()} == {"crd1": [[1, 3, -1], [-1, -1, -1], [0, 2, 3]]}
    assert dcsr.storage["crd0"].tolist() == [0, 2] and dcsr.storage["pos1"].tolist() == [0, 2, 5]
    assert ell.values.tolist() == [1, 2, 0, 0, 0, 0, 3, 4, 5] and ell.slots == 9 and ell.nnz == 5
    bsr = pack(a, Bsr(2, 2))
    assert bsr.values.shape == (4, 2, 2) and bsr.values[0].tolist() == [[0, 1], [0, 0]]
    assert bsr.nnz == 5 and bsr.slots == 16 and bsr.pattern.valid[""].sum() == 5
    assert all(t.dtype == torch.int32 and t.device.type == device for t in csr.storage.values())


def test_a_full_block_format_needs_no_bitmap():
    packed = pack(torch.ones(5, 7), Bsr(2, 4))
    assert not packed.pattern.valid and packed.nnz == 35 and packed.slots == 6 * 8


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fmt", PREDEFINED, ids=str)
def test_every_torch_layout_goes_in(fmt, dtype, device):
    a = sparse(24, 16, dtype=dtype).to(device)
    for tensor in (
        a.to_sparse_coo(),
        a.to_sparse_csr(),
        a.to_sparse_csc(),
        a.to_sparse_bsr((4, 8)),
        a.to_sparse_bsc((4, 8)),
        pack(a, Csr),
    ):
        packed = pack(tensor, fmt)
        assert torch.equal(packed.validate().to_dense(), a)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fmt", [Csr(), Csc(), Coo(), Bsr(4, 8), Bcsc(4, 8), Dense()], ids=str)
def test_to_torch(fmt, device):
    a = sparse(24, 16).to(device)
    out = pack(a, fmt).to_torch()
    assert torch.equal(out if out.layout == torch.strided else out.to_dense(), a)


def test_to_torch_says_which_formats_have_a_layout():
    with pytest.raises(FormatError, match="Csr, Csc, Coo, Bsr and Bcsc"):
        pack(sparse(4, 4), Ell).to_torch()
    with pytest.raises(FormatError, match="divide"):
        pack(sparse(5, 4), Bsr(2, 2)).to_torch()


def test_coo_keeps_duplicates_others_sum_them():
    index, values = torch.tensor([[1, 0, 1], [2, 0, 2]]), torch.tensor([1.0, -0.0, 2.0])
    tensor = torch.sparse_coo_tensor(index, values, (2, 3))
    coo, csr = pack(tensor, Coo), pack(tensor, Csr)
    assert coo.nnz == 3 and coo.values.tolist() == [0, 1, 2]
    assert csr.nnz == 2 and csr.values.tolist() == [0, 3] and bool(csr.values[0].signbit())
    assert torch.equal(coo.validate().to_dense(), csr.to_dense())
    assert not coo.to_torch().is_coalesced()


def test_named_zeros_are_entries():
    a = torch.tensor([[0.0, -0.0], [float("nan"), 1.0]])
    assert pack(a, Csr).nnz == 2
    named = pack(a, Csr, mask=torch.ones(2, 2, dtype=torch.bool))
    assert named.nnz == 4
    same(named.to_dense(), a)
    csr = torch.sparse_csr_tensor(torch.tensor([0, 1, 1]), torch.tensor([1]), torch.tensor([-0.0]), (2, 2))
    assert pack(csr, Ell).nnz == 1 and bool(pack(csr, Ell).to_dense()[0, 1].signbit())
    assert pack(csr, Bsr(2, 2)).nnz == 1


def test_a_sum_takes_the_first_of_each_row():
    a = torch.tensor([[1, 2, 3], [0, 4, 0], [5, 0, 6.0]])
    packed = pack(a, decompose(ell=Ell(1), rest=Coo))
    assert packed.values["ell"].tolist() == [1, 4, 5] and packed.values["rest"].tolist() == [2, 3, 6]
    assert tuple(packed.storage) == ("ell.crd1", "rest.pos0", "rest.crd0", "rest.crd1")
    assert torch.equal(packed.to_dense(), a)


def test_a_sum_by_rules():
    fmt = Format.parse(
        "#lacis.sum<long = #lacis.format<(i, j) -> (i : dense, j : compressed)> when nnz(i) >= 3, "
        "left = #lacis.format<(i, j) -> (j : dense, i : compressed)> when j < 2, "
        "rest = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>>"
    )
    a = torch.tensor([[1, 2, 3], [4, 0, 5], [0, 0, 6.0]])
    packed = pack(a, fmt)
    assert {k: v.tolist() for k, v in packed.values.items()} == {
        "long": [1, 2, 3],
        "left": [4],
        "rest": [5, 6],
    }
    assert torch.equal(packed.to_dense(), a)


def test_a_width_that_is_too_small_names_the_row():
    a = torch.zeros(9, 9)
    a[5, :4] = 1
    with pytest.raises(DataError, match=r"row 5 holds 4"):
        pack(a, Ell(3))
    with pytest.raises(DataError, match=r"test_pack\.py:\d+: "):
        pack(a, Ell(3))


def test_group_coo_repeats_a_row_once_per_width():
    fmt = Format.parse("(i, j) -> (i : compressed<unique=false>, j : packed<2>)")
    a = torch.tensor([[1, 2, 3, 0], [0, 0, 0, 0], [0, 0, 0, 4.0]])
    packed = pack(a, fmt)
    assert packed.storage["crd0"].tolist() == [0, 0, 2]
    assert packed.storage["crd1"].tolist() == [[0, 1], [2, -1], [3, -1]]
    assert torch.equal(packed.validate().to_dense(), a)


def test_singleton_below_a_unique_level():
    fmt = Format.parse("(i, j) -> (i : dense, j : singleton<pad=true>)")
    a = torch.tensor([[0, 2.0], [0, 0], [3, 0]])
    packed = pack(a, fmt)
    assert packed.storage["crd1"].tolist() == [1, -1, 0]
    assert torch.equal(packed.validate().to_dense(), a)
    with pytest.raises(DataError, match="row 0 has 2"):
        pack(torch.ones(2, 2), fmt)


def test_integer_types_follow_the_text():
    packed = pack(sparse(20, 20), "(i, j) -> (i : dense, j : compressed<pos=i64, crd=i16>)")
    assert packed.storage["pos1"].dtype == torch.int64 and packed.storage["crd1"].dtype == torch.int16
    packed.validate()
    with pytest.raises(FormatError, match="does not fit into i8"):
        pack(sparse(4, 400), "(i, j) -> (i : dense, j : compressed<crd=i8>)")


def test_narrow_coordinates_are_signed():
    """Padding is -1 and the last coordinate 127: both widen to what they are."""
    a = sparse(20, 128)
    a[0], a[1, 127] = 0, 1
    packed = pack(a, "(i, j) -> (i : dense, j : packed<?, crd=i8>)")
    crd = packed.storage["crd1"]
    assert crd.dtype == torch.int8 and crd.min() == -1 and crd.max() == 127
    x = torch.randn(5, 128)
    torch.testing.assert_close(lacis.einsum("ij,bj->bi", packed, x), x @ a.T)
    arrays = {**packed.storage, "crd1": crd.to(torch.uint8)}
    with pytest.raises(DataError, match="'crd1' must be i8, not torch.uint8"):
        lacis.PackedTensor.from_storage(packed.format, (20, 128), arrays, packed.values)


def test_huge_axes_take_int64():
    index = torch.tensor([[0, 2**40], [2**13, 5]])
    tensor = torch.sparse_coo_tensor(index, torch.tensor([1.0, 2.0]), (2**41, 2**14))
    for fmt in (Coo, Csf):
        packed = pack(tensor, fmt).validate()
        assert all(t.dtype == torch.int64 for t in packed.storage.values())
        assert packed.pattern.typed_text.count("i64") == (3 if fmt is Coo else 4)
        assert packed.entries().axes[0].tolist() == [0, 2**40]


@pytest.mark.parametrize("fmt", [*PREDEFINED, decompose(ell=Ell(2), rest=Coo)], ids=str)
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (6, 7)])
def test_nothing_to_store(fmt, shape):
    packed = pack(torch.zeros(shape), fmt).validate()
    assert packed.nnz == 0 and torch.equal(packed.to_dense(), torch.zeros(shape))


def test_values_can_be_replaced_and_take_gradients():
    a = sparse(6, 5)
    packed = pack(a, Csr)
    values = packed.values.clone().requires_grad_()
    packed.with_values(values).to_dense().sum().backward()
    assert torch.equal(values.grad, torch.ones_like(values))
    packed.values = packed.values * 2
    assert torch.equal(packed.to_dense(), a * 2)
    with pytest.raises(DataError, match="'values' must have shape"):
        packed.values = torch.ones(1)


def test_kinds_without_code_are_refused_by_name():
    for text, name in [
        ("(i, j) -> (i : dense, j : var*fn)", "var.fn"),
        ("(i, j) -> (i : dense, j : @mine)", "@mine"),
    ]:
        with pytest.raises(FormatError, match=name):
            pack(torch.ones(4, 4), text)


def test_packed_tensors_copy_and_pickle():
    packed = pack(sparse(6, 8), NEST)
    packed.derived(str(companion(NEST, [0])))
    for again in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed)), packed.to(torch.float64)):
        assert again.format == packed.format and torch.equal(again.to_dense().float(), packed.to_dense())


def test_plot():
    pytest.importorskip("matplotlib").use("Agg")
    assert pack(sparse(20, 30), Bsr(4, 4)).plot() is not None
