# SPDX-License-Identifier: Apache-2.0
"""`lacis.kernel`: a chain of statements on one pattern as one kernel."""

import math
import re

import pytest
import torch

import lacis
from lacis.runtime.kernels import compile_kernel


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


def test_half_types_are_rounded_once():
    q, k, v = operands(torch.bfloat16)
    mask = mask_of()
    found = attend(q, k, v, lacis.Pattern.from_mask(mask, lacis.Csr))
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), reference(q, k, v, mask), rtol=2**-7, atol=2**-7)


def test_duplicates_weigh_twice():
    q, k, v = operands(rows=3, columns=4)
    index = torch.tensor([[0, 0, 1, 0], [1, 3, 2, 1]])
    twice = lacis.pack(torch.sparse_coo_tensor(index, torch.ones(4, dtype=q.dtype), (3, 4)), lacis.Coo).pattern
    s = reference(q, k, torch.eye(4, dtype=q.dtype).expand(2, 4, 4), torch.ones(3, 4).bool())
    one = torch.ones(4, dtype=q.dtype)
    weight = torch.zeros(3, 4, dtype=q.dtype).index_put((index[0], index[1]), one, accumulate=True)
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


def test_one_loop_is_right():
    """Tiles that do not divide, masked entries inside of kept blocks, large scores; -inf that a loop meets first."""
    mask = mask_of()
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(8, 8))
    q, k, v = operands()
    kernel = attend.compile(q, k, v, pattern)
    assert str(kernel.steps).startswith('own("pattern", "roll")  # one loop over \'j0\'')
    torch.testing.assert_close(kernel(q, k, v, pattern), reference(q, k, v, mask), rtol=0, atol=1e-12)
    torch.testing.assert_close(kernel(200 * q, k, v, pattern), reference(200 * q, k, v, mask), rtol=0, atol=1e-12)
    apart = attend.compile(q, k, v, pattern, steps=[lacis.steps.Own("pattern", "nests")])
    assert "lacis.workspace" in apart.asm["loops"] and "lacis.rolled" not in apart.asm["loops"]
    torch.testing.assert_close(apart(q, k, v, pattern), kernel(q, k, v, pattern), rtol=0, atol=1e-12)


def _no_maximum(q, k, v, pattern):
    return lacis.einsum("hij,hje->hie", torch.exp(_s(pattern, q, k)), v) * 2


def _two_maxima(q, k, v, pattern):
    s = _s(pattern, q, k)
    return lacis.einsum("hij,hij,hje->hie", lacis.softmax(s, "j"), lacis.softmax(s, "j"), v)


def _not_linear(q, k, v, pattern):
    shares = lacis.softmax(_s(pattern, q, k), "j")
    return lacis.einsum("hij,hij,hje->hie", shares, shares, v)


def _other_statement(q, k, v, pattern):
    return lacis.einsum("hij,hje->hie", torch.tanh(lacis.softmax(_s(pattern, q, k), "j")), v) * 2


INSIDE = "i mod 8 : compressed<unique=false>, j mod 8 : singleton"
NESTED = f"(i, j) -> (i floordiv 8 : dense, j floordiv 8 : compressed, {INSIDE})"
NO_LOOP = {
    "own: a chain has no form 'push'; there are 'roll' and 'nests'": (attend._function, lacis.Csr),
    "two maxima, 'm' and 'm1', are no one state": (_two_maxima, lacis.Csr),
    "no statement takes the largest of what another made on the pattern, for exponentials below it": (
        _no_maximum,
        lacis.Csr,
    ),
    "is no sum from 0 on that is linear in 'p'": (_not_linear, lacis.Csr),
    "'a' is no statement of the loop": (_other_statement, lacis.Csr),
    "level 1 of the pattern has no positions of one row after another": (attend._function, lacis.Coo),
    "the levels below level 2 of the pattern are no dense tile": (attend._function, lacis.Format.parse(NESTED)),
    "the sum is over one axis of a pattern without bindings": (attend._function, lacis.Sell(4, 8)),
}


@pytest.mark.parametrize("message", NO_LOOP)
def test_what_is_no_loop(message):
    function, format = NO_LOOP[message]
    q, k, v = operands()
    own = lacis.steps.Own("pattern", "push" if "push" in message else "roll")
    with pytest.raises(lacis.CompileError, match=message) as raised:
        lacis.kernel(function).compile(q, k, v, lacis.Pattern.from_mask(mask_of(), format), steps=[own])
    assert "push" in message or "operand 'pattern' has no form 'roll': " in str(raised.value)


def test_text_that_is_no_loop():
    """What no function of Python's can say."""
    q, k, v = operands()
    own = lacis.steps.Own("pattern", "roll")
    text = attend.compile(q, k, v, lacis.Pattern.from_mask(mask_of(), lacis.Csr), steps=[own]).text
    empty = re.compile(r"tensor.empty\((%\w+), (%\w+)\) : tensor<\?x\?x10xf64>")
    any_size = empty.sub(r"tensor.empty(\1, \2, \1) : tensor<?x?x?xf64>", text).replace("x10xf64", "x?xf64")
    for other, message in (
        (
            text.replace("math.exp ", "math.tanh "),
            "depends on the maximum through more than the exponential of a difference",
        ),
        (any_size, "the size of 'e' is not compiled in, and 'a' has it in a tile"),
    ):
        with pytest.raises(lacis.CompileError, match=message):
            compile_kernel(other, "cpu")
