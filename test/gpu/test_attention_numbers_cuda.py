# SPDX-License-Identifier: Apache-2.0
"""The numbers of attention on tensor cores: as near to float64 as dense attention of torch, and always the same."""

import poison
import pytest
import torch

import lacis

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)


def drawn(depth, dtype=torch.bfloat16, heads=4, tokens=1024):
    torch.manual_seed(depth)
    q, k, v, slope = (torch.randn(2, heads, tokens, depth, device="cuda").to(dtype) for _ in range(4))
    return [x.requires_grad_() for x in (q, k, v)], slope


def run(attend, inputs, slope):
    out = attend(*inputs)
    return [out.detach(), *torch.autograd.grad(out, inputs, slope)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("depth", [64, 128])
@pytest.mark.parametrize("block", [16, 32, 64, 128])
@pytest.mark.parametrize("causal", [False, True])
def test_errors_are_those_of_dense_attention(causal, block, depth, dtype):
    """At most 1.2 times those of `scaled_dot_product_attention`, of the output and of each gradient."""
    inputs, slope = drawn(depth, dtype)
    pattern = lacis.Causal(block=block) if causal else torch.ones(1, 1024 // block, 1024 // block, dtype=torch.bool)
    dense = lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    wide = [x.detach().double().requires_grad_() for x in inputs]
    want = run(dense, wide, slope.double())
    theirs, ours = run(dense, inputs, slope), run(lambda *given: lacis.attention(*given, pattern), inputs, slope)
    for name, exact, their, our in zip(("out", "q", "k", "v"), want, theirs, ours):
        most = 1.2 * (their.double() - exact).norm()
        assert (our.double() - exact).norm() <= most, name


@pytest.mark.parametrize("block", [64, 32, 16])
@pytest.mark.parametrize("depth", [64, 128])
def test_a_thousand_runs_are_equal(depth, block):
    """Output and gradients, from full and flushed caches, beside another stream's work."""
    inputs, slope = drawn(depth)
    beside, other = torch.randn(2048, 2048, device="cuda"), torch.cuda.Stream()
    attend = lambda *given: lacis.attention(*given, lacis.BigBird(block=block))
    first = run(attend, inputs, slope)
    for n in range(1000):
        if n % 4 == 0:
            with torch.cuda.stream(other):
                beside @ beside
        if n % 16 == 0:
            poison.flush_cache()
        assert all(map(torch.equal, first, run(attend, inputs, slope))), n
    other.synchronize()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("depth", [64, 128])
def test_numbers_that_are_none_stay_in_their_rows(depth, bad):
    """NaN or infinity in a query reaches its row, in a key those that see it, in a value also others of their tile."""
    inputs = [x.detach() for x in drawn(depth)[0]]
    attend = lambda *given: lacis.attention(*given, lacis.Causal(block=64))
    clean = attend(*inputs)
    for place, reached, others in ((0, slice(70, 71), 70), (1, slice(70, None), 70), (2, slice(70, None), 64)):
        given = [x.clone() if n == place else x for n, x in enumerate(inputs)]
        given[place][0, 0, 70] = bad
        found = attend(*given)
        assert not found[0, 0, reached].isfinite().any()
        same = torch.ones(clean.shape[:3], dtype=torch.bool, device="cuda")
        same[0, 0, reached] = same[0, 0, others : reached.stop] = False
        assert torch.equal(found[same], clean[same])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("depth", [64, 128])
def test_scores_of_any_size(depth, dtype):
    """Of 1e4 and more, which float16 does not hold, and where the largest come in the last block."""
    q, k, v = (x.detach() for x in drawn(depth, dtype)[0])
    late = k.clone()
    late[:, :, -64:] *= 16
    dense = torch.nn.functional.scaled_dot_product_attention
    for given in ((100 * q, 100 * k, v), (q, late, v)):
        found, want = lacis.attention(*given, lacis.Local(2048)), dense(*(x.double() for x in given))
        assert (found.double() - want).norm() <= 2**-7 * want.norm()
