# SPDX-License-Identifier: Apache-2.0
"""Dropout is a part of the one kernel of attention: the bits of statements, forward, backward and twice backward."""

import pytest
import torch
from dense_attention import H, S, T, agree, drawn, tensors
from strategies import mostly_long
from test_attention_fused import gradients, ways  # noqa: F401

import lacis
from lacis.capture.philox import random_bits

FORMATS = {"bsr": lacis.Bsr(8, 8), "csr": lacis.Csr, "coo": lacis.Coo}
QUICK = ("bsr", 2, {"causal": True}, torch.float64)
LONG = [
    ("csr", H, {}, torch.float32),
    ("coo", 1, {"window": 3}, torch.float64),
    ("bsr", H, {"score": lambda s, b, h, i, j: s + h * (i - j)}, torch.float64),
]


@pytest.mark.parametrize("format, heads, how, dtype", mostly_long([QUICK, *LONG], QUICK))
def test_one_kernel_draws_the_bits_of_statements(format, heads, how, dtype, ways):  # noqa: F811
    operands = [x.requires_grad_() for x in tensors(heads, dtype=dtype)]
    pattern = lacis.Pattern.from_mask(drawn(S, T), FORMATS[format])
    how = {"dropout": 0.3, "seed": torch.tensor(2**40 + 7), "return_lse": True, **how}
    fused = lacis.attention(*operands, pattern, **how)
    plain = lacis.attention(*operands, pattern, target="eager", **how)
    assert ways == [True, False]
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {}
    agree(fused, plain, **tolerance)
    agree(gradients(fused, operands), gradients(plain, operands), **tolerance)


@pytest.mark.long
@pytest.mark.parametrize("lead", [(H,), (2, H)], ids=["heads", "batches"])
def test_patterns_of_heads_and_batches_have_their_own_bits(lead, ways):  # noqa: F811
    """Axes of batches and heads are one in a chain, or apart."""
    operands = [x.requires_grad_() for x in tensors(2)]
    pattern = lacis.Pattern.from_mask(drawn(*lead, S, T), lacis.Csf(len(lead) + 2))
    how = {"dropout": 0.5, "seed": 3, "return_lse": True}
    fused = lacis.attention(*operands, pattern, **how)
    plain = lacis.attention(*operands, pattern, target="eager", **how)
    agree(fused, plain)
    agree(gradients(fused, operands), gradients(plain, operands))


@pytest.mark.long
def test_second_derivatives_drop_the_same():
    operands = [x.requires_grad_() for x in tensors(2, q=4, k=5, batch=1)]
    pattern = lacis.Pattern.from_mask(drawn(4, 5), lacis.Csr)
    attend = lambda *given: lacis.attention(*given, pattern, dropout=0.3, seed=5)
    assert torch.autograd.gradcheck(attend, operands)
    assert torch.autograd.gradgradcheck(attend, operands)


def test_a_share_is_dropped_by_the_bits_of_its_place():
    """As many as the rate says, of neighbours that have nothing to do with each other."""
    place = torch.meshgrid(torch.arange(2), torch.arange(3), torch.arange(128), torch.arange(128), indexing="ij")
    kept = (random_bits(torch.tensor(11), *place) >= 0.25 * 2**32).double()
    assert abs(kept.mean() - 0.75) < 0.005
    others = [kept.roll((i, j), (-2, -1)) for i, j in ((0, 8), (8, 0), (8, 8), (0, 1))]
    for other in (*others, kept.mT, kept.flip(0)):
        assert abs(torch.corrcoef(torch.stack([kept.flatten(), other.flatten()]))[0, 1]) < 0.02
    bits = random_bits(torch.tensor(11), *place)
    assert len(bits.unique()) > 0.999 * bits.numel()
