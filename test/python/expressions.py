# SPDX-License-Identifier: Apache-2.0
"""Einsums against float64 dense: one expression, format and dtype a kernel, many sizes and inputs through it."""

from __future__ import annotations

import math

import conformance
import torch

import lacis

# Sizes of one divisibility class, so one kernel runs them all: tails, single rows, nothing at all.
SIZES = (
    {"i": 17, "j": 23, "k": 7, "l": 5, "b": 3},
    {"i": 33, "j": 1, "k": 9, "l": 1, "b": 33},
    {"i": 1, "j": 9, "k": 1, "l": 3, "b": 1},
    {"i": 0, "j": 5, "k": 3, "l": 3, "b": 3},
    {"i": 5, "j": 0, "k": 5, "l": 7, "b": 5},
    {"i": 9, "j": 11, "k": 0, "l": 3, "b": 0},
)

MATRIX = (
    "ij,j->i", "ij,i->j", "ij,bj->bi", "ij,bi->bj", "ij,jb->ib", "ij,ib->jb", "ij,jk->ki",  # products
    "ij,bjk->bik", "ij,bkj->bki",  # batched
    "ij->i", "ij->j", "ij->", "ij,j->", "ij,bi,bj->b",  # reductions
    "ij,jk,kl->il", "ij,jk,k->i", "ij,ij,j->i", "ij,j,->i", "ij,k->ik", "ij,jkl->ik",  # several, letters of dense ones
    "ij,ik,jk->ij", "ij,ij->ij", "ij,bi,bj->ij", "ij,j->ji",  # sampled
    "ij,k->ijk", "ij,bij->bij", "ij,jk->kji",  # dense around the entries
)  # fmt: skip
CUBE = (
    "ijk,jl,kl->il", "ijk,il,kl->jl", "ijk,il,jl->kl", "ijk,k->ij", "ijk,i->jk", "ijk,j->ik", "ijk->k", "ijk,jk->i",
    "ijk,il,jl,kl->ijk", "ijk,kb->ijb", "ijk,j,k->", "ijk,kl->lijk",
)  # fmt: skip


def split(expression: str):
    left, right = expression.split("->")
    return left.split(","), right


def dense_operands(expression: str, sizes, dtype, generator, number: int = 0):
    """Random operands for every term but the packed one."""
    terms, _ = split(expression)
    new = lambda term: torch.randn([sizes[x] for x in term], generator=generator, dtype=torch.float64).to(dtype)
    return [new(term) for n, term in enumerate(terms) if n != number]


def limit(expression: str, operands, sizes, dtype) -> torch.Tensor:
    """What rounding allows: the length of the sum times the unit roundoff, over the sum of magnitudes."""
    terms, output = split(expression)
    summed = {letter for term in terms for letter in term} - set(output)
    length = math.prod(max(1, sizes[letter]) for letter in summed) + len(operands)
    accumulate = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    magnitude = torch.einsum(expression, *(o.double().abs() for o in operands))
    return magnitude * (accumulate * (length + 2) + torch.finfo(dtype).eps) + torch.finfo(dtype).tiny


def answer(result) -> torch.Tensor:
    """The result as a dense tensor on the CPU; a packed one must be well formed, with zeros in padding."""
    if isinstance(result, lacis.PackedTensor):
        result = result.validate().to_dense()
    return result.cpu()


def check(expression: str, w: torch.Tensor, mask, dense, sizes, format, target: str = "auto") -> None:
    packed = lacis.pack(w.to(conformance.DEVICE), format, mask.to(conformance.DEVICE))
    with torch.no_grad():
        dense_there = [d.to(conformance.DEVICE) for d in dense]
        result = answer(lacis.einsum(expression, packed, *dense_there, target=target))
    terms, output = split(expression)
    assert result.shape == tuple(sizes[letter] for letter in output) and result.dtype == w.dtype
    operands = [w, *dense]
    expected = torch.einsum(expression, *(o.double() for o in operands))
    error = (result.double() - expected).abs()
    bound = limit(expression, operands, sizes, w.dtype)
    assert bool((error <= bound).all()), f"{expression} {format}: {sizes} {w.dtype}: error {error.max():.3g}"


def check_special(expression: str, sizes, dtype, format, value: float, target: str = "auto") -> None:
    """NaN and infinity in a dense operand reach the outputs of kept entries, and no others.

    Below a batch each matrix has the entries of all.
    """
    terms, output = split(expression)
    mask = torch.rand([sizes[x] for x in terms[0]], generator=torch.Generator().manual_seed(1)) < 0.2
    w, dense = mask.to(dtype), [torch.ones([sizes[x] for x in term], dtype=dtype) for term in terms[1:]]
    if not dense or min(d.numel() for d in dense) == 0:
        return
    marked = [d.clone().double().zero_() for d in dense[:1]]
    place = tuple(size // 2 for size in dense[0].shape)
    dense[0][place], marked[0][place] = value, 1
    packed = lacis.pack(w.to(conformance.DEVICE), format, mask.to(conformance.DEVICE))
    with torch.no_grad():
        result = answer(lacis.einsum(expression, packed, *(d.to(conformance.DEVICE) for d in dense), target=target))
    others = [torch.ones_like(d, dtype=torch.float64) for d in dense[1:]]
    kept = packed.pattern.to_mask().cpu().double()
    touched = torch.einsum(expression, kept, *marked, *others) > 0
    assert bool((~torch.isfinite(result) == touched).all()), f"{expression} {format}: {value} spread"


def run(expression: str, format, dtype, seed: int = 0, sizes=SIZES, target: str = "auto") -> int:
    """All sizes and densities of one kernel; the number of cases."""
    generator = torch.Generator().manual_seed(seed)
    cases = 0
    for n, each in enumerate(sizes):
        shape = [each[letter] for letter in split(expression)[0][0]]
        for density in (0.3, 0.0, 1.0) if n == 0 else (0.3,):
            w = conformance.sparse(shape, density, dtype, generator)
            check(expression, w, w != 0, dense_operands(expression, each, dtype, generator), each, format, target)
            cases += 1
    check_special(expression, sizes[0], dtype, format, math.nan, target)
    check_special(expression, sizes[0], dtype, format, math.inf, target)
    return cases + 2
