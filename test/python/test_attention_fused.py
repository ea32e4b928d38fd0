# SPDX-License-Identifier: Apache-2.0
"""`lacis.attention` on CPUs is one kernel where a chain can say it, and statements elsewhere: the same numbers."""

import importlib
import itertools

import pytest
import torch
from dense_attention import H, S, T, agree, dense, drawn, grid, tensors
from strategies import mostly_long

import lacis
from lacis.attentions import fused

attention = importlib.import_module("lacis.attentions.attention")
BLOCKS = lacis.Bsr(4, 4)
CASES = {
    "plain": ({}, lambda b, h, i, j: j >= 0),
    "causal": ({"causal": True}, lambda b, h, i, j: j <= i),
    "window": ({"causal": True, "window": (4, 2), "scale": 0.3}, lambda b, h, i, j: (j <= i) & (i - j <= 4)),
    "function": (
        {"mask": lambda b, h, i, j: ((i + j) % 2 == h % 2) | ((b + i // 4 > 0) & ~(abs(i - j) > 3))},
        lambda b, h, i, j: ((i + j) % 2 == h % 2) | ((b + i // 4 > 0) & ~((i - j).abs() > 3)),
    ),
}


@pytest.fixture
def ways(monkeypatch):
    """Of each call: was it one kernel?"""
    found = []

    def noted(*given):
        result = fused.together(*given)
        found.append(result is not None)
        return result

    monkeypatch.setattr(attention, "together", noted)
    return found


def gradients(results, operands):
    output, lse = results
    weight = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).reshape(output.shape)
    sums = torch.where(lse.isinf(), 0, lse).double() * weight.sum(-1)
    return torch.autograd.grad((output.double() * weight).sum() + sums.sum(), operands)


FORMATS = {"csr": lacis.Csr, "bsr": BLOCKS, "coo": lacis.Coo}
SINGLE, DOUBLE = (torch.float32, 1e-5), (torch.float64, 1e-12)
QUICK = ("plain", "bsr", SINGLE)  # the kernels of test_attention
ALL = mostly_long([QUICK, *((*each, DOUBLE) for each in itertools.product(CASES, FORMATS))], QUICK)


@pytest.mark.parametrize("heads", mostly_long([1, H], H))
@pytest.mark.parametrize("case, format, numbers", ALL)
def test_one_kernel_is_attention(case, format, numbers, heads, ways):
    """Forward and backward; blocks that do not divide the lengths, a row without entries, heads that share keys."""
    (how, keeps), (dtype, tolerance) = CASES[case], numbers
    kept = drawn(S, T)
    pattern = lacis.Pattern.from_mask(kept, FORMATS[format])
    operands = [x.requires_grad_() for x in tensors(heads, dtype=dtype)]
    copies = [x.detach().double().requires_grad_() for x in operands]
    found = lacis.attention(*operands, pattern, return_lse=True, **how)
    expected = dense(*copies, kept & keeps(*grid()), how.get("scale"))
    assert ways == [True]
    agree(found, expected, rtol=tolerance, atol=tolerance)
    assert not found[0][:, :, 1].any() and bool(found[1][:, :, 1].isneginf().all())
    agree(gradients(found, operands), gradients(expected, copies), rtol=tolerance, atol=4 * tolerance)


@pytest.mark.long
def test_a_function_of_positions_is_a_mask(ways):
    kept, (how, keeps) = drawn(S, T), CASES["function"]
    operands = tensors(dtype=torch.float32)
    found = lacis.attention(*operands, lacis.Pattern.from_mask(kept, BLOCKS), return_lse=True, **how)
    assert ways == [True]
    agree(found, dense(*operands, kept & keeps(*grid())), rtol=1e-5, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("asked", range(3))
def test_gradients_of_one_operand(asked, ways):
    kept = drawn(S, T)
    operands = tensors(dtype=torch.float32)
    operands[asked].requires_grad_()
    found = lacis.attention(*operands, lacis.Pattern.from_mask(kept, BLOCKS), return_lse=True)
    copies = [x.detach().double() for x in operands]
    copies[asked].requires_grad_()
    wanted = gradients(dense(*copies, kept), copies[asked])
    assert ways == [True]
    agree(gradients(found, operands[asked]), wanted, rtol=1e-5, atol=1e-5)


def test_autograd_is_asked_where_it_records(ways, monkeypatch):
    """A call of which nothing takes part in autograd goes past it, to the same kernel."""
    asked, apply = [], fused.Fused.apply
    monkeypatch.setattr(fused.Fused, "apply", lambda *given: asked.append(1) or apply(*given))
    operands, kept = tensors(dtype=torch.float32), drawn(S, T)
    pattern = lacis.Pattern.from_mask(kept, BLOCKS)
    plain = lacis.attention(*operands, pattern)
    operands[2].requires_grad_()
    with torch.no_grad():
        silent = lacis.attention(*operands, pattern)
    assert not asked and not plain.requires_grad and not silent.requires_grad
    recorded = lacis.attention(*operands, pattern)
    assert asked == [1] and recorded.requires_grad and ways == [True] * 3
    agree((plain, plain), dense(*operands, kept)[:1] * 2, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(torch.stack([silent, recorded]), torch.stack([plain, plain]), rtol=0, atol=0)


def test_nothing_is_stored(ways):
    operands = [x.requires_grad_() for x in tensors(dtype=torch.float32)]
    pattern = lacis.Pattern.from_mask(torch.zeros(S, T, dtype=torch.bool), BLOCKS)
    output, lse = lacis.attention(*operands, pattern, return_lse=True)
    assert ways == [True] and not output.any() and bool(lse.isneginf().all())
    assert not any(x.any() for x in gradients((output, lse), operands))
    nan = lacis.attention(*operands, pattern, empty="nan")
    assert bool(nan.isnan().all())


@pytest.mark.long
@pytest.mark.parametrize(
    "dtype, tolerance", mostly_long([(torch.bfloat16, 1e-2), (torch.float16, 2e-3)], (torch.bfloat16, 1e-2))
)
def test_half_types_are_computed_in_float32(dtype, tolerance, ways):
    kept = drawn(S, T)
    operands = [x.transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for x in tensors(2, dtype=dtype)]
    output, lse = lacis.attention(*operands, lacis.Pattern.from_mask(kept, BLOCKS), return_lse=True)
    assert ways == [True] and output.dtype == dtype and lse.dtype == torch.float32
    copies = [x.detach().double().requires_grad_() for x in operands]
    expected = dense(*copies, kept)
    agree((output, lse), expected, rtol=tolerance, atol=tolerance)
    agree(gradients((output, lse), operands), gradients(expected, copies), rtol=tolerance, atol=2 * tolerance)


@pytest.mark.long
def test_gradients_twice(ways):
    pattern = lacis.Pattern.from_mask(drawn(3, 4, density=0.7), lacis.Csr)
    operands = [torch.randn(1, 2, n, 2, dtype=torch.float64, requires_grad=True) for n in (3, 4, 4)]

    def compute(q, k, v):
        output, lse = lacis.attention(q, k, v, pattern, causal=True, return_lse=True)
        return output, torch.where(lse.isinf(), 0, lse)

    assert torch.autograd.gradcheck(compute, operands) and torch.autograd.gradgradcheck(compute, operands)
    assert all(ways)


@pytest.mark.long
def test_rules_and_patterns_of_heads(ways):
    operands = tensors(q=12, k=12)
    b, h, i, j = grid(12, 12)
    agree(lacis.attention(*operands, lacis.Causal(block=4), return_lse=True), dense(*operands, j <= i))
    kept = drawn(H, S, T)
    pattern = lacis.Pattern.from_mask(kept, lacis.Csf(3))
    agree(lacis.attention(*tensors(), pattern, return_lse=True), dense(*tensors(), kept))
    assert ways == [True, True]


@pytest.mark.long
def test_a_mask_that_clamps(ways):
    """Larger and smaller of whole numbers are whole."""
    mask, operands = lambda b, h, i, j: (i - j).clamp(-2, 2) >= torch.minimum(i, j) % 3 - 1, tensors()
    kept = drawn(S, T)
    pattern = lacis.Pattern.from_mask(kept, BLOCKS)
    found = lacis.attention(*operands, pattern, mask=mask, return_lse=True)
    agree(found, dense(*operands, kept & mask(*grid(S, T))))
    assert ways == [True]


TABLE = torch.rand(S + T) < 0.5
WEIGHTS = torch.linspace(-1, 1, H, dtype=torch.float64)
STATEMENTS = {
    "a tensor read elsewhere": {"mask": lambda b, h, i, j: TABLE[(i - j) // 2]},
    "a tensor of no axes": {"score": lambda s, b, h, i, j: s * WEIGHTS[0]},
    "a bias that is one number": {"bias": torch.ones(1)},
    "whole numbers that float32 has not": {"score": lambda s, b, h, i, j: s + LARGE[j]},
    "a mask of fractions": {"mask": lambda b, h, i, j: j <= 0.3 * i},
    "a mask of large numbers": {"mask": lambda b, h, i, j: (i * 3**14 + j) % 2 == 0},
    "a remainder by no number": {"mask": lambda b, h, i, j: (i + 1) % (j + 1) == 0},
    "a remainder of a score": {"score": lambda s, b, h, i, j: s % 2},
    "a score that is none": {"score": lambda s, b, h, i, j: WEIGHTS[h]},
    "eager": {"target": "eager"},
}
LARGE = torch.full((T,), 2**24 + 1)


class Asked(Exception):
    """Ends a call where it is known which way it takes."""


@pytest.fixture
def asked(monkeypatch):
    def ask(*given):
        raise Asked(fused.together(*given) is not None)

    monkeypatch.setattr(attention, "together", ask)


@pytest.mark.parametrize("case", STATEMENTS)
def test_what_is_left_to_statements(case, asked):
    """The numbers are those of other tests."""
    how = STATEMENTS[case]
    with pytest.raises(Asked, match="False"):
        lacis.attention(*tensors(dtype=torch.float32), lacis.Pattern.from_mask(drawn(S, T), BLOCKS), **how)


def test_numbers_that_change_are_left_to_statements(asked, monkeypatch):
    operands, pattern = tensors(dtype=torch.float32), lacis.Pattern.from_mask(drawn(S, T), BLOCKS)
    monkeypatch.setattr(fused, "_ALIKE", 1)
    monkeypatch.setattr(fused, "_KNOWN", {})
    for how, one in (({}, True), ({"scale": 0.77}, False), ({"window": 3}, True), ({"window": 4}, False), ({}, True)):
        with pytest.raises(Asked, match=str(one)):
            lacis.attention(*operands, pattern, **how)


@pytest.mark.long
@pytest.mark.parametrize("format, fused", [(lacis.Hyb(1, 1), False), (lacis.Bitmap(3, 3), True)], ids=["sum", "bitmap"])
def test_formats_without_lists_of_rows(format, fused, ways):
    """Another format is walked by a copy of its index in rows; a sum of formats is left to statements."""
    operands, kept = [x.requires_grad_() for x in tensors()], drawn(S, T)
    pattern = lacis.Pattern.from_mask(kept, format)
    for _ in range(2):  # the second call finds the copy of the first
        found, expected = lacis.attention(*operands, pattern, return_lse=True), dense(*operands, kept)
        agree(found, expected)
        agree(gradients(found, operands), gradients(expected, operands))
    assert ways == [fused, fused]


@pytest.mark.long
def test_a_pattern_that_changes_in_place_is_walked_anew(ways):
    """Columns are made again of arrays into which others were written."""
    operands = [x.requires_grad_() for x in tensors(dtype=torch.float32)]
    first, second = drawn(S, T), drawn(S, T)
    second[:] = first.flip(1)
    pattern, other = (lacis.Pattern.from_mask(kept, lacis.Csr) for kept in (first, second))
    for kept in (first, second):
        found = lacis.attention(*operands, pattern, return_lse=True)
        wanted = gradients(dense(*operands, kept), operands)
        agree(gradients(found, operands), wanted, rtol=1e-5, atol=1e-5)
        for name, array in pattern.storage.items():
            array.copy_(other.storage[name])
    assert ways == [True, True]


@pytest.mark.long
def test_both_products_of_a_gradient_are_vectors():
    """Two statements that add up at the same entry: each sum is a vector, with tails."""
    q, k, v = (x.flatten(0, 1) for x in tensors(dtype=torch.float32))
    lse, delta = torch.zeros(q.shape[:2]), torch.randn(q.shape[:2])
    arrived, kept = torch.randn(*q.shape[:2], v.shape[-1]), drawn(S, T)
    operands = q, k, v, lse, arrived, delta, lacis.Pattern.from_mask(kept, lacis.Csr).batched([len(q)], "h")

    @lacis.kernel
    def of_scores(q, k, v, lse, arrived, delta, pattern):
        s = lacis.einsum("hij,hid,hjd->hij", pattern, q, k) * 0.5
        of_shares = lacis.einsum("hij,hie,hje->hij", pattern, arrived, v)
        return torch.exp(s - lse.at("hi")) * (of_shares - delta.at("hi")) * 0.5

    kernel = of_scores.compile(*operands)
    assert {lacis.steps.Vectorize("d1", 32), lacis.steps.Vectorize("e1", 32)} <= set(kernel.steps)
    expected = torch.exp(q @ k.mT * 0.5) * (arrived @ v.mT - delta[..., None]) * 0.5
    torch.testing.assert_close(kernel(*operands).to_dense(), torch.where(kept, expected, 0), rtol=1e-5, atol=1e-5)
