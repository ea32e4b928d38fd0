# SPDX-License-Identifier: Apache-2.0
"""Attention on long sequences, and of more than 2^31 elements, against float64 head by head."""

import poison
import pytest
import torch

import lacis

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
TOKENS = 8192
MOST = {torch.bfloat16: 2**-7, torch.float32: 2**-16}
NAMES = ("out", "lse", "q", "k", "v")


def exact(q, k, v, slope, kept):
    """Output, log of the sums and gradients of one head [tokens, depth]."""
    leaves = [x.double().requires_grad_() for x in (q, k, v)]
    scores = (leaves[0] @ leaves[1].T * q.shape[-1] ** -0.5).masked_fill(~kept, -torch.inf)
    out = scores.softmax(-1) @ leaves[2]
    return [out.detach(), scores.logsumexp(-1).detach(), *torch.autograd.grad(out, leaves, slope.double())]


def check(found, operands, kept, heads, most):
    for head in heads:
        wanted = exact(*(x[0, head].detach() for x in operands), kept)
        for name, mine, right in zip(NAMES, found, wanted):
            assert (mine[0, head].double() - right).norm() <= most * right.norm(), (name, head)


def entries(rule) -> torch.Tensor:
    kept = rule.layout(1, TOKENS, TOKENS, rule.block)[0].cuda()
    kept = kept.repeat_interleave(rule.block, 0).repeat_interleave(rule.block, 1)
    i, j = torch.arange(TOKENS, device="cuda")[:, None], torch.arange(TOKENS, device="cuda")
    return kept if rule.mask is None else kept & rule.mask(0, 0, i, j)


@pytest.mark.parametrize("depth", [64, 128])
@pytest.mark.parametrize("rule", [lacis.Causal(block=128), lacis.Local(512), lacis.BigBird(attention="unidirectional")])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_long_sequences(dtype, rule, depth):
    operands = [torch.randn(1, 2, TOKENS, depth, device="cuda").to(dtype) for _ in range(4)]
    q, k, v = (x.requires_grad_() for x in operands[:3])
    with poison.allocations():
        out, lse = lacis.attention(q, k, v, rule, return_lse=True)
        found = [out, lse, *torch.autograd.grad(out, (q, k, v), operands[3])]
    check(found, operands, entries(rule), range(2), MOST[dtype])


@pytest.mark.parametrize(
    "dtype, rule, learns",
    [
        (torch.bfloat16, lacis.Local(64), True),
        (torch.float32, lacis.Local(3, block=8), False),  # statement by statement, whose scores are in memory
    ],
)
def test_more_than_2_31_elements(dtype, rule, learns):
    """Of each operand and result: their last heads lie where an offset of 32 bits does not reach."""
    heads, depth = 2**31 // (TOKENS * 128) + 2, 128
    if torch.cuda.mem_get_info()[0] < 60 * 2**30:
        pytest.skip("needs 60 GiB of free memory")
    count = 4 if learns else 3
    operands = [torch.empty(1, heads, TOKENS, depth, dtype=dtype, device="cuda").normal_() for _ in range(count)]
    assert operands[0].numel() > 2**31
    q, k, v = (x.requires_grad_(learns) for x in operands[:3])
    out, lse = lacis.attention(q, k, v, rule, return_lse=True)
    found = [out, lse, *(torch.autograd.grad(out, (q, k, v), operands[3]) if learns else ())]
    operands = operands if learns else [*operands, out]
    check(found, operands, entries(rule), (0, heads - 2, heads - 1), MOST[dtype])


@pytest.mark.parametrize("format", [lacis.Bsr(64, 64), lacis.Csr()])
def test_float32_as_asked(format, monkeypatch):
    """Products of float32 are IEEE's, and TF32's where torch may use them."""
    operands = [torch.randn(1, 2, 512, 64, device="cuda", requires_grad=True) for _ in range(3)]
    kept = torch.rand(8, 8, device="cuda").add(torch.eye(8, device="cuda")) > 0.5
    kept = kept.repeat_interleave(64, 0).repeat_interleave(64, 1)
    pattern, slope = lacis.Pattern.from_mask(kept, format), torch.randn(1, 2, 512, 64, device="cuda")
    for precision, most in (("ieee", 2**-18), ("tf32", 2**-9)):
        monkeypatch.setattr(torch.backends.cuda.matmul, "fp32_precision", precision)
        out, lse = lacis.attention(*operands, pattern, return_lse=True)
        found = [out, lse, *torch.autograd.grad(out, operands, slope)]
        monkeypatch.undo()
        check(found, [*operands, slope], kept, range(2), most)
