# SPDX-License-Identifier: Apache-2.0
"""Chains of statements on one pattern: products under batch letters, functions with coordinates, softmax."""

import gc
import math
import weakref

import pytest
import torch
from strategies import mostly_long
from test_ready_calls import counted
from test_sampled import FORMATS, mask

import lacis
from lacis.attentions.fibres import Fibres
from lacis.attentions.softmax import normalised
from lacis.runtime.ready import ReadySamples

H, I, J, D = 8, 9, 11, 5  # as test_attention.py has them, so that kernels are shared


def operands(*terms, dtype=torch.float64):
    generator = torch.Generator().manual_seed(8)
    sizes = {"h": H, "i": I, "j": J, "d": D}
    return [torch.randn([sizes[x] for x in term], generator=generator, dtype=torch.float64).to(dtype) for term in terms]


def dense_softmax(dense, kept):
    """In float64; 0 where no entry is above -infinity."""
    scores = torch.where(kept, dense.double(), -math.inf)
    return torch.where(scores.isneginf().all(-1, keepdim=True), 0, scores.softmax(-1))


@pytest.mark.parametrize("target", mostly_long(["eager", "cpu"], "eager"))
@pytest.mark.parametrize("name", mostly_long(FORMATS, "csr"))
def test_heads_that_share_a_pattern(name, target):
    kept = mask(I, J)
    pattern = lacis.Pattern.from_mask(kept, FORMATS[name])
    q, k, v = operands("hid", "hjd", "hjd", dtype=torch.float32)
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k, target=target)
    s.validate()
    assert s.shape == (H, I, J) and s.nnz == H * pattern.nnz and s.pattern.format.rank == 3
    expected = torch.einsum("hid,hjd->hij", q.double(), k.double()) * kept
    torch.testing.assert_close(s.to_dense(), expected.float())
    p = lacis.softmax(s, "j", target=target)
    p.validate()
    torch.testing.assert_close(p.to_dense(), dense_softmax(expected, kept).float())
    out = lacis.einsum("hij,hjd->hid", p, v, target=target)
    torch.testing.assert_close(out, (dense_softmax(expected, kept) @ v.double()).float())
    again = lacis.einsum("ij,hid,hjd->hij", pattern, q, k, target=target)
    assert again.pattern is s.pattern


@pytest.mark.parametrize("target", mostly_long(["eager", "cpu"], "eager"))
@pytest.mark.parametrize("width", [256, 576])
def test_rows_of_many_blocks(width, target):
    """Widths at which softmaxes over lists of blocks had rows of their own kinds (torch-blocksparse)."""
    kept = mask(4, width // 16).repeat_interleave(16, 0).repeat_interleave(16, 1)
    scores = torch.randn(64, width, generator=torch.Generator().manual_seed(width))
    packed = lacis.pack(torch.where(kept, scores, 0), lacis.Bsr(16, 16))
    found = lacis.softmax(packed, "j", target=target)
    torch.testing.assert_close(found.to_dense(), dense_softmax(scores, kept).float())


def test_a_compiled_product_takes_the_shared_pattern(monkeypatch):
    answers, kept = counted(monkeypatch, ReadySamples), mask(I, J)
    first, pattern = (lacis.Pattern.from_mask(kept, lacis.Csr) for _ in range(2))
    kernel = lacis.compile("ij,hid,hjd->hij", first, *operands("hid", "hjd", dtype=torch.float32))

    def look(pattern, heads, ready):
        q, k = torch.randn(heads, I, D), torch.randn(heads, J, D)
        found = kernel(pattern, q, k)
        assert found.pattern is pattern.batched([heads], "h") and (answers[-1] is not None) == ready
        expected = lacis.einsum("ij,hid,hjd->hij", pattern, q, k, target="eager")
        torch.testing.assert_close(found.values, expected.values)
        torch.testing.assert_close(found.to_dense(), torch.einsum("hid,hjd->hij", q, k) * kept)

    with torch.no_grad():
        for heads, ready in ((H, False), (H, True), (2 * H, False), (H, True), (2 * H, True)):
            look(pattern, heads, ready)
    gone = weakref.ref(pattern)
    del pattern
    answers.clear()
    gc.collect()
    assert gone() is None


@pytest.mark.long
@pytest.mark.parametrize("name", FORMATS)
def test_every_statement_compiles_for_a_gpu(name):
    pattern = lacis.Pattern.from_mask(mask(I, J), FORMATS[name])
    q, k = operands("hid", "hjd", dtype=torch.bfloat16)
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k, target="eager")
    rows = torch.ones(H, I, dtype=torch.bfloat16)
    statements = [
        ("ij,hid,hjd->hij", pattern, q, k),
        ("hij->hi", s),
        ("hij,hi->hij", s.pattern, rows),
        ("hij,hjd->hid", s, k),
        ("hij,hid->hjd", s, q),
    ]
    for statement in statements:
        kernels = lacis.compile(*statement, target="cuda:sm_90a").parts.values()
        assert all(".target sm_90a" in kernel.asm["ptx"] for kernel in kernels)
    assert lacis.compile("hij->hi", s, semiring="max_times", target="cuda:sm_90a").asm["ptx"]


def test_a_pattern_under_heads_follows_its_arrays():
    pattern = lacis.Pattern.from_mask(torch.tensor([[True, False], [False, True]]), lacis.Csr)
    heads = pattern.batched([2], "h")
    pattern.storage["crd1"].copy_(torch.tensor([1, 0]))
    assert heads.to_mask()[1].tolist() == [[False, True], [True, False]]


def test_duplicates_are_kept_under_heads():
    coo = torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], torch.ones(3), (2, 2), check_invariants=True)
    packed = lacis.pack(coo, lacis.Coo)
    q, k = torch.ones(2, 2, 1), torch.ones(2, 2, 1)
    s = lacis.einsum("ij,hid,hjd->hij", packed.pattern, q, k, target="eager")
    assert s.nnz == 6 and s.to_dense()[1].tolist() == [[0.0, 2.0], [1.0, 0.0]]


def test_batch_letters_stand_anywhere():
    pattern = lacis.Pattern.from_mask(mask(I, J), lacis.Csr)
    q, k = operands("hid", "hjd")
    for output in ("hij", "ihj", "ijh", "jih"):
        s = lacis.einsum(f"ij,hid,hjd->{output}", pattern, q, k, target="eager").validate()
        dense = torch.einsum(f"hid,hjd,ij->{output}", q, k, mask(I, J).to(q.dtype))
        assert s.values.shape == (H, pattern.nnz)
        torch.testing.assert_close(s.to_dense(), dense)
    with pytest.raises(lacis.DataError, match="'d' is 5 long, but 6 in operand 2"):
        lacis.einsum("ij,hid,hjd->hij", pattern, torch.ones(H, I, D), torch.ones(H, J, 6))


@pytest.mark.parametrize("name", FORMATS)
def test_softmax_of_any_format(name):
    kept = mask(I, J)
    (scores,) = operands("ij")
    scores[0, :4] = -math.inf  # not all of the row
    scores[2] = -math.inf
    scores[3] *= 1e4
    packed = lacis.pack(scores, FORMATS[name], mask=kept)
    for axis in (1, "j"):
        p = lacis.softmax(packed, axis, target="eager")
        p.validate()
        torch.testing.assert_close(p.to_dense(), dense_softmax(scores, kept), rtol=1e-12, atol=1e-12)
    columns = lacis.softmax(packed, "i", target="eager").to_dense()
    torch.testing.assert_close(columns.T, dense_softmax(scores.T, kept.T), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_softmax_of_other_dtypes(dtype):
    kept = mask(I, J)
    (scores,) = operands("ij", dtype=dtype)
    p = lacis.softmax(lacis.pack(scores, lacis.Csr, mask=kept), "j", target="eager")
    assert p.dtype == dtype
    torch.testing.assert_close(p.to_dense(), dense_softmax(scores, kept).to(dtype))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nan_and_infinity_spread_along_their_row(bad):
    scores = torch.zeros(3, 4)
    scores[1, 2] = bad
    p = lacis.softmax(lacis.pack(scores, lacis.Csr, mask=torch.ones(3, 4, dtype=torch.bool)), "j", target="eager")
    assert p.to_dense()[1].isnan().any() and bool((p.to_dense()[[0, 2]] == 0.25).all())


LATER = pytest.param("csr", "cpu", marks=pytest.mark.long)


@pytest.mark.parametrize("name, target", [*((name, "eager") for name in FORMATS), LATER])
def test_gradients_of_softmax(name, target):
    kept = mask(5, 4, density=0.6)
    scores = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    packed = lacis.pack(scores, FORMATS[name], mask=kept)
    names, values = zip(*packed.values_by_part.items())

    def compute(*given):
        given = [torch.where(v != 0, g, 0) for v, g in zip(values, given)]  # padding stays 0
        mine = packed.with_values(dict(zip(names, given)) if len(names) > 1 else given[0])
        return lacis.softmax(mine, "j", target=target).to_dense()

    given = [v.clone().requires_grad_() for v in values]
    assert torch.autograd.gradcheck(compute, given)
    if name == "csr" and target == "eager":
        assert torch.autograd.gradgradcheck(compute, given)


def test_gradients_of_masked_rows_are_zero():
    scores = torch.tensor([[0.0, -math.inf], [-math.inf, -math.inf]])
    packed = lacis.pack(scores, lacis.Csr, mask=torch.ones(2, 2, dtype=torch.bool))
    values = packed.values.clone().requires_grad_()
    fibres = Fibres(packed.pattern, 1, "eager")
    p, lse = normalised(fibres, packed.with_values(values))
    assert lse.tolist() == [0.0, -math.inf]
    (p.values.sum() + lse.sum()).backward()
    assert values.grad.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_functions_with_coordinates():
    kept = mask(I, J)
    (dense,) = operands("ij")
    slope = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    i, j = torch.meshgrid(torch.arange(I), torch.arange(J), indexing="ij")
    for format in FORMATS.values():
        packed = lacis.pack(dense, format, mask=kept)
        found = packed.map(lambda s, i, j: s - slope * (i - j) + 1)
        found.validate()
        expected = (dense - slope * (i - j) + 1) * kept
        torch.testing.assert_close(found.to_dense(), expected)
        (gradient,) = torch.autograd.grad(found.to_dense().sum(), slope)
        torch.testing.assert_close(gradient, ((j - i) * kept).sum().double())


def test_what_makes_no_number_in_padding():
    """1 / 0 in padding is neither a value nor a gradient."""
    packed = lacis.pack(torch.tensor([[2.0, 0.0, 4.0]]), lacis.Bsr(2, 2))
    values = packed.values.clone().requires_grad_()
    found = packed.with_values(values).map(lambda v, i, j: 1 / v)
    assert found.to_dense().tolist() == [[0.5, 0.0, 0.25]]
    found.values.sum().backward()
    assert packed.with_values(values.grad).to_dense().tolist() == [[-0.25, 0.0, -0.0625]]
    assert bool(values.grad.isfinite().all())


def test_refusals():
    packed = lacis.pack(torch.eye(2), lacis.Csr)
    with pytest.raises(lacis.DataError, match="no axis 'k'; the format's text names i, j"):
        lacis.softmax(packed, "k")
    with pytest.raises(lacis.DataError, match="a packed tensor is needed, not Tensor"):
        lacis.softmax(torch.eye(2), "j")
    with pytest.raises(lacis.DataError, match="needs floating point"):
        lacis.softmax(lacis.pack(torch.eye(2) > 0, lacis.Csr), "j")
    with pytest.raises(lacis.DataError, match="the function must answer 2 values"):
        packed.map(lambda v, i, j: v[:1])
