# SPDX-License-Identifier: Apache-2.0
"""Einsum expressions: from `"nk,bk->bn"` and tensors to a kernel's specification."""

from __future__ import annotations

import torch

from ..errors import DataError
from ..packing import PackedTensor
from .spec import KernelSpec, Operand, divisible

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def parse_statement(expression: str) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Letters of the operands and of the output.

    >>> parse_statement("nk, bk -> bn")
    ((('n', 'k'), ('b', 'k')), ('b', 'n'))

    Raises `DataError` for what is no expression: no arrow, a repeated letter, one that only the output has.
    """
    text = expression.replace(" ", "") if isinstance(expression, str) else ""
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if not arrow or not all(word.isalpha() for word in terms) or not (right.isalpha() or not right):
        raise DataError(f"einsum: {expression!r} is no expression; write it like 'nk,bk->bn'")
    for word in [*terms, right]:
        if len(set(word)) != len(word):
            raise DataError(f"einsum: a letter is twice in '{word}'; diagonals have no code")
    unknown = [letter for letter in right if not any(letter in word for word in terms)]
    if unknown:
        raise DataError(f"einsum: '{unknown[0]}' is in the output, but in no operand")
    return tuple(tuple(word) for word in terms), tuple(right)


def capture_einsum(expression: str, operands, location=None, steps=()) -> tuple[KernelSpec, dict[str, int]]:
    """The specification of an einsum with one packed operand, and the size of each letter."""
    terms, output = parse_statement(expression)
    if len(terms) != len(operands):
        raise DataError(f"einsum: '{expression}' names {len(terms)} operands, {len(operands)} are given")
    sizes = _sizes(terms, operands)
    packed = [n for n, operand in enumerate(operands) if isinstance(operand, PackedTensor)]
    if len(packed) != 1:
        what = "at most one operand may be packed" if packed else "one operand must be packed; see lacis.pack"
        raise DataError(f"einsum: {what}")
    dtype = _one_dtype(operands)
    names = [str(n) for n in range(len(operands))]
    taken = tuple(
        Operand(name, term, dtype, operand.pattern.typed_text if isinstance(operand, PackedTensor) else None)
        for name, term, operand in zip(names, terms, operands)
    )
    own = terms[packed[0]]
    classes = [(letter, divisible(sizes[letter])) for letter in own]
    classes += [(letter, _dense_class(size)) for letter, size in sizes.items() if letter not in own]
    result = Operand("out", output, dtype)
    return KernelSpec("einsum", taken, result, None, tuple(classes), tuple(steps), location), sizes


def _dense_class(size: int) -> int:
    """What is promised of a size that changes from call to call: whole panels, whole vectors, or nothing."""
    return next(known for known in (32, 4, 1) if size % known == 0 and (size or known == 1))


def _sizes(terms, operands) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for n, (term, operand) in enumerate(zip(terms, operands)):
        shape = tuple(operand.shape)
        if len(shape) != len(term):
            raise DataError(f"einsum: operand {n} has {len(shape)} axes, '{''.join(term)}' names {len(term)}")
        for letter, size in zip(term, shape):
            if sizes.setdefault(letter, size) != size:
                raise DataError(f"einsum: '{letter}' is {sizes[letter]} long, but {size} in operand {n}")
    return sizes


def _one_dtype(operands) -> torch.dtype:
    dtype = operands[0].dtype
    for n, operand in enumerate(operands):
        if operand.dtype != dtype:
            raise DataError(f"einsum: operand {n} is {operand.dtype}, operand 0 is {dtype}; cast one of them")
        if operand.device != operands[0].device:
            raise DataError(f"einsum: operand {n} is on {operand.device}, operand 0 on {operands[0].device}")
    check_dtype("einsum", dtype)
    return dtype


def check_dtype(what: str, dtype: torch.dtype, location=None) -> None:
    """Raise `DataError` for a dtype that kernels do not have."""
    if dtype not in DTYPES:
        known = ", ".join(str(d).removeprefix("torch.") for d in DTYPES)
        raise DataError(f"{what}: {dtype} has no kernels; there are {known}", location=location)
