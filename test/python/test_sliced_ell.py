# SPDX-License-Identifier: Apache-2.0
"""cuSPARSE's sliced ELL arrays there and back, and what is refused."""

import lacis
import pytest
import torch

D = torch.randn(7, 5, generator=torch.Generator().manual_seed(0)).relu()


@pytest.mark.parametrize("slice_size", [1, 4, 16])
def test_sliced_ell_there_and_back(slice_size):
    dense = torch.randn(11, 9) * (torch.rand(11, 9) < 0.4)
    dense[4:8] = 0
    packed = lacis.pack(dense, lacis.Sell(slice_size, 1))
    offsets, col_ind, values = packed.to_sliced_ell()
    for first in range(0, 11, slice_size):  # a slice has the first entries of its rows, then the second ones
        lo, hi = offsets[first // slice_size : first // slice_size + 2].tolist()
        for n, row in enumerate(dense[first : first + slice_size]):
            columns = row.nonzero().reshape(-1)
            mine = torch.arange(lo, hi)[n::slice_size]
            assert col_ind[mine].tolist() == columns.tolist() + [-1] * (len(mine) - len(columns))
            assert values[mine].equal(torch.cat([row[columns], torch.zeros(len(mine) - len(columns))]))
    again = lacis.from_sliced_ell(offsets, col_ind, values, (11, 9), slice_size)
    assert again.format == packed.format and again.to_dense().equal(dense)
    torch.testing.assert_close(lacis.einsum("ij,j->i", again, torch.ones(9), target="eager"), dense.sum(1))


def test_sliced_ell_in_any_order():
    offsets, col_ind = torch.tensor([0, 6, 8], dtype=torch.int32), torch.tensor([-1, 3, 2, -1, 0, 1, -1, -1]).int()
    values = torch.tensor([9, 1, 2, 9, 3, 4, 9, 9.0], requires_grad=True)
    packed = lacis.from_sliced_ell(offsets, col_ind, values, (3, 4), 2)
    assert packed.to_dense().tolist() == [[3, 0, 2, 0], [0, 4, 0, 1], [0, 0, 0, 0]] and packed.nnz == 4
    assert packed.storage["crd3"].tolist() == [0, 1, 2, 3, -1, -1, -1, -1]
    packed.values.sum().backward()
    assert values.grad.tolist() == [0, 1, 1, 0, 1, 1, 0, 0]
    nothing = lacis.from_sliced_ell(torch.zeros(1, dtype=torch.int64), torch.zeros(0).long(), torch.zeros(0), (0, 5), 4)
    assert nothing.shape == (0, 5) and nothing.nnz == 0


ROWS = {"slice_offsets": torch.tensor([0, 4]), "col_ind": torch.tensor([0, 1, -1, 2]), "values": torch.ones(4)}


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"slice_size": 0}, "a slice must have a positive number of rows, not 0"),
        ({"values": torch.ones(2, 2)}, "'values' must be a dense tensor with 1 axis"),
        ({"shape": (2, 3, 4)}, r"the shape must have 2 sizes, not \[2, 3, 4\]"),
        ({"col_ind": ROWS["col_ind"].int()}, "one type, not torch.int64 and torch.int32"),
        ({"shape": (3, 3)}, r"'slice_offsets' must be \[3\], as 3 rows have 2 slices of 2"),
        ({"slice_offsets": torch.tensor([0, 3])}, "must begin at 0 and ascend by multiples of 2"),
        ({"values": torch.ones(6)}, r"'values' must be \[4\], as 'slice_offsets' ends there"),
        ({"values": torch.ones(4, device="meta")}, "the arrays must be on one device, not cpu, cpu and meta"),
        ({"shape": (1, 3)}, "'col_ind' names a column of a row that is not there, there are 1"),
        ({"col_ind": torch.tensor([0, 1, -1, 5])}, "coordinate 5 is out of range, the level has 3"),
        ({"col_ind": torch.tensor([0, 1, 0, 2])}, r"both are the entry \[0, 0\], which only COO may have twice"),
    ],
)
def test_sliced_ell_arrays_that_do_not_fit(changed, message):
    with pytest.raises(lacis.DataError, match=message):
        lacis.from_sliced_ell(**{**ROWS, "shape": (2, 3), "slice_size": 2, **changed})


def test_sliced_ell_needs_its_format():
    for format in (lacis.Csr(), lacis.Sell(4, 8), lacis.Sell(4), lacis.Dia()):
        with pytest.raises(lacis.FormatError, match=r"rows in their own order.*to.lacis.Sell.32, 1.. stores"):
            lacis.pack(D, format).to_sliced_ell()
    packed = lacis.pack(D, lacis.Sell(2, 1))
    storage = {**packed.tensors, "perm0": packed.storage["perm0"].flip(0)}
    with pytest.raises(lacis.DataError, match="'perm0' has rows in another order"):
        lacis.PackedTensor.from_storage(packed.format, D.shape, storage).to_sliced_ell()
