# SPDX-License-Identifier: Apache-2.0
"""Chains of several results on a GPU, a nest for each statement: attention and the log of its sums."""

import math

import pytest
import torch

import lacis

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@lacis.kernel
def attend(q, k, v, pattern):
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) * 0.25
    return lacis.einsum("hij,hje->hie", lacis.softmax(s, "j"), v), lacis.logsumexp(s, "j")


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.bfloat16, 2**-7)])
@pytest.mark.parametrize("format", [lacis.Csr, lacis.Bsr(8, 8), lacis.Coo], ids=["csr", "bsr", "coo"])
def test_attention_and_its_sums(format, dtype, tolerance):
    """Rows without entries, lengths that no block divides, an empty pattern; the same bits each time."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(3, n, d, device="cuda", dtype=dtype) for n, d in ((37, 12), (45, 12), (45, 10)))
    mask = torch.rand(37, 45, device="cuda") < 0.2
    mask[5] = mask[36] = False
    pattern = lacis.Pattern.from_mask(mask, format)
    out, lse = attend(q, k, v, pattern)
    s = torch.einsum("hid,hjd->hij", q.double(), k.double()) * 0.25
    s = s.masked_fill(~mask, -math.inf)
    torch.testing.assert_close(
        out.double(), torch.softmax(s, -1).nan_to_num(0) @ v.double(), rtol=tolerance, atol=tolerance
    )
    torch.testing.assert_close(lse.double(), torch.logsumexp(s, -1), rtol=1e-5, atol=1e-5)
    assert out.dtype == dtype and lse.dtype == torch.float32 and lse[:, 5].isneginf().all()
    again = attend(q, k, v, pattern)
    assert torch.equal(out, again[0]) and torch.equal(lse, again[1])
    out, lse = attend(q, k, v, lacis.Pattern.from_mask(torch.zeros_like(mask), format))
    assert not out.any() and bool(lse.isneginf().all())
