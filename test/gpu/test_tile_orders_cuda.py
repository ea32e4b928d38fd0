# SPDX-License-Identifier: Apache-2.0
"""Products of tiles whose dense operands and outputs lie in any order, on a GPU, against float64."""

import dataclasses

import pytest
import torch
from test_tile_schedules_cuda import blocked, check

import lacis

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
pytestmark = pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
BLOCKS = [(64, 64), (128, 128), (32, 32), (16, 16), (8, 8), (128, 64), (32, 16)]
ORDERS = ("ij,jk->ik", "ij,kj->ik", "ij,jk->ki", "ij,ik->jk", "ij,ki->jk", "ij,ik->kj")
FACTORS = ("ij,ik,jk->ij", "ij,ki,jk->ij", "ij,ik,kj->ij")
TARGETS = ("auto", "cuda:sm_90")  # the latter without what is Hopper's alone


def operands(expression, sizes, dtype=torch.bfloat16):
    _, *terms = expression.partition("->")[0].split(",")
    return [torch.randn([sizes[letter] for letter in term], device="cuda").to(dtype) for term in terms]


def poisoned(kernel, *given):
    """Run where memory that was freed is NaN, three times, bit-equal; the second time from a flushed cache."""
    found = []
    for _ in range(3):
        torch.full((1 << 25,), float("nan"), device="cuda")  # 128 MB: more than the second-level cache
        with torch.no_grad():
            found.append(kernel(*given))
    numbers = [y if isinstance(y, torch.Tensor) else y.values for y in found]
    assert all(torch.equal(y, numbers[0]) for y in numbers)
    return found[0]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("expression", ORDERS)
def test_products(expression, block, target):
    for rows, columns, tokens in ((1000, 712, 8), (520, 1024, 1032), (1000, 712, 264)):
        w = blocked(rows, columns, block, 0.6)
        packed, sizes = lacis.pack(w, lacis.Bsr(*block)), {"i": rows, "j": columns, "k": tokens}
        (x,) = operands(expression, sizes)
        kernel = lacis.compile(expression, packed, x, target=target)
        assert "lacis.mma" in kernel.asm["tiles"], kernel.remarks
        check(poisoned(kernel, packed, x), torch.einsum(expression, w.double(), x.double()), tokens)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block", [block for block in BLOCKS if block != (8, 8)], ids=str)
@pytest.mark.parametrize("expression", FACTORS)
def test_sampled_products(expression, block, target):
    for depth in (8, 136, 1032):
        w = blocked(1000, 712, block, 0.6)
        packed, sizes = lacis.pack(w, lacis.Bsr(*block)), {"i": 1000, "j": 712, "k": depth}
        factors = operands(expression, sizes)
        kernel = lacis.compile(expression, packed.pattern, *factors, target=target)
        assert "lacis.mma" in kernel.asm["tiles"], kernel.remarks
        terms = ",".join(expression.partition("->")[0].split(",")[1:]) + "->ij"
        want = packed.pattern.gather(torch.einsum(terms, *(factor.double() for factor in factors)))
        check(poisoned(kernel, packed.pattern, *factors).values, want, depth)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block", [(64, 64), (128, 128), (16, 16)], ids=str)
@pytest.mark.parametrize("expression", ("ij,id,jd->ij", "ij,di,dj->ij", "ij,hid,hjd->hij"))
def test_what_follows_a_sampled_sum(expression, block, target):
    """Behind whole sums and behind those that are cut, of unions of panels and of gathered blocks."""
    w = blocked(1024, 640, block, 0.6)
    pattern = lacis.pack(w, lacis.Bsr(*block)).pattern
    bias, scale = torch.randn(640, device="cuda").bfloat16(), torch.tensor(0.25, device="cuda").bfloat16()
    after = lacis.Epilogue(bias=bias, bias_axis="j", activation="gelu", scale=scale)
    terms, _, output = expression.partition(",")[2].partition("->")
    for depth in (72, 4104):
        factors = operands(expression, {"i": 1024, "j": 640, "h": 2, "d": depth})
        factors[0] /= depth**0.5
        kernel = lacis.compile(expression, pattern, *factors, epilogue=after, target=target)
        assert "lacis.mma" in kernel.asm["tiles"], kernel.remarks
        sums = torch.einsum(f"{terms}->{output}", *(factor.double() for factor in factors))
        dense = torch.nn.functional.gelu(scale.double() * sums + bias.double())
        want = pattern.gather(dense) if output == "ij" else torch.stack([pattern.gather(one) for one in dense])
        check(poisoned(kernel, pattern, *factors).values, want, depth)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block", [(64, 64), (128, 128), (16, 16)], ids=str)
def test_what_follows_the_sum(block, target):
    w = blocked(1000, 712, block, 0.6)
    packed, x = lacis.pack(w, lacis.Bsr(*block)), torch.randn(712, 264, device="cuda").bfloat16()
    bias, scale, residual = (torch.randn(shape, device="cuda").bfloat16() for shape in ((1000,), (), (1000, 264)))
    after = lacis.Epilogue(bias=bias, activation="gelu", scale=scale, residual=residual)
    kernel = lacis.compile("ij,jk->ik", packed, x, epilogue=after, target=target)
    assert "lacis.mma" in kernel.asm["tiles"], kernel.remarks
    want = lacis.einsum("ij,jk->ik", packed, x, epilogue=after, target="eager")
    check(poisoned(kernel, packed, x), want.double())


@pytest.mark.parametrize("block", [(64, 64), (128, 128), (32, 32), (16, 16)], ids=str)
@pytest.mark.parametrize("expression", (*ORDERS, *FACTORS))
def test_tf32(expression, block, tf32):
    """Integers are exact in 10 bits, and so are their sums."""
    w = blocked(520, 392, block, 0.6, torch.float32).clamp(-3, 3).round()
    packed, sizes = lacis.pack(w, lacis.Bsr(*block), mask=w != 0), {"i": 520, "j": 392, "k": 264}
    given = [factor.clamp(-3, 3).round() for factor in operands(expression, sizes, torch.float32)]
    first = packed.pattern if expression in FACTORS else packed
    kernel = lacis.compile(expression, first, *given)
    assert "in tf32" in kernel.asm["tiles"], kernel.remarks
    got = poisoned(kernel, first, *given)
    if expression in FACTORS:
        terms = ",".join(expression.partition("->")[0].split(",")[1:]) + "->ij"
        want, got = packed.pattern.gather(torch.einsum(terms, *(factor.double() for factor in given))), got.values
    else:
        want = torch.einsum(expression, w.double(), given[0].double())
    assert torch.equal(got.double(), want)


def test_gradients_in_the_order_of_the_readme():
    w, x = blocked(512, 768, (64, 64), 0.75), torch.randn(768, 264, device="cuda").bfloat16().requires_grad_()
    packed = lacis.pack(w, lacis.Bsr(64, 64))
    packed = packed.with_values(packed.values.detach().requires_grad_())
    y = lacis.einsum("ij,jk->ik", packed, x)
    grad = torch.randn_like(y)
    y.backward(grad)
    check(x.grad, w.double().T @ grad.double(), "of the dense operand")
    check(packed.values.grad, packed.pattern.gather(grad.double() @ x.detach().double().T), "of the values")


def test_padding_stays_zero_behind_what_follows_a_sampled_sum():
    """Blocks that reach behind the sizes: no tiles, for these would store what follows a sum of 0."""
    pattern = lacis.pack(blocked(1000, 712, (64, 64), 0.6), lacis.Bsr(64, 64)).pattern
    after = lacis.Epilogue(bias=torch.randn(712, device="cuda").bfloat16(), bias_axis="j", activation="gelu")
    factors = operands("ij,id,jd->ij", {"i": 1000, "j": 712, "d": 72})
    kernel = lacis.compile("ij,id,jd->ij", pattern, *factors, epilogue=after)
    assert any("stores no zeros" in remark for remark in kernel.remarks), kernel.remarks
    exact = dataclasses.replace(after, bias=after.bias.double())
    wants = [factor.double() for factor in factors]
    want = lacis.einsum("ij,id,jd->ij", pattern, *wants, epilogue=exact, target="eager").values
    check(poisoned(kernel, pattern, *factors).values, want)
