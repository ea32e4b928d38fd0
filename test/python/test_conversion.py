# SPDX-License-Identifier: Apache-2.0
"""`packed.to(format)`: the same entries in another format, whatever the two are, and gradients through it."""

import itertools

import lacis
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from lacis.formats import Coo, Csc, Csf, Csr, Dense, Ell, Format, Sum, compose, decompose
from strategies import DTYPES, PREDEFINED, formats_and_sums, sparse, tensors

PARSED = [
    Format.parse(text)
    for text in (
        "(i, j) -> (j floordiv 3 : compressed, i : compressed<unique=false>, j mod 3 : singleton)",
        "(i, j) -> ((i, j) : compressed)",
        "(i, j) -> (i mod 4 : dense, j : compressed, i floordiv 4 : compressed)",
        "#lacis.sum<short = #lacis.format<(i, j) -> (i : dense, j : compressed)> when nnz(i) lt 4, "
        "left = #lacis.format<(i, j) -> (i floordiv 2 : compressed, j : packed<?>, i mod 2 : dense)> when j lt 8, "
        "rest = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>>",
    )
]
MATRICES = [*PREDEFINED, *PARSED, decompose(ell=Ell(2), rest=Coo)]
CUBES = [
    *(kind(3) for kind in (Coo, Csf, Dense)),
    compose(3, [(2, 3, 2)], [(Csf, [0, 1, 2]), (Coo, [3, 4, 5])]),
    Format.parse("(i, j, k) -> (k : dense, (i, j) : packed<?>)"),
    decompose(few=Format.parse("(i, j, k) -> (j : dense, i : packed<1>, k : dense)"), rest=Csf(3)),
]


def zeros_and_signs(dense):
    """The dense tensor packed with entries that are 0, -0.0 and NaN."""
    mask = dense != 0
    mask[::3] |= torch.rand(mask[::3].shape, generator=torch.Generator().manual_seed(3)) < 0.1
    dense = dense.clone()
    dense[mask & (dense == 0)] = -0.0
    if dense.is_floating_point() and mask.any():
        dense[tuple(axis[0] for axis in mask.nonzero(as_tuple=True))] = torch.nan
    return dense, mask


def check_same(found, packed):
    """Equal to the bit, entries by entries, and well formed."""
    mine, other = (p.validate().to_dense() for p in (found, packed))
    assert found.nnz == packed.nnz and found.dtype == packed.dtype
    assert found.pattern.to_mask().equal(packed.pattern.to_mask())
    assert mine.isnan().equal(other.isnan()) and mine.nan_to_num().equal(other.nan_to_num())
    assert mine.signbit().equal(other.signbit())


def all_pairs(formats, dense):
    dense, mask = zeros_and_signs(dense)
    for source, target in itertools.product(formats, repeat=2):
        packed, wanted = (lacis.pack(dense, format, mask=mask) for format in (source, target))
        found = packed.to(target)
        assert found.format == wanted.format
        check_same(found, packed)
        for name, array in wanted.tensors.items():
            assert array.nan_to_num().equal(found.tensors[name].nan_to_num()), (str(source), str(target), name)


@pytest.mark.parametrize("shape", [(13, 21), (0, 5), (16, 16)], ids=str)
def test_any_matrix_into_any_format(shape):
    all_pairs(MATRICES, sparse(*shape, seed=1))


def test_any_tensor_of_three_axes_into_any_format():
    all_pairs(CUBES, sparse(5, 7, 3, seed=2))


def test_nothing_stored():
    for source, target in itertools.product(MATRICES, repeat=2):
        found = lacis.pack(torch.zeros(5, 7), source).to(target).validate()
        assert found.nnz == 0 and found.to_dense().equal(torch.zeros(5, 7))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(formats_and_sums(), formats_and_sums(), tensors())
def test_random_formats(source, target, tensor):
    packed = lacis.pack(tensor, source)
    check_same(packed.to(target), packed)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn], ids=str)
def test_dtypes(dtype):
    packed = lacis.pack(sparse(9, 11), Csr).to(dtype)
    for format in (Csc, lacis.Bsr(4, 4), decompose(ell=Ell(2), rest=Coo)):
        found = packed.to(format)
        assert found.dtype == dtype
        assert found.to(Csr).values.to(torch.complex64).equal(packed.values.to(torch.complex64))


def duplicates():
    """[3, 4] with three entries at [1, 2], two at [2, 0], and a -0.0 that is alone."""
    indices = torch.tensor([[1, 2, 1, 0, 1, 2], [2, 0, 2, 1, 2, 0]])
    values = torch.tensor([1.0, 10.0, 2.0, -0.0, 4.0, 20.0], dtype=torch.float64)
    return torch.sparse_coo_tensor(indices, values, (3, 4), check_invariants=False)


def test_duplicates_are_summed_but_by_coo():
    packed = lacis.pack(duplicates(), Coo)
    assert packed.nnz == 6
    for format in (Csr, Csc, Ell(1), lacis.Bsr(2, 2), decompose(ell=Ell(1), rest=Csr), decompose(ell=Ell(1), rest=Coo)):
        found = packed.to(format).validate()
        assert found.nnz == 3 and found.to_dense().tolist() == [[0, 0, 0, 0], [0, 0, 7, 0], [30, 0, 0, 0]]
        assert found.to_dense().signbit().sum() == 1
    columns = Format.parse("(i, j) -> (j : compressed<unique=false>, i : singleton)")
    assert packed.to(columns).validate().nnz == 6


def gradient_of(packed, format):
    first = packed.values_by_part
    names, values = list(first), [v.clone().requires_grad_() for v in first.values()]

    def convert(*values):
        given = dict(zip(names, values)) if isinstance(packed.format, Sum) else values[0]
        return tuple(packed.with_values(given).to(format).values_by_part.values())

    assert torch.autograd.gradcheck(convert, values) and torch.autograd.gradgradcheck(convert, values)


@pytest.mark.parametrize("target", [Csc(), lacis.Bsr(2, 3), Ell(), decompose(ell=Ell(1), rest=Coo)], ids=str)
def test_gradients(target):
    dense = sparse(5, 7, dtype=torch.float64)
    for source in (Csr, lacis.Bsr(2, 2), decompose(ell=Ell(1), rest=Coo)):
        gradient_of(lacis.pack(dense, source), target)
    gradient_of(lacis.pack(duplicates(), Coo), target if target != Ell() else Ell(1))


def test_padding_has_no_gradient():
    packed = lacis.pack(sparse(5, 7), lacis.BlockedEll(2, 2))
    values = packed.values.clone().requires_grad_()
    packed.with_values(values).to(Csc).values.sum().backward()
    assert values.grad.equal(packed.pattern.gather(torch.ones(5, 7)))


def test_the_second_conversion_is_one_gather():
    packed = lacis.pack(sparse(9, 11), Csr)
    first = packed.to(Csc)
    with torch.profiler.profile() as profile:
        second = packed.with_values(packed.values * 2).to(Csc)
    assert second.pattern is first.pattern and second.values.equal(first.values * 2)
    names = {event.name for event in profile.events()}
    assert "aten::index_select" in names and not names & {"aten::sort", "aten::searchsorted", "aten::nonzero"}


def test_what_inference_mode_and_transforms_find_serves_gradients():
    packed = lacis.pack(sparse(9, 11, dtype=torch.float64), Csr)
    convert = lambda values: packed.with_values(values).to(Csc).values
    with torch.inference_mode():
        found = packed.to(Csc)
    values = packed.values.clone().requires_grad_()
    assert torch.autograd.gradcheck(convert, [values]) and convert(values).equal(found.values)
    packed = lacis.pack(packed.to_dense(), lacis.Bsr(2, 2))
    assert torch.func.jacrev(lambda v: convert(v).sum())(packed.values).equal(
        packed.pattern.gather(torch.ones(9, 11).double())
    )
    values = packed.values.clone().requires_grad_()
    assert torch.autograd.gradcheck(convert, [values])


def test_patterns_that_were_written_into_are_converted_again():
    packed = lacis.pack(torch.eye(4), Csr)
    found = packed.to(Csc)
    packed.storage["crd1"].copy_(torch.tensor([1, 0, 2, 3]))
    assert packed.to(Csc).to_dense().equal(packed.to_dense())
    again = packed.to(Csc)
    again.storage["crd1"].copy_(torch.tensor([0, 1, 3, 2]))  # what was handed out is its owner's
    assert packed.to(Csc).to_dense().equal(packed.to_dense()) and found.to_dense().equal(torch.eye(4))


@pytest.mark.parametrize("source", [Csr, lacis.Dcsr, Csc])
def test_the_arrays_are_its_own(source):
    """Also where they have the same numbers: both patterns may be written into."""
    wide = lambda format: lacis.Format.parse(str(format()).replace("compressed", "compressed<pos=i64, crd=i64>"))
    packed = lacis.pack(sparse(9, 11), wide(source))
    for target in (Csr, lacis.Dcsr, Csc):
        found = packed.to(wide(target))
        shared = {t.data_ptr() for t in found.storage.values()} & {t.data_ptr() for t in packed.storage.values()}
        assert found is packed or not shared
        assert found.to_dense().equal(packed.to_dense())


def test_rows_that_are_listed_and_empty():
    arrays = {"pos0": [0, 3], "crd0": [1, 4, 6], "pos1": [0, 2, 2, 3], "crd1": [0, 5, 3]}
    arrays = {name: torch.tensor(numbers, dtype=torch.int32) for name, numbers in arrays.items()}
    packed = lacis.PackedTensor.from_storage(lacis.Dcsr, (9, 11), arrays, torch.tensor([1.0, 2.0, 3.0]))
    for _ in range(2):
        again = packed.to(Csr)
        assert again.to_dense().equal(packed.to_dense()) and again.to(lacis.Dcsr).storage["crd0"].tolist() == [1, 6]
        packed = again.to(lacis.Dcsr)


def test_torchs_own_to():
    packed = lacis.pack(sparse(9, 11), Csr)
    assert packed.to(Csr) is packed and packed.to(Csr()) is packed
    assert packed.to("cpu", torch.float64).dtype == torch.float64
    assert packed.to(dtype=torch.float16).pattern is packed.pattern
    for device in ["cuda"] if torch.cuda.is_available() else []:
        check_same(packed.to(device).to(Csc), packed.to(Csc).to(device))


def test_refusals():
    packed = lacis.pack(sparse(9, 11), Csr)
    with pytest.raises(lacis.FormatError, match="has 3 axes, the tensor has 2"):
        packed.to(Csf(3))
    with pytest.raises(lacis.FormatError, match="has no code yet"):
        packed.to(Format.parse("(i, j) -> (i : dense, j : var*fn)"))
    with pytest.raises(lacis.DataError, match="'packed' has width 1, but row 0 holds"):
        packed.to(Ell(1))
    with pytest.raises(lacis.DataError, match="a format comes alone"):
        packed.to(Csc, torch.float16)
