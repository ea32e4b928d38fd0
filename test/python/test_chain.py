# SPDX-License-Identifier: Apache-2.0
"""`lacis.kernel`: a chain of statements on one pattern as one kernel."""

import math

import pytest
import torch

import lacis
from lacis.runtime.chain import ChainKernel


@lacis.kernel
def attend(q, k, v, pattern):
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) * 0.25
    return lacis.einsum("hij,hje->hie", lacis.softmax(s, "j"), v)


def reference(q, k, v, mask, scale=0.25, change=lambda s: s):
    s = torch.einsum("hid,hjd->hij", q.double(), k.double()) * scale
    s = change(s).masked_fill(~mask, -math.inf)
    return torch.softmax(s, -1).nan_to_num(0) @ v.double()


def operands(dtype=torch.float64, heads=2, rows=37, columns=45):
    """Head sizes that no vector divides; a transposed view among them."""
    q = torch.randn(heads, 12, rows, dtype=dtype).transpose(1, 2)
    return q, torch.randn(heads, columns, 12, dtype=dtype), torch.randn(heads, columns, 10, dtype=dtype)


def mask_of(rows=37, columns=45):
    mask = torch.rand(rows, columns) < 0.2
    mask[5] = mask[36] = False
    return mask


FORMATS = [lacis.Csr, lacis.Bsr(8, 8), lacis.Coo]
MORE = [lacis.Ell, lacis.BlockedEll(8, 8), lacis.Csc, lacis.Dcsr]


@pytest.mark.parametrize("format", [*FORMATS, *(pytest.param(f, marks=pytest.mark.long) for f in MORE)])
def test_chain_is_attention(format):
    q, k, v = operands()
    mask = mask_of()
    found = attend(q, k, v, lacis.Pattern.from_mask(mask, format))
    torch.testing.assert_close(found, reference(q, k, v, mask), rtol=0, atol=1e-12)
    assert not found[:, 5].any()
    nothing = lacis.Pattern.from_mask(torch.zeros_like(mask), format)
    assert not attend(q, k, v, nothing).any()


def masked_by_places(s, h, i, j):
    return torch.where(j <= i + 3, s - 0.125 * (h + 1) * (i - j).abs(), -math.inf)


@pytest.mark.long
@pytest.mark.parametrize("format", FORMATS)
def test_functions_of_coordinates(format):
    """`map` in a function says what `PackedTensor.map` does to what einsum makes."""

    @lacis.kernel
    def attend_near(q, k, v, pattern):
        s = (lacis.einsum("ij,hid,hjd->hij", pattern, q, k) * 0.25).map(masked_by_places)
        return lacis.einsum("hij,hje->hie", lacis.softmax(s, "j"), v)

    (q, k, v), mask = operands(), mask_of()
    h, i, j = torch.meshgrid(*map(torch.arange, (2, 37, 45)), indexing="ij")
    change = lambda s: masked_by_places(s, h, i, j)
    expected = reference(q, k, v, mask, change=change)
    pattern = lacis.Pattern.from_mask(mask, format)
    torch.testing.assert_close(attend_near(q, k, v, pattern), expected, rtol=0, atol=1e-12)
    scores = lacis.einsum("ij,hid,hjd->hij", pattern, q, k, target="eager")
    shares = lacis.softmax(scores.with_values(scores.values * 0.25).map(masked_by_places), "j")
    torch.testing.assert_close(lacis.einsum("hij,hje->hie", shares, v, target="eager"), expected, rtol=0, atol=1e-12)


@pytest.mark.long
def test_half_types_are_rounded_once():
    q, k, v = operands(torch.bfloat16)
    mask = mask_of()
    found = attend(q, k, v, lacis.Pattern.from_mask(mask, lacis.Csr))
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), reference(q, k, v, mask), rtol=2**-7, atol=2**-7)


@pytest.mark.long
def test_duplicates_weigh_twice():
    q, k, v = operands(rows=3, columns=5)
    index = torch.tensor([[0, 0, 1, 0], [1, 3, 2, 1]])
    twice = lacis.pack(torch.sparse_coo_tensor(index, torch.ones(4, dtype=q.dtype), (3, 5)), lacis.Coo).pattern
    s = reference(q, k, torch.eye(5, dtype=q.dtype).expand(2, 5, 5), torch.ones(3, 5).bool())
    one = torch.ones(4, dtype=q.dtype)
    weight = torch.zeros(3, 5, dtype=q.dtype).index_put((index[0], index[1]), one, accumulate=True)
    wanted = (s * weight / (s * weight).sum(-1, keepdim=True)).nan_to_num(0) @ v
    torch.testing.assert_close(attend(q, k, v, twice), wanted, rtol=0, atol=1e-12)


def test_arithmetic_and_masks():
    """Scores are changed by numbers, a dense operand and torch.where; the result may stay on the pattern."""

    @lacis.kernel
    def shares(q, k, bias, pattern):
        s = 1.0 - lacis.einsum("ij,hid,hjd->hij", pattern, q, k) / 2
        s = torch.where((s > 3.0) | (s + bias < -1.0), -math.inf, torch.tanh(s) + bias)
        return lacis.softmax(s, "j")

    q, k, _ = operands()
    bias, mask = torch.randn(37, 45, dtype=torch.float64), mask_of()
    found = shares(q, k, bias, lacis.Pattern.from_mask(mask, lacis.Csr))
    assert isinstance(found, lacis.PackedTensor) and found.shape == (2, 37, 45)
    change = lambda s: torch.where(((1 - s) > 3) | ((1 - s) + bias < -1), -math.inf, torch.tanh(1 - s) + bias)
    eye = torch.eye(45, dtype=torch.float64).expand(2, 45, 45)
    torch.testing.assert_close(found.to_dense(), reference(q, k, eye, mask, 0.5, change), rtol=0, atol=1e-12)


def test_compiled_kernel_is_open():
    q, k, v = operands()
    pattern = lacis.Pattern.from_mask(mask_of(), lacis.Csr)
    kernel = attend.compile(q, k, v, pattern)
    assert "func.func @attend" in kernel.text and kernel.asm["loops"]
    again = attend.compile(q, k, v, pattern, steps=list(kernel.steps))
    assert again.asm["buffers"] == kernel.asm["buffers"]
    with pytest.raises(lacis.DataError, match="axis 'j' of 'v' has size 44 and 45"):
        kernel(q, k, v[:, :-1], pattern)
    with pytest.raises(lacis.ScheduleError, match="'q' is not torch.float64"):
        kernel(q.float(), k, v, pattern)
    with pytest.raises(lacis.ScheduleError, match="the pattern is .*; compile the chain for it"):
        kernel(q, k, v, lacis.Pattern.from_mask(mask_of(), lacis.Coo))
    with pytest.raises(lacis.DataError, match="takes q, k, v, pattern"):
        kernel(q, k, v)
    with pytest.raises(lacis.DataError, match="'q' has 2 axes; it takes \\[h, i, d\\]"):
        kernel(q[0], k, v, pattern)
    with pytest.raises(lacis.DataError, match="no gradient yet"):
        kernel(q.clone().requires_grad_(), k, v, pattern)
    with pytest.raises(NotImplementedError, match="called with its operands"):
        kernel.run([q], pattern, [1])


def test_operands_of_one_kind_are_fitted_once(monkeypatch):
    """Other numbers, another pattern and one whose arrays were written: the same kernel. Other sizes are looked at."""
    own, fits, fitted = lacis.kernel(attend._function), [], ChainKernel.fitted
    monkeypatch.setattr(ChainKernel, "fitted", lambda *given: fits.append(1) or fitted(*given))
    first = mask_of()
    pattern = lacis.Pattern.from_mask(first, lacis.Csr)
    for mask in (first, first.flip(1)):
        for name, array in lacis.Pattern.from_mask(mask, lacis.Csr).storage.items():
            pattern.storage[name].copy_(array)
        for each in (pattern, lacis.Pattern.from_mask(mask, lacis.Csr)):
            q, k, v = operands()
            torch.testing.assert_close(own(q, k, v, each), reference(q, k, v, mask), rtol=0, atol=1e-12)
    assert len(fits) == 1
    q, k, v = operands(rows=39, columns=43)
    mask = mask_of(39, 43)
    torch.testing.assert_close(own(q, k, v, lacis.Pattern.from_mask(mask, lacis.Csr)), reference(q, k, v, mask))
    assert len(fits) == 2
    with pytest.raises(lacis.DataError, match="no gradient yet"):
        own(q.requires_grad_(), k, v, lacis.Pattern.from_mask(mask, lacis.Csr))
    with pytest.raises(lacis.DataError, match="has size"):
        own(q, k, v[:, 1:], lacis.Pattern.from_mask(mask, lacis.Csr))


def _two(q, k, v, pattern):
    """The second product has the pattern's letters in another order, which is none; the third lacks the batch."""
    s = _s(pattern, q, k) + lacis.einsum("ji,hjd,hid->hji", pattern, q, k)
    return s + lacis.einsum("ij,gid,gjd->ij", pattern, q, k)


REFUSED = {
    "takes q, k, v, pattern; 3 are given": (attend._function, 3),
    "'torch.sort' cannot be traced": (lambda q, k, v, pattern: torch.sort(_s(pattern, q, k)), 4),
    "no 'sum'": (lambda q, k, v, pattern: _s(pattern, q, k).sum(), 4),
    "a branch looks at values": (lambda q, k, v, pattern: 1 if _s(pattern, q, k) > 0 else 2, 4),
    "a comparison is no number": (lambda q, k, v, pattern: _s(pattern, q, k) > 0, 4),
    "arguments alone": (lambda q, k, v, pattern: q * 2, 4),
    "with an operand \\[2, 45, 10\\]": (lambda q, k, v, pattern: _s(pattern, q, k) + v, 4),
    "a pattern in arithmetic": (lambda q, k, v, pattern: _s(pattern, q, k) + pattern, 4),
    "Tensor in arithmetic": (lambda q, k, v, pattern: _s(pattern, q, k) + torch.ones(1), 4),
    "to the same letters": (lambda q, k, v, pattern: _s(pattern, q, k) + lacis.einsum("hie,hje->hije", q, k), 4),
    "names 2 operands, 1 are": (lambda q, k, v, pattern: lacis.einsum("ij,hid->hi", q), 4),
    "give tensors as arguments": (lambda q, k, v, pattern: lacis.einsum("hid,d->hi", q, torch.ones(12)), 4),
    "names 2 axes of 3": (lambda q, k, v, pattern: lacis.einsum("hi,hjd->hij", q, k), 4),
    "'j' in .* is 'i' and 'j' before": (
        lambda q, k, v, pattern: lacis.einsum("hij,hji->hij", _s(pattern, q, k), _s(pattern, q, k)), 4),
    "'i' in .* has size 45 and 37": (lambda q, k, v, pattern: lacis.einsum("hid,hid->hi", q, k), 4),
    "samples on a pattern, whose letters": (lambda q, k, v, pattern: lacis.einsum("ij,hid,hjd->ijh", pattern, q, k), 4),
    "is on another pattern": (_two, 4),
    "has no values": (lambda q, k, v, pattern: lacis.einsum("ij->ij", pattern), 4),
    "spreads entries": (lambda q, k, v, pattern: lacis.einsum("hij,hje->hije", _s(pattern, q, k), v), 4),
    "no axis 'x'; there are h, i, j": (lambda q, k, v, pattern: lacis.softmax(_s(pattern, q, k), "x"), 4),
    "on the pattern is needed": (lambda q, k, v, pattern: lacis.softmax(q, "d"), 4),
    "the function of map answers float": (lambda q, k, v, pattern: _s(pattern, q, k).map(lambda s, *where: 1.0), 4),
    "map is of entries": (lambda q, k, v, pattern: lacis.einsum("hid,hid->hi", q, q).map(lambda s, *where: s), 4),
    "returns int": (lambda q, k, v, pattern: 3, 4),
    "no einsum samples": (lambda q, k, v, pattern: lacis.einsum("hid,hjd->hij", q, k), 4),
    "reads argument 'v'": (lambda q, k, v, pattern: _s(pattern, q, k), 4),
}  # fmt: skip


def _s(pattern, q, k):
    return lacis.einsum("ij,hid,hjd->hij", pattern, q, k)


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_traced(message):
    function, count = REFUSED[message]
    q, k, v = operands()
    given = [q, k, v, lacis.Pattern.from_mask(torch.ones(37, 45).bool(), lacis.Csr)][:count]
    with pytest.raises(lacis.DataError, match=message):
        lacis.kernel(function)(*given)


def test_operands_that_are_refused():
    q, k, v = operands()
    dense = torch.ones(37, 45, dtype=q.dtype)
    pattern = lacis.Pattern.from_mask(dense.bool(), lacis.Csr)
    for other, message in (
        (lacis.pack(dense, lacis.Csr), "'pattern' is packed; give its .pattern"),
        (3, "'pattern' is int"),
        (dense, "0 arguments are patterns"),
        (lacis.Pattern.from_mask(dense.bool(), lacis.Hyb(1, 1)), "is a sum of formats"),
    ):
        with pytest.raises(lacis.DataError, match=message):
            attend(q, k, v, other)
    with pytest.raises(lacis.DataError, match="'q' is torch.int64"):
        attend(q.long(), k, v, pattern)
    with pytest.raises(lacis.ScheduleError, match="list of records"):
        attend.compile(q, k, v, pattern, steps="parallel")
