# SPDX-License-Identifier: Apache-2.0
"""What changes scores is a part of the one kernel of attention on CPUs: numbers and gradients of dense float64."""

import pytest
import torch
from dense_attention import B, H, S, T, agree, dense, drawn, grid, tensors
from strategies import mostly_long
from test_attention_fused import gradients, ways  # noqa: F401

import lacis
from lacis.attentions.derivative import derivative
from lacis.attentions.layouts import Layout
from lacis.attentions.patterns import choose
from lacis.attentions.scores import Scores
from lacis.attentions.traced_scores import _by_torch, trace_scores

BOOLS = torch.rand(B, T, generator=torch.Generator().manual_seed(5)) < 0.7
DOCUMENTS = torch.arange(T).expand(B, T) // 4


def drawn_tensors(*shapes):
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]


# By name: shapes of tensors with gradients, the arguments, the change of dense scores, and what is kept.
CASES = {
    "bias": ([(H, S, T)], lambda x: {"bias": x}, lambda s, x: s + x, None),
    "bias of keys": ([(B, 1, 1, T)], lambda x: {"bias": x}, lambda s, x: s + x, None),
    "bias of queries": ([(H, S, 1)], lambda x: {"bias": x}, lambda s, x: s + x, None),
    "padding that is kept": ([], lambda: {"key_padding": BOOLS}, None, BOOLS[:, None, None]),
    "padding that is added": ([(B, T)], lambda x: {"key_padding": x}, lambda s, x: s + x[:, None, None], None),
    "slopes": (
        [(H,), (B, S)],
        lambda x, y: {"score": lambda s, b, h, i, j: torch.tanh(s / 2) * x[h] + y[b, i] * (i - j), "causal": True},
        lambda s, x, y: torch.tanh(s / 2) * x[:, None, None] + y[:, None, :, None] * (grid()[2] - grid()[3]),
        grid()[3] <= grid()[2],
    ),
    "documents": (
        [(H, 2, T)],
        lambda x: {
            "score": lambda s, b, h, i, j: torch.where(s > x[h, 1, j], s, x[h, 0, j]),
            "mask": lambda b, h, i, j: DOCUMENTS[b, i] == DOCUMENTS[b, j],
        },
        lambda s, x: torch.where(s > x[:, 1, None], s, x[:, 0, None]),
        (DOCUMENTS[:, :S, None] == DOCUMENTS[:, None])[:, None],
    ),
}
FORMATS = {"bsr": lacis.Bsr(8, 8), "csr": lacis.Csr}
QUICK = ("slopes", "bsr", 2)
ALL = mostly_long([QUICK, *((case, format, 2) for case in CASES for format in FORMATS), ("slopes", "csr", H)], QUICK)


@pytest.mark.parametrize("case, format, heads", ALL)
def test_changes_are_fused(case, format, heads, ways):  # noqa: F811
    shapes, how, change, keeps = CASES[case]
    extra = drawn_tensors(*shapes)
    kept = drawn(S, T)
    operands = [x.requires_grad_() for x in tensors(heads)]
    pattern = lacis.Pattern.from_mask(kept, FORMATS[format])
    found = lacis.attention(*operands, pattern, return_lse=True, **how(*extra))
    assert ways == [True]
    kept = kept if keeps is None else kept & keeps
    expected = dense(*operands, kept, None, None if change is None else lambda s: change(s, *extra))
    agree(found, expected, rtol=1e-12, atol=1e-12)
    every = [*operands, *extra]
    agree(gradients(found, every), gradients(expected, every), rtol=1e-11, atol=1e-11)


@pytest.mark.long
@pytest.mark.parametrize("heads", [1, 2, H])
@pytest.mark.parametrize("shape", [(H, S, T), (B, H, S, T)])
def test_patterns_of_heads_and_batches(shape, heads, ways):  # noqa: F811
    """Heads that have patterns of their own, with tensors of batch and head."""
    kept, (x, y) = drawn(*shape), drawn_tensors((B, T), (H, S, T))
    operands = [each.requires_grad_() for each in tensors(heads)]
    pattern = lacis.Pattern.from_mask(kept, lacis.Csf(len(shape)))
    found = lacis.attention(*operands, pattern, bias=y, key_padding=x, return_lse=True)
    expected = dense(*operands, kept, None, lambda s: s + y + x[:, None, None])
    agree(found, expected, rtol=1e-12, atol=1e-12)
    agree(gradients(found, [*operands, x, y]), gradients(expected, [*operands, x, y]), rtol=1e-11, atol=1e-11)
    assert ways == [True]


@pytest.mark.long
def test_layouts_of_heads_merge_the_batch(ways):  # noqa: F811
    layout = torch.rand(H, 3, 3, generator=torch.Generator().manual_seed(2)) < 0.6
    x, y = drawn_tensors((B, 12), (H,))
    operands = [each.requires_grad_() for each in tensors(q=12, k=12)]
    score = lambda s, b, h, i, j: s * y[h] + x[b, j]
    found = lacis.attention(*operands, layout, score=score, return_lse=True)
    kept = layout.repeat_interleave(4, 1).repeat_interleave(4, 2)
    expected = dense(*operands, kept, None, lambda s: s * y[:, None, None] + x[:, None, None])
    agree(found, expected, rtol=1e-12, atol=1e-12)
    agree(gradients(found, [*operands, x, y]), gradients(expected, [*operands, x, y]), rtol=1e-11, atol=1e-11)
    assert ways == [True]


@pytest.mark.long
def test_gradients_twice(ways):  # noqa: F811
    pattern = lacis.Pattern.from_mask(drawn(3, 4, density=0.7), lacis.Csr)
    shapes = [(1, 4, 3, 2), (1, 2, 4, 2), (1, 2, 4, 2), (4, 3, 4), (4,), (4,)]
    given = drawn_tensors(*shapes)

    def compute(q, k, v, bias, slopes, sink):
        score = lambda s, b, h, i, j: torch.tanh(s) * slopes[h]
        output, lse = lacis.attention(q, k, v, pattern, score=score, bias=bias, sink=sink, return_lse=True)
        return output, lse

    assert torch.autograd.gradcheck(compute, given) and torch.autograd.gradgradcheck(compute, given)
    assert all(ways)


@pytest.mark.long
def test_a_sink_takes_its_share(ways):  # noqa: F811
    kept, (sink,) = drawn(S, T), drawn_tensors((H,))
    operands = [x.requires_grad_() for x in tensors(dtype=torch.float32)]
    found = lacis.attention(*operands, lacis.Pattern.from_mask(kept, lacis.Bsr(4, 4)), sink=sink, return_lse=True)
    expected = dense(*operands, kept, sink=sink)
    agree(found, expected, rtol=1e-5, atol=1e-5)
    agree(gradients(found, [*operands, sink]), gradients(expected, [*operands, sink]), rtol=1e-5, atol=1e-5)
    assert ways == [True]


ONE, TWO = ("read", 0), ("read", 1)
BODIES = [
    ("sub", ("mul", ONE, TWO), ("neg", ONE)), ("div", ONE, ("add", TWO, ("number", 3.0))), ("exp", ONE), ("exp2", TWO),
    ("log", ("abs", ONE)), ("sqrt", ("abs", TWO)), ("tanh", ONE), ("erf", ONE), ("maximum", ONE, TWO),
    ("minimum", ONE, ("mul", TWO, TWO)), ("where", ("lt", ONE, TWO), ("mul", ONE, ONE), ("number", 1.0)),
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body[0])
def test_derivatives_are_those_of_autograd(body):
    leaves = [torch.linspace(-2, 2.1, 9, dtype=torch.float64).roll(n).requires_grad_() for n in (0, 4)]
    wanted = torch.autograd.grad(_by_torch(body, leaves, {}).sum(), leaves, allow_unused=True)
    for number, each in enumerate(wanted):
        found = derivative(body, number)
        assert (found is None) == (each is None)
        if found is not None:
            made = _by_torch(found, leaves, {}).expand(9)
            torch.testing.assert_close(made, each, rtol=1e-14, atol=1e-14)


def test_what_functions_read_is_no_copy_and_no_other_tensor():
    """Expanded axes have one element; a tensor that is made in the function is not the next one that is."""
    q, k, _ = tensors()
    layout = Layout(choose(lacis.Pattern.from_mask(drawn(S, T), lacis.Csr), q, k), q, k)
    traced = lambda **given: trace_scores(Scores((B, H, S, T), **given), layout, torch.float64)
    mask, kept = torch.randn(B, 1, S, T).expand(B, H, S, T), torch.ones(S, T).bool().expand(B, H, S, T)
    found = traced(bias=mask, masks=[lambda b, h, i, j: kept[b, h, i, j]])
    assert found.letters == (("b", "i", "j"), ("i", "j"))
    assert [tuple(x.shape) for x in found.operands] == [(B, S, T), (S, T)]
    slopes = torch.rand(H)
    found = traced(score=lambda s, b, h, i, j: s + (slopes * 2)[h] * (slopes * 3)[h])
    assert [x.tolist() for x in found.operands] == [(slopes * n).double().tolist() for n in (2, 3)]
