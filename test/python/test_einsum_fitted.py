# SPDX-License-Identifier: Apache-2.0
"""Einsums on one pattern that differ in values alone are captured once."""

import pytest
import torch

import lacis
from lacis.errors import DataError
from lacis.runtime import call, fitted

MASK = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]]).bool()


@pytest.fixture
def captures(monkeypatch):
    """The statements that were captured."""
    found, capture = [], call.capture_einsum
    monkeypatch.setattr(
        call, "capture_einsum", lambda *given, **named: found.append(given[0]) or capture(*given, **named)
    )
    return found


def product(packed, x, statement="ij,jd->id", **options):
    return lacis.einsum(statement, packed, x, target="eager", **options)


def pattern_of(mask=MASK):
    return lacis.Pattern.from_mask(mask, lacis.Csr)


def packed_on(pattern, dtype=torch.float64):
    return lacis.PackedTensor(pattern, {"": torch.randn(pattern.nnz, dtype=dtype)})


def test_other_values_are_not_captured_again(captures):
    pattern, other = pattern_of(), pattern_of()
    for _ in range(3):
        packed, x = packed_on(pattern), torch.randn(4, 5, dtype=torch.float64)
        torch.testing.assert_close(product(packed, x), packed.to_dense() @ x)
    assert captures == ["ij,jd->id"]
    product(packed_on(other), x)
    assert len(captures) == 2


OTHERS = {
    "shape": lambda pattern, x: product(packed_on(pattern), x[:, :2]),
    "dtype": lambda pattern, x: product(packed_on(pattern, torch.float32), x.float()),
    "statement": lambda pattern, x: product(packed_on(pattern), x, "ij,jd->di"),
    "semiring": lambda pattern, x: product(packed_on(pattern), x, semiring="max_plus"),
    "strict": lambda pattern, x: product(packed_on(pattern), x, strict=True),
    "order": lambda pattern, x: product(packed_on(pattern), x, deterministic=False),
    "steps": lambda pattern, x: product(packed_on(pattern), x, steps=[lacis.steps.Parallel("i")]),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_else_is_said_is_captured(what, captures):
    pattern, x = pattern_of(), torch.randn(4, 5, dtype=torch.float64)
    product(packed_on(pattern), x)
    OTHERS[what](pattern, x)
    assert len(captures) == 2


def test_settings_and_arrays_that_change_are_seen(captures, monkeypatch):
    pattern, x = pattern_of(), torch.randn(4, 5, dtype=torch.float64)
    specs = lambda: next(iter(call.Call("ij,jd->id", (packed_on(pattern), x)).pieces.values()))[0]
    assert specs() is specs() and not specs().checked and len(captures) == 1
    monkeypatch.setenv("LACIS_DEBUG", "1")
    assert specs().checked and len(captures) == 2
    before, torch.backends.cuda.matmul.fp32_precision = torch.backends.cuda.matmul.fp32_precision, "tf32"
    try:
        specs()
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    assert len(captures) == 3
    for name, array in pattern_of(MASK.flip(1)).storage.items():
        pattern.storage[name].copy_(array)
    packed = packed_on(pattern)
    torch.testing.assert_close(product(packed, x), packed.to_dense() @ x)
    assert len(captures) == 4 and packed.pattern.to_mask().equal(MASK.flip(1))


def test_refusals_are_said_again(captures):
    packed, x = packed_on(pattern_of()), torch.randn(4, 5, dtype=torch.float64)
    product(packed, x)
    for _ in range(2):
        with pytest.raises(DataError, match="'j' is 4 long, but 3 in operand 1"):
            product(packed, x[1:])
        with pytest.raises(DataError, match="out_dtype is a dtype"):
            product(packed, x, out_dtype=["float64"])


def test_the_error_has_its_own_line(captures):
    packed, x = packed_on(pattern_of()), torch.randn(4, 5, dtype=torch.float64)
    made = [call.Call("ij,jd->id", (packed, x), ("here.py", line)).pieces[""][0].location for line in (1, 2, 1)]
    assert made == [("here.py", 1), ("here.py", 2), ("here.py", 1)] and len(captures) == 2


def test_few_are_kept(captures, monkeypatch):
    monkeypatch.setattr(fitted, "_MOST", 2)
    packed, x = packed_on(pattern_of()), torch.randn(4, 5, dtype=torch.float64)
    for width in (1, 2, 3, 3, 1):
        product(packed, x[:, :width])
    assert len(captures) == 4 and len(packed.pattern._kept[fitted._KEY]) == 2
