# SPDX-License-Identifier: Apache-2.0
"""Masks and scores are what torch makes of them: conditions as numbers, whole numbers, float64, gradients of pairs."""

import math

import pytest
import torch
from dense_attention import B, H, S, T, agree, dense, grid, tensors

import lacis
from lacis.attentions.exact import most_of_reads
from lacis.attentions.layouts import Layout
from lacis.attentions.patterns import choose
from lacis.attentions.scores import Scores
from lacis.attentions.traced_scores import trace_scores

EVERY = lacis.Pattern.from_mask(torch.ones(S, T, dtype=torch.bool), lacis.Csr)
FLAGS, NUMBERS = torch.arange(H) % 2 == 0, torch.arange(20) % 7
BITS = {
    "a condition times a number": lambda s, b, h, i, j: s + (i > j) * 0.5,
    "a score times a condition": lambda s, b, h, i, j: s * (i > j),
    "a flag": lambda s, b, h, i, j: s * FLAGS[h] + FLAGS[h],
    "equal conditions": lambda s, b, h, i, j: torch.where((i > 3) == (j > 3), s, -s),
    "a constant": lambda s, b, h, i, j: torch.where((i >= j) & True | False, s, 2 * s),
    "a flag that is one": lambda s, b, h, i, j: torch.where(FLAGS[h] == 1, s, -s),
    "a choice of conditions": lambda s, b, h, i, j: torch.where(torch.where(i > 3, j > i, FLAGS[h]), s, -s),
    "a choice of constants": lambda s, b, h, i, j: torch.where(torch.where(j > 2, True, False), s, -s),
    "words of numbers": lambda s, b, h, i, j: torch.where(torch.logical_and(i, torch.logical_not(j)), s, -s),
    "bits of numbers": lambda s, b, h, i, j: torch.where((i & j) == 0, s, -s),
    "turned bits": lambda s, b, h, i, j: torch.where(~i < -3, s, -s),
}


def check(score, target, **operands):
    inputs = tensors(dtype=torch.float32)
    found = lacis.attention(*inputs, EVERY, score=score, return_lse=True, target=target)
    b, h, i, j = torch.broadcast_tensors(*grid())
    change = lambda s: score(s, b, h, i, j)
    agree(found, dense(*inputs, EVERY.to_mask(), change=change), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["eager", pytest.param("auto", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", BITS)
def test_conditions_are_numbers_where_torch_has_them_so(name, target):
    check(BITS[name], target)


def traced(score, length=9, wide=torch.float32):
    q = k = torch.zeros(1, 1, length, 4, dtype=wide)
    layout = Layout(choose(torch.ones(1, 1, 1, dtype=torch.bool), q, k), q, k)
    return trace_scores(Scores((1, 1, length, length), score, (), None, None), layout, wide)


TIMES = 1.7e9 + torch.arange(20, dtype=torch.float64)
HUNDRED, LARGE, SMALL = torch.full((20,), 100, dtype=torch.int8), torch.arange(20) + 2**23, torch.arange(20)
AS_TORCH = {
    "times of float64": lambda s, b, h, i, j: torch.where(TIMES[j] <= TIMES[i], s, -s),
    "their distance": lambda s, b, h, i, j: s - 0.1 * (TIMES[i] - TIMES[j]).abs(),
    "numbers that begin again": lambda s, b, h, i, j: torch.where(HUNDRED[i] + HUNDRED[j] < 0, s, -s),
    "numbers beyond float32": lambda s, b, h, i, j: torch.where(LARGE[i] * 16 + 1 > LARGE[j] * 16, s, -s),
}
IN_KERNELS = {
    "slopes of float64": lambda s, b, h, i, j: s - TIMES[h] * (i - j),
    "documents": lambda s, b, h, i, j: torch.where(NUMBERS[i] == NUMBERS[j], s, -math.inf),
    "small products": lambda s, b, h, i, j: torch.where(SMALL[i] * 16 + 1 > SMALL[j] * 16, s, -s),
}


@pytest.mark.parametrize("target", ["eager", pytest.param("auto", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", AS_TORCH)
def test_what_float32_has_not_is_no_kernel(name, target):
    assert traced(AS_TORCH[name]) is None
    check(AS_TORCH[name], target)


@pytest.mark.parametrize("name", IN_KERNELS)
def test_what_float32_has_is_one(name):
    assert traced(IN_KERNELS[name]) is not None


def test_the_largest_of_a_tensor_decides():
    """One trace serves tensors of small numbers; those of larger ones are no kernel."""
    score = lambda numbers: lambda s, b, h, i, j: torch.where(numbers[i] * 1000 > numbers[j], s, -s)
    given = torch.arange(20)
    assert traced(score(given)) is not None and traced(score(given * 2000)) is None
    given += 2**20
    assert traced(score(given)) is None


def test_bounds_of_what_is_read():
    lengths, less = (("i", 8), ("j", 8)), ("lt", ("mul", ("read", 1), ("number", 16)), ("index", "j"))
    assert most_of_reads(less, lengths, (torch.int64,), torch.float32) == 2**20
    assert most_of_reads(less, lengths, (torch.int8,), torch.float32) == 4  # 8 * 16 is no int8
    assert most_of_reads(less, lengths, (torch.float32,), torch.float32) == 2**24
    assert most_of_reads(less, lengths, (torch.float64,), torch.float32) is None
    assert most_of_reads(less, lengths, (torch.float64,), torch.float64) == 2**24


PAIRS = {
    "a factor": lambda w: lambda s, b, h, i, j: s * w[i, j],
    "a factor of each head": lambda w: lambda s, b, h, i, j: torch.tanh(s * w[i, j]) + w[i, j],
    "a cap": lambda w: lambda s, b, h, i, j: 20 * torch.tanh((s + w[i, j]) / 20),
    "one side": lambda w: lambda s, b, h, i, j: torch.where(s > 0, s + w[i, j], s),
}


@pytest.mark.long
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("format", [lacis.Csr, lacis.Bsr(4, 4), lacis.Coo])
def test_gradients_of_pairs_that_follow_the_score(name, format):
    """The gradient reads the score twice at an entry, where it is one product."""
    inputs = [x.requires_grad_() for x in tensors(k=12)]
    weight = torch.randn(S, 12, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(S, 12) < 0.7
    found = lacis.attention(*inputs, lacis.Pattern.from_mask(mask, format), score=PAIRS[name](weight))
    b, h, i, j = torch.broadcast_tensors(*grid(k=12))
    mask = lacis.Pattern.from_mask(mask, format).to_mask()
    expected = dense(*inputs, mask, change=lambda s: PAIRS[name](weight)(s, b, h, i, j))[0]
    slope = torch.randn(B, H, S, found.shape[-1], dtype=torch.float64)
    agree([found], [expected])
    agree(*(torch.autograd.grad(y, [*inputs, weight], slope) for y in (found, expected)))


@pytest.mark.long
def test_a_bias_of_a_class_of_its_own():
    class Own(torch.Tensor):
        pass

    inputs = [x.requires_grad_() for x in tensors()]
    bias = torch.randn(S, T, dtype=torch.float64)
    found, expected = (lacis.attention(*inputs, EVERY, bias=x) for x in (bias.as_subclass(Own), bias))
    agree(*(torch.autograd.grad(y.sum(), inputs) for y in (found, expected)))


class Shown(lacis.PatternRule):
    """Says that its fields are all, one of which is a tensor, or private."""

    block, pure = 4, True

    def __init__(self, shown, width=0):
        self.shown, self._width = shown, width

    def layout(self, heads, q, k, block):
        rows, columns = self.grid(q, k, block)
        near = (torch.arange(rows)[:, None] - torch.arange(columns)).abs() <= self._width
        return (near if self.shown is None else near & self.shown)[None]


def test_rules_of_tensors_and_private_fields_are_told_apart():
    q, k, _ = tensors(q=160, k=160)
    of = lambda rule: choose(rule, q, k).pattern.to_mask()
    one, other = torch.ones(40, 40, dtype=torch.bool), torch.eye(40, dtype=torch.bool)
    other[20, 20] = False
    rule = Shown(one)
    assert not torch.equal(of(rule), of(Shown(other))) and not torch.equal(of(Shown(None, 1)), of(Shown(None, 3)))
    before = of(rule)
    one[3] = False
    assert not torch.equal(of(rule), before)


@pytest.mark.parametrize("rule", [lacis.Documents([4, 5]), lacis.Local(2, block=4), EVERY])
def test_training_after_inference_mode(rule):
    """By statements, which read what was made of a pattern."""
    inputs = tensors(k=S) if rule is not EVERY else tensors()
    with torch.inference_mode():
        expected = lacis.attention(*inputs, rule, score=lambda s, b, h, i, j: s.sin(), target="eager")
    inputs = [x.requires_grad_() for x in inputs]
    found = lacis.attention(*inputs, rule, score=lambda s, b, h, i, j: s.sin(), target="eager")
    found.sum().backward()
    torch.testing.assert_close(found.detach(), expected.clone())
