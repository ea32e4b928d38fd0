# SPDX-License-Identifier: Apache-2.0
"""Kernels against float64 dense: one format and dtype a kernel, many shapes and inputs through it."""

from __future__ import annotations

import math

import torch

import lacis

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
# Sizes of two divisibility classes, so two kernels a format and dtype.
SHAPES = ((17, 23), (1, 9), (33, 1), (0, 5), (5, 0), (48, 64))
ODD_SHAPES = ((17, 23), (33, 21))
DENSITIES = (0.0, 0.2, 1.0)
BATCHES = (0, 1, 33)


DEVICE = "cpu"  # test/gpu runs the same suite on "cuda"


def sparse(shape, density: float, dtype, generator) -> torch.Tensor:
    """A random matrix whose kept entries are never 0."""
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    values = values + torch.sign(values) * 0.1
    kept = torch.rand(shape, generator=generator) < density
    return torch.where(kept, values, 0).to(dtype)


def bound(w, x, dtype) -> torch.Tensor:
    """What rounding allows: the length of the sum times the unit roundoff, over the sum of magnitudes."""
    accumulate = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    length = max(1, w.shape[1])
    magnitude = x.double().abs() @ w.double().abs().T
    return magnitude * accumulate * (length + 2) + magnitude * torch.finfo(dtype).eps + 1e-30


def check(w: torch.Tensor, x: torch.Tensor, format) -> None:
    """One product of `w` packed in `format` with `x`, against float64 dense."""
    packed = lacis.pack(w.to(DEVICE), format)
    with torch.no_grad():
        y = lacis.einsum("ij,bj->bi", packed, x.to(DEVICE)).cpu()
    assert y.shape == (x.shape[0], w.shape[0]) and y.dtype == w.dtype
    expected = x.double() @ w.double().T
    error = (y.double() - expected).abs()
    limit = bound(w, x, w.dtype)
    assert bool((error <= limit).all()), f"{format}: {tuple(w.shape)} {w.dtype}: error {error.max():.3g}"


def check_special(w: torch.Tensor, format) -> None:
    """NaN and infinity reach only the outputs of kept entries."""
    columns = w.shape[1]
    for value in (math.nan, math.inf):
        x = torch.ones(3, columns, dtype=w.dtype)
        column = columns // 2
        x[1, column] = value
        packed = lacis.pack(w.to(DEVICE), format)
        with torch.no_grad():
            y = lacis.einsum("ij,bj->bi", packed, x.to(DEVICE)).cpu()
        touched = torch.zeros(3, w.shape[0], dtype=torch.bool)
        touched[1] = w[:, column] != 0
        assert bool((~torch.isfinite(y) == touched).all()), f"{format}: {value} spread"


def run(format, dtype, seed: int = 0, shapes=SHAPES) -> None:
    """All shapes, densities, batches and layouts of one kernel family."""
    generator = torch.Generator().manual_seed(seed)
    for shape in shapes:
        for density in DENSITIES:
            w = sparse(shape, density, dtype, generator)
            for batch in BATCHES:
                x = torch.randn(batch, shape[1], generator=generator, dtype=torch.float64).to(dtype)
                check(w, x, format)
    w = sparse((33, 39), 0.3, dtype, generator)
    check(w, torch.randn(39, 7, generator=generator, dtype=torch.float64).to(dtype).T, format)
    check(w.T.contiguous().T, torch.randn(7, 40, generator=generator).to(dtype)[:, 1:], format)
    check_special(w, format)
