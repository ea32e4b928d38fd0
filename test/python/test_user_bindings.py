# SPDX-License-Identifier: Apache-2.0
"""Bindings of the user's in kernels: their code finds the axes; what has none is walked by its companion index."""

import lacis
import pytest
import torch
from lacis.errors import FormatError
from lacis.formats import binding_texts
from strategies import sparse
from user_kinds import MyMorton, MyPairs

MORTON = "(i, j) let z = @my_morton(i, j) -> (z : compressed)"
PAIRS = "(i, j) let r = @my_pairs(i) -> (r : dense, j : compressed)"


def test_rows_run_in_the_order_of_a_binding():
    for rows, density in ((24, 0.3), (2, 0.0), (8, 1.0)):
        w = sparse(rows, 40, density=density)
        packed, x = lacis.pack(w, PAIRS), torch.randn(5, 40)
        kernel = lacis.compile("ij,bj->bi", packed, x)
        torch.testing.assert_close(kernel(packed, x).double(), x.double() @ w.double().T, rtol=1e-5, atol=1e-5)
    assert "lacis.solve" in kernel.asm["loops"] and "lacis.walk" not in kernel.asm["loops"]
    assert "permute" in str(kernel.steps)


def test_entries_of_a_sampled_output_run_in_the_order_of_a_binding():
    for shape, density in (((9, 35), 0.4), ((5, 3), 0.0), ((7, 33), 1.0)):
        w = sparse(*shape, density=density)
        packed, p, q = lacis.pack(w, MORTON), torch.randn(shape[0], 16), torch.randn(shape[1], 16)
        kernel = lacis.compile("ij,ik,jk->ij", packed.pattern, p, q)
        wanted = torch.where(w != 0, p.double() @ q.double().T, 0)
        torch.testing.assert_close(kernel(packed.pattern, p, q).to_dense().double(), wanted, rtol=1e-5, atol=1e-5)
    assert "lacis.solve" in kernel.asm["loops"] and "lacis.walk" not in kernel.asm["loops"]


def test_a_product_whose_rows_meet_is_walked_by_the_companion():
    w = sparse(24, 40, density=0.3)
    packed, x = lacis.pack(w, MORTON), torch.randn(5, 40)
    kernel = lacis.compile("ij,bj->bi", packed, x)
    torch.testing.assert_close(kernel(packed, x).double(), x.double() @ w.double().T, rtol=1e-5, atol=1e-5)
    assert "companion" in str(kernel.steps) and "lacis.solve" not in kernel.asm["loops"]


def test_what_runs_on_tensors_alone_has_no_code():
    @lacis.binding(name="flipped_by_torch")
    class Flipped:
        def forward(self, i):
            return torch.bitwise_xor(i, torch.ones_like(i))

        def inverse(self, r):
            return torch.bitwise_xor(r, torch.ones_like(r))

        def size(self, rows):
            return rows

    text = PAIRS.replace("@my_pairs", "@flipped_by_torch")
    assert binding_texts(text) == [] and len(binding_texts(PAIRS)) == 1
    assert binding_texts(PAIRS)[0].startswith("lacis.binding @my_pairs same 0 inverse(%1) {")
    assert "same" not in binding_texts(MORTON)[0]
    w = sparse(24, 40, density=0.3)
    packed, x = lacis.pack(w, text), torch.randn(5, 40)
    torch.testing.assert_close(lacis.einsum("ij,bj->bi", packed, x), x @ w.T, rtol=1e-5, atol=1e-5)


def test_an_order_has_each_coordinate_once():
    """When entries are packed, and when arrays come as they are: a kernel would write a fourth row of three."""
    said = "'inverse': its 3 coordinates do not give each of 0 to 2 once"
    with pytest.raises(FormatError, match=said):
        lacis.pack(torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), PAIRS)
    arrays = {"pos1": torch.tensor([0, 0, 0, 1]), "crd1": torch.tensor([0])}
    with pytest.raises(FormatError, match=said):
        lacis.PackedTensor.from_storage(PAIRS, (3, 2), arrays, torch.ones(1))
    assert MyMorton and MyPairs
