# SPDX-License-Identifier: Apache-2.0
"""Scores that read a table at places which follow from coordinates, as relative biases do: in the one kernel."""

import pytest
import torch

import lacis
from lacis.nn.watched import watching

HEADS, KEY_HEADS, TOKENS = 4, 2, 64
RULE = lacis.Causal(block=16)


def drawn(*sizes):
    return torch.randn(*sizes, dtype=torch.float64)


# A table, and what a score becomes of it.
SCORES = {
    "distance": (drawn(HEADS, 2 * TOKENS - 1), lambda s, t, h, i, j: s + t[h, i - j + TOKENS - 1]),
    "from the end": (drawn(HEADS, TOKENS), lambda s, t, h, i, j: s + t[h, i - j]),
    "clipped": (drawn(17, HEADS), lambda s, t, h, i, j: s * t[(i - j).clamp(-8, 8) + 8, h]),
    "of one head": (drawn(HEADS, TOKENS), lambda s, t, h, i, j: s + t[2, torch.abs(i - j)]),
    "quotients": (drawn(8, 4), lambda s, t, h, i, j: s + t[i // 8, j % 4]),
    "chosen": (drawn(TOKENS), lambda s, t, h, i, j: s + t[torch.where(j <= i, i - j, 0)]),
    "diagonal": (drawn(TOKENS, TOKENS), lambda s, t, h, i, j: s + t[i, i]),
    "bool": (drawn(HEADS, TOKENS) > 0, lambda s, t, h, i, j: torch.where(t[h, i - j], s, s * 0.5)),
}  # fmt: skip


def attend(name, dtype, **options):
    """The output, and the gradients by q, k, v and the table."""
    table, change = SCORES[name]
    torch.manual_seed(1)
    inputs = [torch.randn(2, heads, TOKENS, 8) for heads in (HEADS, KEY_HEADS, KEY_HEADS)]
    leaves = [x.to(dtype).requires_grad_() for x in inputs]
    own = table if table.dtype == torch.bool else table.to(dtype).requires_grad_()
    score = lambda s, b, h, i, j: change(s, own, h, i, j)
    out = lacis.attention(*leaves, RULE, score=score, **options)
    return out, torch.autograd.grad(out.square().sum(), [*leaves, own] if own.requires_grad else leaves)


@pytest.mark.long
@pytest.mark.parametrize("name", SCORES)
def test_a_table_is_read_in_the_one_kernel(name):
    """By torch's own operators in float64 the same."""
    with watching() as seen:
        got = attend(name, torch.float32)
    assert [list(each) for each in seen] == [["forward", "grad_query", "grad_key_value"]]
    want = attend(name, torch.float64, target="eager")
    torch.testing.assert_close(got[0].double(), want[0], rtol=1e-4, atol=1e-5)
    for one, other in zip(got[1], want[1]):
        torch.testing.assert_close(one.double(), other, rtol=1e-3, atol=1e-4)


@pytest.mark.long
def test_second_derivatives():
    def run(t, q):
        score = lambda s, b, h, i, j: s + t[h, i - j]
        return lacis.attention(q, q, q, lacis.Causal(block=4), score=score)

    torch.manual_seed(0)
    given = drawn(1, 8).requires_grad_(), drawn(1, 1, 8, 4).requires_grad_()
    assert torch.autograd.gradcheck(run, given) and torch.autograd.gradgradcheck(run, given)


@pytest.mark.long
@pytest.mark.parametrize(
    "place",
    [
        lambda i, j: torch.tensor([3, 5, 7, 1])[(i + j) % 4],  # of a tensor: not known before it is read
        lambda i, j: (i - j) // 4,  # below 0 a quotient is rounded otherwise
    ],
)
def test_other_places_are_read_statement_by_statement(place):
    torch.manual_seed(0)
    table, inputs = torch.randn(32), [torch.randn(1, 1, 32, 8) for _ in range(3)]
    i, j = torch.arange(32)[:, None], torch.arange(32)[None]
    with watching() as seen:
        got = lacis.attention(*inputs, lacis.Causal(block=8), score=lambda s, b, h, i, j: s + table[place(i, j)])
    assert not seen
    scores = inputs[0] @ inputs[1].mT / 8**0.5 + table[place(i, j)]
    scores = scores.masked_fill(j > i, -torch.inf)
    torch.testing.assert_close(got, scores.softmax(-1) @ inputs[2], rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_a_place_outside_of_the_table_is_refused():
    inputs, table = [torch.randn(1, 1, 32, 8) for _ in range(3)], torch.randn(16)
    with pytest.raises(lacis.DataError, match="index 16 is out of bounds"):
        lacis.attention(*inputs, lacis.Causal(block=8), score=lambda s, b, h, i, j: s + table[i - j])
