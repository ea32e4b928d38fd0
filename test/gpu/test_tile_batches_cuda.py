# SPDX-License-Identifier: Apache-2.0
"""Products of tiles with letters of a batch, and with vectors along the tokens, on a GPU, against float64."""

import pytest
import torch
from test_tile_orders_cuda import HOPPER, TARGETS, operands, poisoned
from test_tile_schedules_cuda import blocked, check

import lacis

pytestmark = pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
BLOCKS = [(128, 128), (64, 64), (32, 32), (16, 16)]
PRODUCTS = ("ij,hjb->hib", "ij,hbj->hbi", "ij,hjb->hbi", "ij,hbj->hib")
SCORES = ("ij,hid,hjd->hij", "ij,hdi,hdj->hij")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("expression", PRODUCTS)
def test_a_weight_shared_by_a_batch(expression, block, target):
    w = blocked(1000, 712, block, 0.6)
    packed = lacis.pack(w, lacis.Bsr(*block))
    for matrices, tokens in ((3, 264), (17, 40), (1, 8), (0, 8)):
        (x,) = operands(expression, {"i": 1000, "j": 712, "h": matrices, "b": tokens})
        kernel = lacis.compile(expression, packed, x, target=target)
        assert "lacis.mma" in kernel.asm["tiles"], kernel.remarks
        check(poisoned(kernel, packed, x), torch.einsum(expression, w.double(), x.double()), (matrices, tokens))


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("expression", PRODUCTS)
def test_gradients(expression, block):
    """That of the values is sampled, and summed over the batch; with few and with many rounds."""
    w = blocked(520, 392, block, 0.6)
    packed = lacis.pack(w, lacis.Bsr(*block))
    for matrices, tokens in ((3, 72), (24, 136)):
        (x,) = operands(expression, {"i": 520, "j": 392, "h": matrices, "b": tokens})
        values = packed.values.detach().requires_grad_()
        own, x = packed.with_values(values), x.requires_grad_()
        y = lacis.einsum(expression, own, x)
        grad = torch.randn_like(y)
        y.backward(grad)
        terms = expression.replace("->", ",").split(",")
        dx = torch.einsum(f"{terms[0]},{terms[2]}->{terms[1]}", w.double(), grad.double())
        dw = torch.einsum(f"{terms[2]},{terms[1]}->ij", grad.double(), x.detach().double())
        check(x.grad, dx, "of the dense operand")
        check(values.grad, packed.pattern.gather(dw), "of the values")
        sampled = f"ij,{terms[2]},{terms[1]}->ij"
        kernel = lacis.compile(sampled, packed.pattern, grad, x.detach())
        assert "lacis.mma" in kernel.asm["tiles"], kernel.remarks
        check(poisoned(kernel, packed.pattern, grad, x.detach()).values, packed.pattern.gather(dw), sampled)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("expression", SCORES)
def test_scores_of_each_head(expression, block, target):
    w = blocked(1000, 712, block, 0.6)
    pattern = lacis.pack(w, lacis.Bsr(*block)).pattern
    for heads, depth in ((3, 64), (8, 72), (1, 136)):
        factors = operands(expression, {"i": 1000, "j": 712, "h": heads, "d": depth})
        kernel = lacis.compile(expression, pattern, *factors, target=target)
        assert "lacis.mma" in kernel.asm["tiles"], kernel.remarks
        terms = ",".join(expression.partition("->")[0].split(",")[1:]) + "->hij"
        want = pattern.batched([heads], "h").gather(torch.einsum(terms, *(factor.double() for factor in factors)))
        got = poisoned(kernel, pattern, *factors).values
        check(got, want, (heads, depth))
        with torch.no_grad():  # the calls behind the first are ready
            assert all(torch.equal(kernel(pattern, *factors).values, got) for _ in range(3))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("expression", ("ij,bj->bi", "ij,jb->ib", "ij,hjb->hib"))
def test_vectors_along_the_tokens(expression, block, target):
    w = blocked(1000, 712, block, 0.6)
    packed = lacis.pack(w, lacis.Bsr(*block))
    (x,) = operands(expression, {"i": 1000, "j": 712, "h": 3, "b": 264})
    bias, scale = torch.randn(2, 264, device="cuda").bfloat16()
    after = lacis.Epilogue(bias=bias, scale=scale, activation="gelu", bias_axis="b")
    kernel = lacis.compile(expression, packed, x, epilogue=after, target=target)
    assert "lacis.mma" in kernel.asm["tiles"], kernel.remarks
    want = lacis.einsum(expression, packed, x, epilogue=after, target="eager")
    check(poisoned(kernel, packed, x), want.double(), expression)


def test_numbers_that_are_not_rounded():
    """Each thread stores its own elements, of the matrix that they are of."""
    w = blocked(520, 392, (64, 64), 0.6)
    packed = lacis.pack(w, lacis.Bsr(64, 64))
    for expression in PRODUCTS:
        (x,) = operands(expression, {"i": 520, "j": 392, "h": 3, "b": 72})
        kernel = lacis.compile(expression, packed, x, out_dtype=torch.float32)
        assert "lacis.mma" in kernel.asm["tiles"], kernel.remarks
        want = torch.einsum(expression, w.double(), x.double())
        assert (poisoned(kernel, packed, x).double() - want).norm() <= 2.0**-18 * want.norm()
