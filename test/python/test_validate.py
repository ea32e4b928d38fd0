# SPDX-License-Identifier: Apache-2.0
"""Malformed arrays are refused with the array and the place, before anything else happens."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lacis.errors import DataError
from lacis.formats import Bsr, Coo, Csr, Dcsr, Dense, Ell, Format, compose, decompose
from lacis.packing import PackedTensor, pack
from lacis.patterns import Pattern
from lacis.sparsifiers import Magnitude
from strategies import formats_and_sums, tensors

DENSE = torch.tensor([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 5.0]])


def arrays(fmt, tensor=DENSE):
    packed = pack(tensor, fmt)
    made = {name: t.clone() for name, t in packed.tensors.items()}
    made.update({(f"{n}.valid" if n else "valid"): t.clone() for n, t in packed.pattern.valid.items()})
    return made


def build(fmt, given, shape=DENSE.shape):
    return PackedTensor.from_storage(fmt, shape, given)


def put(name, index, value):
    return lambda given: given[name].__setitem__(index, value)


def replace(name, change):
    return lambda given: given.__setitem__(name, change(given[name]))


BLOCK_COO = compose(2, [(2, 2)], [(Coo, [0, 1])])
BROKEN = [
    (Csr(), put("crd1", 1, -1), r"'crd1' at \[1\]: coordinate -1 is negative"),
    (Csr(), put("crd1", 4, 4), r"'crd1' at \[4\]: coordinate 4 is out of range"),
    (Csr(), put("crd1", 3, 3), r"'crd1' at \[4\]: coordinate 3 is there twice"),
    (Csr(), put("crd1", 0, 3), r"'crd1' at \[1\]: coordinate 3 is there twice"),
    (Csr(), put("crd1", 2, 3), r"'crd1' at \[3\]: coordinates must ascend"),
    (Csr(), put("pos1", 0, 1), r"'pos1' at \[0\]: the first position must be 0"),
    (Csr(), put("pos1", 2, 1), r"'pos1' at \[1\]: positions must not decrease"),
    (Csr(), put("pos1", 3, 4), r"'crd1' at \[4\]: behind the last of 'pos1' it must be -1, not"),
    (Csr(), put("pos1", 3, 2**31 - 1), r"'crd1' must have shape"),
    (Csr(), replace("pos1", lambda t: t[:-1]), r"'pos1' must have shape \[4\], not \[3\]"),
    (Csr(), replace("pos1", lambda t: t[:0]), r"'pos1' must have shape \[4\], not \[0\]"),
    (Csr(), replace("crd1", lambda t: t.float()), r"'crd1' must be int32 or int64, not torch.float32"),
    (Csr(), replace("crd1", lambda t: t.long()), r"all int32 or all int64"),
    (Csr(), replace("crd1", lambda t: t.to("meta")), r"'crd1' is on meta"),
    (Csr(), replace("crd1", lambda t: t.tolist()), r"'crd1' must be a dense tensor"),
    (Csr(), replace("values", lambda t: t[:-1]), r"'values' must have 5 slots"),
    (Csr(), replace("values", lambda t: t[None]), r"'values' must have shape"),
    (Csr(), lambda given: given.pop("crd1"), r"'crd1' is missing"),
    (Csr(), lambda given: given.update(crd7=given["crd1"]), r"'crd7' does not belong"),
    (Dcsr(), put("crd0", 1, 0), r"'crd0' at \[1\]: coordinate 0 is there twice"),
    (Dcsr(), put("pos0", 0, 1), r"'pos0' at \[0\]"),
    (Coo(), put("crd0", 1, 2), r"'crd1' at \[2\]: coordinates must ascend, but 0 follows"),
    (Coo(), put("crd0", 0, 2), r"'crd0' at \[1\]: coordinates must ascend, but 0 follows"),
    (Coo(), put("crd1", 3, 3), None),
    (Coo(), put("crd1", 0, -1), r"'crd1' at \[0\]: coordinate -1 is negative"),
    (Coo(), replace("crd1", lambda t: t[:-1]), r"'crd1' must have shape \[5\]"),
    (Ell(), put("crd1", (0, 0), -1), r"'crd1' at \[0, 1\]: a coordinate follows the padding"),
    (Ell(), put("crd1", (2, 1), 7), r"'crd1' at \[2, 1\]: coordinate 7 is out of range"),
    (Ell(), put("crd1", (2, 1), -2), r"'crd1' at \[2, 1\]: coordinate -2 is negative"),
    (Ell(), put("values", 4, 1.0), r"'values' at \[4\]: padding must be 0"),
    (Ell(3), replace("crd1", lambda t: t[:, :2]), r"'crd1' must have shape \[3, 3\]"),
    (BLOCK_COO, put("crd1", 1, 0), r"'crd1' at \[1\]: coordinate 0 is there twice, which only COO allows"),
    (Bsr(2, 2), put("crd1", 0, 2), r"'crd1' at \[0\]: coordinate 2 is out of range"),
    (Bsr(2, 2), put("values", (0, 0, 0), 1.0), r"'values' at \[0\]: padding must be 0"),
    (Bsr(2, 2), replace("valid", lambda t: t[0]), r"'valid' must have shape"),
    (Bsr(2, 2), replace("valid", lambda t: t.int()), r"'valid' must be bool"),
    (Bsr(2, 2), replace("values", lambda t: t.reshape(-1, 4)), r"'values' must have shape"),
    (
        decompose(ell=Ell(1), rest=Coo),
        put("rest.crd1", 0, 9),
        r"'rest.crd1' at \[0\]: coordinate 9 is out of range",
    ),
    (decompose(ell=Ell(1), rest=Coo), lambda given: given.pop("ell.values"), r"'ell.values' is missing"),
    (
        decompose(ell=Ell(1), rest=Coo),
        put("rest.crd1", 0, 1),
        r"'ell.values' at \[0\] and 'rest.values' at \[0\]: both are the entry \[0, 1\], which only COO may have twice",
    ),
]


@pytest.mark.parametrize("fmt, change, message", BROKEN, ids=[str(m) for _, _, m in BROKEN])
def test_refusals(fmt, change, message):
    given = arrays(fmt)
    assert torch.equal(build(fmt, given).to_dense(), DENSE)
    change(given)
    if message is None:
        assert build(fmt, given).nnz == 5
        return
    with pytest.raises(DataError, match=message):
        build(fmt, given)


TWICE = [
    ("(i, j) -> (i : dense, j : compressed<ordered=false>)", "crd1", [1, 2, 1]),
    ("(i, j) -> (i : dense, j : packed<?, ordered=false>)", "crd1", [[1, 2, 1]]),
    ("(i, j) -> (i : compressed<unique=false>, j : packed<2>)", "crd1", [[0, 1], [1, 2]]),
    ("(i, j) -> (i : compressed<unique=false>, j : packed<2>)", "crd1", [[0, 0], [1, 2]]),
]


@pytest.mark.parametrize("text, name, coordinates", TWICE)
def test_an_entry_is_not_there_twice(text, name, coordinates):
    """Kernels would add both up, where `to_dense` takes one."""
    given = arrays(Format.parse(text), torch.tensor([[5.0, 6, 7, 8]]) if "2>" in text else torch.tensor([[5.0, 6, 7]]))
    build(Format.parse(text), given, (1, 4))
    given[name] = torch.tensor(coordinates, dtype=torch.int32)
    where = r"'values' at \[[01]\] and 'values' at \[2\]: both are the entry \[0, 1\]"
    with pytest.raises(DataError, match=f"{where}|is there twice"):
        build(Format.parse(text), given, (1, 4))


@pytest.mark.parametrize(
    "shape, message",
    [
        ((3.0, 4), "a whole number for each axis"),
        ((6.5, 8), "a whole number for each axis"),
        (("3", 4), "a whole number for each axis"),
        (12, "a whole number for each axis"),
        ((3, -4), "no negative sizes"),
        ((3, 2**63), "sizes of 64 bits"),
    ],
)
def test_a_shape_is_of_whole_numbers(shape, message):
    with pytest.raises(DataError, match=message):
        build(Csr(), arrays(Csr()), shape)


HUGE = torch.zeros(1).expand(2**40)
EMPTY = torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.long), torch.zeros(0), (2**40,))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: pack(HUGE.expand(2**20, 2**40), Csr), "the tensor is expanded: 4 bytes stand for"),
        (lambda: pack(EMPTY, Coo(1), mask=HUGE[:1].bool().expand(2**40)), "the mask is expanded: 1 bytes"),
        (lambda: Magnitude(0.5)(HUGE), "the tensor is expanded"),
        (lambda: Pattern.from_mask(HUGE[:1].bool().expand(2**40), Coo(1)), "the mask is expanded"),
        (lambda: build(Csr(), {**arrays(Csr()), "values": HUGE}), "'values' is expanded: 4 bytes stand for 4398046511"),
        (lambda: build(Csr(), {**arrays(Csr()), "crd1": HUGE[:1].int().expand(2**40)}), "'crd1' is expanded"),
        (lambda: build(Dense(), {"values": HUGE[:1]}, (2**40, 8)), "'values' must have 8796093022208 slots, not 1"),
        (lambda: pack(torch.quantize_per_tensor(DENSE, 0.1, 0, torch.qint8), Csr), "the tensor is quantized"),
        (lambda: pack(torch.nested.nested_tensor([DENSE[0], DENSE[0]]), Csr), "is packed in the layout torch.jagged"),
        (
            lambda: build(
                Csr(), {**arrays(Csr()), "values": torch.quantize_per_tensor(torch.ones(5), 0.1, 0, torch.qint8)}
            ),
            "'values' is quantized",
        ),
        (lambda: pack(DENSE.to("meta"), Csr), "a tensor on meta has no values to pack"),
    ],
)
def test_what_has_no_elements_of_its_own_is_refused(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_a_small_expanded_tensor_is_packed():
    assert pack(torch.ones(1).expand(3, 4), Csr).nnz == 12


def test_what_is_written_into_a_packed_tensor_is_found():
    packed = pack(DENSE, Csr)
    packed.storage["crd1"][0] = 77
    with pytest.raises(DataError, match=r"test_validate\.py:\d+: 'crd1' at \[0\]"):
        packed.validate()


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(formats_and_sums(), tensors(dtype=torch.float32), st.data())
def test_a_number_out_of_range_never_passes(fmt, tensor, data):
    given = arrays(fmt, tensor)
    names = [n for n, t in given.items() if t.dtype == torch.int32 and t.numel()]
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    place = data.draw(st.integers(0, given[name].numel() - 1))
    given[name].view(-1)[place] = data.draw(st.sampled_from([-7, 2**30]))
    with pytest.raises(DataError, match=name):
        build(fmt, given, tensor.shape)


def csr(crow, col, size=(2, 3)):
    values = torch.ones(len(col))
    return torch.sparse_csr_tensor(torch.tensor(crow), torch.tensor(col), values, size, check_invariants=False)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: csr([0, 1, 2], [0, 3]), r"'col_indices' at \[1\]: 3 is out of range"),
        (lambda: csr([0, 1, 2], [0, -1]), r"'col_indices' at \[1\]: -1 is out of range"),
        (lambda: csr([0, 3, 2], [0, 1]), r"'crow_indices' must not decrease"),
        (lambda: csr([1, 1, 2], [0, 1]), r"'crow_indices' must begin with 0"),
        (
            lambda: torch.sparse_coo_tensor(
                torch.tensor([[0, 5], [0, 1]]), torch.ones(2), (2, 3), check_invariants=False
            ),
            r"'indices\[0\]' at \[1\]: 5 is out of range",
        ),
        (lambda: torch.ones(2, 3, 4).to_sparse(2), "dense dimensions"),
        (lambda: torch.tensor(3.0), "without axes"),
        (lambda: [1.0], "expected a torch tensor"),
    ],
)
def test_malformed_torch_tensors(make, message):
    with pytest.raises(DataError, match=message):
        pack(make(), Csr)


@pytest.mark.parametrize(
    "mask, message",
    [
        (torch.ones(3, 4), "bool tensor, not torch.float32"),
        (torch.ones(4, 3, dtype=torch.bool), r"shape \[4, 3\], the tensor \[3, 4\]"),
        (torch.ones(3, 4, dtype=torch.bool, device="meta"), "on meta"),
        (1, "not int"),
    ],
)
def test_malformed_masks(mask, message):
    with pytest.raises(DataError, match=message):
        pack(DENSE, Csr, mask=mask)
