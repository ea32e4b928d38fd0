# SPDX-License-Identifier: Apache-2.0
"""Tensors of attention that are not contiguous are read where they lie; what no vector can address is copied."""

import pytest
import torch

import lacis

BATCH, HEADS, TOKENS, DEPTH = 2, 4, 128, 32
PATTERNS = {
    "fused": lacis.Causal(block=64),
    "statements": lacis.Pattern.from_mask(torch.ones(TOKENS, TOKENS).tril() != 0, lacis.Csr),
}


def tokens_first(*sizes):
    batch, heads, tokens, depth = sizes or (BATCH, HEADS, TOKENS, DEPTH)
    return [torch.randn(batch, tokens, heads, depth).transpose(1, 2) for _ in range(3)]


def side_by_side(*sizes):
    batch, heads, tokens, depth = sizes or (BATCH, HEADS, TOKENS, DEPTH)
    return [x.transpose(1, 2) for x in torch.randn(batch, tokens, 3, heads, depth).unbind(2)]


def fewer_heads_of_keys(*sizes):
    q, k, v = side_by_side(*sizes)
    return [q, k[:, ::2], v[:, 1::2]]


def expanded(*sizes):
    q, k, v = tokens_first(*sizes)
    return [q, k[:, :1].expand_as(q), v[:1].expand_as(q)]


def rows_at_odd_places(*sizes):
    batch, heads, tokens, depth = sizes or (BATCH, HEADS, TOKENS, DEPTH)
    return [torch.randn(batch, tokens, heads, depth + 1)[..., 1:].transpose(1, 2) for _ in range(3)]


READ = [tokens_first, side_by_side, fewer_heads_of_keys]
COPIED = [expanded, rows_at_odd_places]


def both(given, pattern, slope):
    """The output, its sums and gradients of what is given, and of copies of it."""
    for change in (lambda x: x, torch.Tensor.contiguous):
        leaves = [change(x).detach().requires_grad_() for x in given]
        out, lse = lacis.attention(*leaves, pattern, return_lse=True)
        yield [out, lse, *torch.autograd.grad(out, leaves, change(slope))]


def copies(call) -> list[str]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        call()
    return [event.name for event in seen.events() if event.name in ("aten::copy_", "aten::clone")]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("make", [*READ, *COPIED])
def test_strides(make, pattern):
    torch.manual_seed(0)
    assert all(map(torch.equal, *both(make(), PATTERNS[pattern], tokens_first()[0])))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("make", READ)
def test_nothing_is_copied(make, pattern):
    given, slope = [x.requires_grad_() for x in make()], tokens_first()[0]

    def run():
        out = lacis.attention(*given, PATTERNS[pattern])
        torch.autograd.grad(out, given, slope)

    run()
    assert copies(run) == []


def test_what_cannot_be_read_is_copied():
    given = rows_at_odd_places()
    assert len(copies(lambda: lacis.attention(*given, PATTERNS["fused"]))) == 3
