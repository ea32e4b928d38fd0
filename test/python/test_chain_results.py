# SPDX-License-Identifier: Apache-2.0
"""Chains of several results: attention and the log of its sums, in one loop or in nests."""

import itertools
import math

import pytest
import torch
from strategies import mostly_long
from test_chain import mask_of, operands, reference

import lacis


@lacis.kernel
def attend_lse(q, k, v, pattern):
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) * 0.25
    return lacis.einsum("hij,hje->hie", lacis.softmax(s, "j"), v), lacis.logsumexp(s, "j")


def lse_of(q, k, mask):
    s = torch.einsum("hid,hjd->hij", q.double(), k.double()) * 0.25
    return torch.logsumexp(s.masked_fill(~mask, -math.inf), -1)


CASES = mostly_long(itertools.product(("bsr", "csr", "coo"), ("roll", "nests")), ("csr", "nests"))


@pytest.mark.parametrize("format, form", CASES)
def test_attention_and_its_sums(format, form):
    format = {"csr": lacis.Csr, "bsr": lacis.Bsr(8, 8), "coo": lacis.Coo}[format]
    steps = [] if form == "roll" else [lacis.steps.Keep("m")]
    q, k, v = operands()
    mask = mask_of()
    pattern = lacis.Pattern.from_mask(mask, format)
    kernel = attend_lse.compile(q, k, v, pattern, steps=steps)
    rolls = [step for step in kernel.steps if step.mnemonic == "roll"]
    assert bool(rolls) == (not steps and format is not lacis.Coo)
    out, lse = kernel(q, k, v, pattern)
    torch.testing.assert_close(out, reference(q, k, v, mask), rtol=0, atol=1e-12)
    torch.testing.assert_close(lse, lse_of(q, k, mask), rtol=0, atol=1e-12)
    assert lse[:, 5].isneginf().all() and not out[:, 5].any()
    _, far = kernel(200 * q, k, v, pattern)
    torch.testing.assert_close(far, lse_of(200 * q, k, mask), rtol=1e-12, atol=0)
    nothing = lacis.Pattern.from_mask(torch.zeros_like(mask), format)
    out, lse = kernel(q, k, v, nothing)
    assert not out.any() and lse.isneginf().all()


@pytest.mark.long
def test_half_types_have_wide_sums():
    q, k, v = operands(torch.bfloat16)
    mask = mask_of()
    out, lse = attend_lse(q, k, v, lacis.Pattern.from_mask(mask, lacis.Bsr(8, 8)))
    assert out.dtype == torch.bfloat16 and lse.dtype == torch.float32
    torch.testing.assert_close(out.double(), reference(q, k, v, mask), rtol=2**-7, atol=2**-7)
    torch.testing.assert_close(lse.double(), lse_of(q, k, mask), rtol=1e-5, atol=1e-5)


@pytest.mark.long
def test_statements_that_others_read_are_results_too():
    """Shares on the pattern and, behind them, what they were made of; nests, for one is on the pattern."""

    @lacis.kernel
    def shares(q, k, v, pattern):
        s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) * 0.25
        p = lacis.softmax(s, "j")
        o = lacis.einsum("hij,hje->hie", p, v)
        return p, o, lacis.einsum("hie->hi", o), o

    q, k, v = operands()
    mask = mask_of()
    found, out, sums, again = shares(q, k, v, lacis.Pattern.from_mask(mask, lacis.Csr))
    wanted = reference(q, k, v, mask)
    eye = torch.eye(45, dtype=q.dtype).expand(2, 45, 45)
    torch.testing.assert_close(found.to_dense(), reference(q, k, eye, mask), rtol=0, atol=1e-12)
    for one, other in ((out, wanted), (sums, wanted.sum(-1)), (again, wanted)):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_logsumexp_of_packed_values():
    mask = mask_of()
    dense = torch.randn(37, 45, dtype=torch.float64).requires_grad_()
    packed = lacis.pack(dense.detach(), lacis.Csr, mask=mask)
    values = packed.values.requires_grad_()
    found = lacis.logsumexp(packed.with_values(values), "j", target="eager")
    wanted = torch.logsumexp(dense.masked_fill(~mask, -math.inf), -1)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    there = torch.isfinite(wanted)
    (grad,) = torch.autograd.grad(found[there].sum(), values)
    (wanted,) = torch.autograd.grad(wanted[there].sum(), dense)
    torch.testing.assert_close(packed.with_values(grad).to_dense(), wanted.masked_fill(~mask, 0), rtol=0, atol=1e-12)


@pytest.mark.long
def test_the_text_has_both_results():
    q, k, v = operands(torch.float32)
    pattern = lacis.Pattern.from_mask(mask_of(), lacis.Bsr(8, 8))
    kernel = attend_lse.compile(q, k, v, pattern, target="cuda:sm_90a")
    assert '{lacis.name = "out1"}' in kernel.text and kernel.asm["ptx"]
    assert "} rolled" not in kernel.asm["loops"] and "lacis.written" in kernel.asm["loops"]


def test_results_that_are_refused(monkeypatch):
    q, k, v = operands()
    pattern = lacis.Pattern.from_mask(mask_of(), lacis.Csr)

    @lacis.kernel
    def second(q, k, pattern):
        s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k)
        return lacis.logsumexp(s, "j"), s

    with pytest.raises(lacis.DataError, match="a result after the first is on the pattern; return that first"):
        second(q, k, pattern)
    with pytest.raises(lacis.DataError, match="the function returns int, not a tensor"):
        lacis.kernel(lambda q, k, pattern: (lacis.einsum("ij,hid,hjd->hij", pattern, q, k), 3))(q, k, pattern)
    with pytest.raises(lacis.DataError, match="the function returns tuple, not a tensor"):
        lacis.kernel(lambda q, k, pattern: ())(q, k, pattern)
    with pytest.raises(lacis.DataError, match="logsumexp: no axis 'x'; there are h, i, j"):
        function = lambda q, k, pattern: lacis.logsumexp(lacis.einsum("ij,hid,hjd->hij", pattern, q, k), "x")
        lacis.kernel(function)(q, k, pattern)
    with pytest.raises(lacis.DataError, match="logsumexp: a packed tensor is needed, not Tensor"):
        lacis.logsumexp(q, "j")
    kernel = attend_lse.compile(q, k, v, pattern, steps=[lacis.steps.Keep("m")])
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    with pytest.raises(NotImplementedError, match="a kernel of several results is no operator of torch.compile"):
        kernel(q, k, v, pattern)
