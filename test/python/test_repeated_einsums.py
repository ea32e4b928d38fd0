# SPDX-License-Identifier: Apache-2.0
"""Einsums on one pattern with new values each time: launched as before, and only where all else is alike."""

import gc
import weakref

import lacis
import pytest
import torch
from lacis.runtime import einsum as module
from lacis.runtime.einsum import einsum

CASES = {  # an expression, whether it takes values, and the shapes of the dense operands
    "product": ("ij,jk->ik", True, [(7, 3)]),
    "sampled": ("ij,ik,jk->ij", False, [(5, 4), (7, 4)]),
    "heads": ("ij,hik,hjk->hij", False, [(2, 5, 4), (2, 7, 4)]),
    "sum of rows": ("ij->i", True, []),
    "spread": ("ij,i->ij", False, [(5,)]),
    "transposed": ("ij,ik,jk->ji", False, [(5, 4), (7, 4)]),
}
FORMATS = {"Csr": lacis.Csr(), "Coo": lacis.Coo(), "Ell": lacis.Ell(7), "Bsr": lacis.Bsr(2, 2)}
IN_TURN = ["Csr", *(pytest.param(name, marks=pytest.mark.long) for name in list(FORMATS)[1:])]


@pytest.fixture
def launched(monkeypatch):
    """How often an einsum was launched as before."""
    found, run = [], module._repeated.run

    def counted(*given):
        result = run(*given)
        found.append(result is not None)
        return result

    monkeypatch.setattr(module._repeated, "run", counted)
    return found


def drawn(format, shapes, has_values: bool, pattern=None):
    pattern = pattern or lacis.Pattern.from_mask(torch.rand(5, 7) < 0.6, format)
    dense = [torch.randn(shape) for shape in shapes]
    if not has_values:
        return pattern, [pattern, *dense]
    values = pattern.gather(torch.randn(5, 7))
    return pattern, [lacis.PackedTensor(pattern, {"": values}), *dense]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("format", IN_TURN)
def test_new_values_give_new_results(case, format, launched):
    expression, has_values, shapes = CASES[case]
    pattern = None
    with torch.inference_mode(False), torch.no_grad():
        for n in range(4):
            pattern, operands = drawn(FORMATS[format], shapes, has_values, pattern)
            found, want = (einsum(expression, *operands, target=target) for target in ("auto", "eager"))
            if not isinstance(found, torch.Tensor):
                assert found.pattern.format.text == want.pattern.format.text
                found, want = found.to_dense(), want.to_dense()
            torch.testing.assert_close(found, want)
    assert launched.count(True) == (0 if case == "transposed" else 3)


def test_a_semiring_and_other_dtypes_are_told_apart():
    pattern, (packed, x) = drawn(lacis.Csr(), [(7, 3)], True)
    with torch.no_grad():
        for dtype in (torch.float32, torch.float64, torch.float32):
            for semiring in ("plus_times", "max_times"):
                given = packed.with_values(packed.values.to(dtype)), x.to(dtype)
                found, want = (einsum("ij,jk->ik", *given, semiring=semiring, target=t) for t in ("auto", "eager"))
                torch.testing.assert_close(found, want)


def test_changed_arrays_are_read_anew():
    pattern = lacis.Pattern.from_mask(torch.eye(4, dtype=torch.bool), lacis.Csr())
    x = torch.arange(4.0)
    with torch.no_grad():
        for shift in (0, 1, 2):
            pattern.storage["crd1"].copy_((torch.arange(4) + shift) % 4)
            packed = lacis.PackedTensor(pattern, {"": torch.ones(4)})
            torch.testing.assert_close(einsum("ij,j->i", packed, x), x.roll(-shift))


def test_gradients_are_recorded_where_they_are_asked_for(launched):
    pattern, (packed, x) = drawn(lacis.Csr(), [(7, 3)], True)
    with torch.no_grad():
        einsum("ij,jk->ik", packed, x)
    x.requires_grad_()
    einsum("ij,jk->ik", packed.with_values(packed.values), x).sum().backward()
    torch.testing.assert_close(x.grad, packed.to_dense().sum(0)[:, None].expand(7, 3))
    assert launched == [False, False]


def test_a_packed_operand_that_comes_again_is_bound(launched):
    pattern, (packed, x) = drawn(lacis.Csr(), [(7, 3)], True)
    with torch.no_grad():
        einsum("ij,jk->ik", packed, x)
        again = packed.with_values(packed.values + 1)
        for _ in range(4):
            torch.testing.assert_close(einsum("ij,jk->ik", again, x), again.to_dense() @ x)
    assert launched == [False, True, False]


def test_the_parts_of_a_sum_have_values_of_their_own(launched):
    sum_of = lacis.formats.decompose(ell=lacis.Ell(2), rest=lacis.Csr())
    pattern = lacis.pack(torch.randn(5, 7), sum_of).pattern
    x = torch.randn(7, 3)
    with torch.no_grad():
        for _ in range(3):
            packed = lacis.PackedTensor(pattern, pattern.gather(torch.randn(5, 7)))
            torch.testing.assert_close(einsum("ij,jk->ik", packed, x), packed.to_dense() @ x)
    assert not any(launched)


@pytest.mark.parametrize("case", ["product", "sampled"])
def test_nothing_outlives_the_pattern(case):
    """Without a collection of cycles, for patterns may be large."""
    expression, has_values, shapes = CASES[case]
    pattern, operands = drawn(lacis.Csr(), shapes, has_values)
    gc.collect()
    gc.disable()
    try:
        with torch.no_grad():
            for _ in range(2):
                einsum(expression, *operands)
        watched = weakref.ref(pattern.storage["crd1"])
        del pattern, operands
        assert watched() is None
    finally:
        gc.enable()
