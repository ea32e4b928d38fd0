# SPDX-License-Identifier: Apache-2.0
"""Kernels against float64 dense: a linear layer in each format and dtype, many shapes and inputs through it."""

from __future__ import annotations

import itertools
import math

import torch

import lacis

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
SHAPES = ((17, 23), (1, 9), (33, 1), (0, 5), (5, 0))
ALIGNED = (48, 64)  # sizes of another divisibility class, so kernels of their own
ODD_SHAPES = ((17, 23), (33, 21), (1, 9), (33, 1), (0, 5), (5, 0))
DENSITIES = (0.0, 0.2, 1.0)
BATCHES = (0, 1, 33)


DEVICE = "cpu"  # test/gpu runs the same suite on "cuda"


def dtype_of(shard: int) -> torch.dtype:
    """The dtype that the random cases of a shard have."""
    return DTYPES[shard % len(DTYPES)]


def normal(*shape, dtype, generator) -> torch.Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def sparse(shape, density: float, dtype, generator) -> torch.Tensor:
    """A random matrix whose kept entries are never 0."""
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    values = values + torch.sign(values) * 0.1
    kept = torch.rand(shape, generator=generator) < density
    return torch.where(kept, values, 0).to(dtype)


def inputs(columns: int, dtype, generator) -> list[torch.Tensor]:
    """Batches of each size; one axis and three; strides that are not those of a contiguous tensor."""
    draw = lambda *shape: normal(*shape, dtype=dtype, generator=generator)
    found = [draw(batch, columns) for batch in BATCHES]
    found += [draw(columns), draw(2, 3, columns), draw(2, 0, columns)]
    return found + [draw(columns, 7).T, draw(5, columns + 1)[:, 1:], draw(4, columns, 3).transpose(1, 2)]


def layer(w: torch.Tensor, format, bias: torch.Tensor | None = None, steps=()) -> torch.nn.Module:
    """A model of one linear layer, built with its weight `w` in `format`, its loops scheduled by `steps`."""
    linear = torch.nn.Linear(1, 1, bias=bias is not None)
    linear.out_features, linear.in_features = w.shape
    linear.weight = torch.nn.Parameter(w.clone())
    if bias is not None:
        linear.bias = torch.nn.Parameter(bias)
    model = torch.nn.Sequential(linear).to(DEVICE).eval()  # without the kernels of gradients
    schedule = lacis.create_schedule(model)
    handle = schedule["0.weight"].set_format(format)
    for step in steps:
        handle.site.record(step)
    return schedule.build()


def check(w: torch.Tensor, format, bias: torch.Tensor | None, generator, steps=(), repeats: int = 0) -> None:
    """The layer on every input, against float64 dense; each answer again, bit by bit, `repeats` times."""
    model, results = layer(w, format, bias, steps), []
    given = inputs(w.shape[1], w.dtype, generator)
    for x in given:
        with torch.no_grad():
            y = model(x.to(DEVICE)).cpu()
            assert all(torch.equal(model(x.to(DEVICE)).cpu(), y) for _ in range(repeats)), (format, steps)
        assert y.shape == (*x.shape[:-1], w.shape[0]) and y.dtype == w.dtype
        results.append(y.reshape(x.shape[:-1].numel(), w.shape[0]))
    rows = torch.cat([x.reshape(x.shape[:-1].numel(), w.shape[1]) for x in given])
    error = (torch.cat(results).double() - product(rows, w, bias)).abs()
    what = f"{format}: {tuple(w.shape)} {w.dtype}, bias {bias is not None}, {list(steps)}"
    assert bool((error <= bound(rows, w, bias)).all()), f"{what}: error {error.max():.3g}"


def product(x, w, bias) -> torch.Tensor:
    """The layer in float64."""
    return torch.nn.functional.linear(x.double(), w.double(), None if bias is None else bias.double())


def bound(x, w, bias) -> torch.Tensor:
    """What rounding allows: the length of the sum times the unit roundoff, over the sum of magnitudes."""
    accumulate = torch.finfo(torch.float64 if w.dtype == torch.float64 else torch.float32).eps
    length = max(1, w.shape[1]) + (bias is not None)
    magnitude = product(x.abs(), w.abs(), None if bias is None else bias.abs())
    own = torch.finfo(w.dtype)
    return magnitude * (accumulate * (length + 2) + own.eps) + own.tiny * own.eps + 1e-30  # the last of a denormal


def check_special(w: torch.Tensor, format, bias: torch.Tensor | None, steps=()) -> None:
    """NaN and infinity reach only the outputs of kept entries."""
    model, column = layer(w, format, bias, steps), w.shape[1] // 2
    for value in (math.nan, math.inf):
        x = torch.ones(3, w.shape[1], dtype=w.dtype)
        x[1, column] = value
        with torch.no_grad():
            y = model(x.to(DEVICE)).cpu()
        touched = torch.zeros(3, w.shape[0], dtype=torch.bool)
        touched[1] = w[:, column] != 0
        assert bool((~torch.isfinite(y) == touched).all()), f"{format}: {value} spread"


def of_class(shape, unit: int) -> tuple[int, ...]:
    """A shape about as large, whose sizes are odd multiples of `unit`."""
    return tuple(size if unit == 1 else unit * (size // unit | 1) for size in shape)


def run(format, dtype, seed: int = 0, shapes=SHAPES, biases=(False, True), steps=(), repeats: int = 0, unit=1) -> None:
    """All shapes, densities and inputs of one kernel, for each of `biases`; a strided weight; NaN and infinity.

    Its sizes are odd multiples of `unit`, where that is not 1.
    """
    generator = torch.Generator().manual_seed(seed)
    wide, square = of_class((23, 17), unit), of_class((33, 39), unit)
    for has_bias in biases:
        bias_of = lambda rows: normal(rows, dtype=dtype, generator=generator) if has_bias else None
        for shape, density in itertools.product(dict.fromkeys(of_class(s, unit) for s in shapes), DENSITIES):
            check(sparse(shape, density, dtype, generator), format, bias_of(shape[0]), generator, steps)
        check(sparse(wide, 0.3, dtype, generator).T, format, bias_of(wide[1]), generator, steps, repeats)
        check_special(sparse(square, 0.3, dtype, generator), format, bias_of(square[0]), steps)
