# SPDX-License-Identifier: Apache-2.0
"""Values in copies that share a pattern, on CUDA: products, sampled products, gradients, and many copies."""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

import test_batch as batch  # noqa: E402

import lacis  # noqa: E402
from lacis import steps  # noqa: E402
from lacis.packing import PackedTensor  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}


def on_cuda(name: str, dtype):
    """A packed tensor, its dense form in float64, and values that take part in autograd."""
    a = batch.sparse(batch.H, batch.I, batch.J, dtype=dtype).cuda()
    packed = lacis.pack(a, batch.format_of(name))
    values = {part: each.requires_grad_() for part, each in packed.values_by_part.items()}
    return PackedTensor(packed.pattern, values), a.double(), list(values.values())


def close(found, expected, dtype):
    torch.testing.assert_close(found.double(), expected.double(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("expression", batch.PRODUCTS)
@pytest.mark.parametrize("name", batch.FORMATS)
def test_products_and_their_gradients(name, expression, dtype):
    packed, a, values = on_cuda(name, dtype)
    sizes = {"h": batch.H, "i": batch.I, "j": batch.J, "k": batch.K}
    own, other, output = expression.replace("->", ",").split(",")
    x = batch.dense(*(sizes[letter] for letter in other), dtype=dtype).cuda().requires_grad_()
    y = lacis.einsum(expression, packed, x)
    expected = torch.einsum(expression, a, x.detach().double())
    close(y, expected, dtype)
    arrived = batch.dense(*expected.shape, seed=7, dtype=dtype).cuda()
    *of_values, of_x = torch.autograd.grad(y, [*values, x], arrived)
    close(of_x, torch.einsum(f"{own},{output}->{other}", a, arrived.double()), dtype)
    gradient = PackedTensor(packed.pattern, dict(zip(packed.pattern.parts, of_values))).validate()
    whole = torch.einsum(f"{other},{output}->{own}", x.detach().double(), arrived.double())
    close(gradient.to_dense(), whole.expand_as(a) * packed.pattern.to_mask(), dtype)


@pytest.mark.parametrize("name, form", batch.FORMS.items())
def test_every_owner_form(name, form):
    packed, a, _ = on_cuda(name, torch.float32)
    x = batch.dense(batch.H, batch.J, 33).cuda()
    asked = [steps.Own("0", form)] if form in ("push", "share") else []
    close(
        lacis.einsum("hij,hjk->hik", packed, x, steps=asked), torch.einsum("hij,hjk->hik", a, x.double()), torch.float32
    )


@pytest.mark.parametrize("heads", [1, 3, 300])
def test_heads_under_one_pattern(heads):
    """More heads than a block has threads, and as many slots as no warp divides; the same numbers as with copies."""
    mask = torch.rand(70, 90, generator=torch.Generator().manual_seed(0)).cuda() < 0.2
    q, k = (batch.dense(heads, size, 40, seed=size).cuda() for size in (70, 90))
    shared = lacis.Pattern.from_mask(mask, lacis.Csr)
    s = lacis.einsum("ij,hid,hjd->hij", shared, q, k)
    assert s.values.shape == (heads, int(mask.sum()))
    close(s.to_dense(), torch.einsum("hid,hjd->hij", q.double(), k.double()) * mask, torch.float32)
    copies = lacis.Pattern.from_mask(mask.expand(heads, -1, -1), lacis.Csr().under("h"))
    again = lacis.einsum("hij,hid,hjd->hij", copies, q, k)
    assert torch.equal(again.values.reshape(heads, -1), s.values)


def test_more_values_than_32_bits_count():
    """Positions are those of the pattern, so that the copies of the values may be more than 2^31 in all."""
    mask = torch.ones(1, 2**20, dtype=torch.bool, device="cuda")
    packed = lacis.Pattern.from_mask(mask, lacis.Csr).batched([2**11 + 1], "h")
    values = torch.zeros(packed.part().values_shape, dtype=torch.bfloat16, device="cuda")
    values[-1, -1] = 3
    y = lacis.einsum(
        "hij,j->hi", PackedTensor(packed, {"": values}), torch.ones(2**20, dtype=torch.bfloat16, device="cuda")
    )
    assert y[-1, 0] == 3 and not y[:-1].any()
