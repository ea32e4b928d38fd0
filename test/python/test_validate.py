# SPDX-License-Identifier: Apache-2.0
"""Malformed arrays are refused with the array and the place, before anything else happens."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lacis.errors import DataError
from lacis.formats import Bsr, Coo, Csr, Dcsr, Ell, compose, decompose
from lacis.packing import PackedTensor, pack
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
    (Csr(), put("pos1", 3, 4), r"'crd1' must have shape \[4\]"),
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
