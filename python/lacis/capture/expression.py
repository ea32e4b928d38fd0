# SPDX-License-Identifier: Apache-2.0
"""Einsum expressions: from `"nk,bk->bn"` and tensors to a kernel's specification."""

from __future__ import annotations

import functools
import math
import re

import torch

from ..errors import DataError, ScheduleError
from ..formats import Sum
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.uneven import most_are_empty
from ..schedule.steps import Step
from .cost import Work, slabs
from .dtypes import check_dtype, output_dtype
from .epilogue import Epilogue
from .semirings import find_semiring
from .spec import KernelSpec, Operand, divisible

_LETTERS = re.compile(r"[A-Za-z]*")


def parse_statement(expression: str) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Letters of the operands and of the output.

    >>> parse_statement("nk, bk -> bn")
    ((('n', 'k'), ('b', 'k')), ('b', 'n'))

    Raises `DataError` for what is no expression or has no code: no arrow, an ellipsis, a letter twice in one term or
    in the output alone.
    """
    if not isinstance(expression, str):
        raise DataError(f"einsum: an expression is text like 'nk,bk->bn', not {type(expression).__name__}")
    return _parse(expression)


@functools.lru_cache(maxsize=1024)
def _parse(expression: str):
    text = expression.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if "..." in text:
        raise DataError(f"einsum: '...' in {expression!r} has no code; give each axis a letter")
    if not arrow or not all(_LETTERS.fullmatch(word) for word in [*terms, right]):
        raise DataError(f"einsum: {expression!r} is no expression; write it like 'nk,bk->bn', with the arrow")
    for word in [*terms, right]:
        if len(set(word)) != len(word):
            raise DataError(f"einsum: a letter is twice in '{word}'; diagonals have no code, take torch.diagonal first")
    unknown = [letter for letter in right if not any(letter in word for word in terms)]
    if unknown:
        raise DataError(f"einsum: '{unknown[0]}' is in the output, but in no operand")
    return tuple(tuple(word) for word in terms), tuple(right)


def capture_einsum(
    expression: str,
    operands,
    location=None,
    steps=(),
    semiring: str = "plus_times",
    epilogue: Epilogue | None = None,
    kind: str | None = None,
    out_dtype: torch.dtype | None = None,
) -> tuple[KernelSpec, dict[str, int]]:
    """The specification of an einsum with one packed operand, and the size of each letter.

    Where the output has the letters of the packed operand it is sampled, and has its letters in its order: another
    order of the expression is a transposed view of the result. `kind` is the kind of device that the kernel is for,
    by default that of the operands; where it is given, operands may lie on `meta`. `out_dtype`: see `output_dtype`.
    """
    terms, output = parse_statement(expression)
    if len(terms) != len(operands):
        raise DataError(f"einsum: '{expression}' names {len(terms)} operands, {len(operands)} are given")
    steps = (None,) if isinstance(steps, (Step, str)) else tuple(steps)
    if not all(isinstance(step, Step) for step in steps):
        raise ScheduleError("einsum: 'steps' is a list of records, as steps=[lacis.steps.Split('i', 32)]")
    sizes = _sizes(terms, operands)
    packed = packed_operand(operands)
    dtype = _one_dtype(operands)
    find_semiring(semiring, dtype)
    taken = tuple(_operand(n, term, operand) for n, (term, operand) in enumerate(zip(terms, operands)))
    own = terms[packed]
    sampled = set(own) == set(output)
    if isinstance(operands[packed], Pattern):
        _check_pattern(packed, own, sampled)
    if set(own) < set(output) and semiring != "plus_times":
        raise DataError(
            f"einsum: the output '{''.join(output)}' has all letters of the packed operand and more, so it is dense; "
            f"'{semiring}' has no code for that"
        )
    classes = [(letter, divisible(sizes[letter])) for letter in own]
    lines = {term[-1] for term in (*terms, output) if term}
    is_half = dtype.itemsize == 2
    classes += [(c, _dense_class(size, is_half and c in lines)) for c, size in sizes.items() if c not in own]
    stored = output_dtype(dtype, out_dtype)
    result = Operand("out", own, stored, taken[packed].format) if sampled else Operand("out", output, stored)
    after = {} if epilogue is None else check_epilogue(epilogue, output, own, sizes, semiring, dtype, _device(operands))
    spec = KernelSpec(
        "einsum",
        taken,
        result,
        divisible=tuple(classes),
        **hints(own, operands[packed], kind),
        steps=steps,
        location=location,
        semiring=semiring,
        **after,
    )
    return spec, sizes


def packed_operand(operands) -> int:
    """The number of the packed operand or pattern. Raises `DataError` unless there is one."""
    found = [n for n, operand in enumerate(operands) if isinstance(operand, (PackedTensor, Pattern))]
    if len(found) != 1:
        what = (
            "at most one operand may be packed or a pattern" if found else "one operand must be packed; see lacis.pack"
        )
        raise DataError(f"einsum: {what}")
    return found[0]


def _operand(number: int, term, operand) -> Operand:
    if isinstance(operand, Pattern):
        return Operand(str(number), term, None, operand.typed_text)
    packed = isinstance(operand, PackedTensor)
    return Operand(str(number), term, operand.dtype, operand.pattern.typed_text if packed else None)


def _check_pattern(number: int, own, sampled: bool) -> None:
    if not sampled:
        raise DataError(
            f"einsum: operand {number} is a pattern, so the output must have its letters '{''.join(own)}'; "
            "a sum over entries needs values, see lacis.pack"
        )


def check_epilogue(epilogue: Epilogue, output, own, sizes, semiring: str, dtype, device) -> dict:
    """What an epilogue adds to a `KernelSpec`. Raises `DataError` where it does not fit the result."""
    if not isinstance(epilogue, Epilogue):
        raise DataError(f"einsum: epilogue must be a lacis.Epilogue, not {type(epilogue).__name__}")
    if semiring == "or_and":
        raise DataError("einsum: or_and has no epilogue, its result is bool")
    return epilogue.operands(output, own, sizes, dtype, device)


# With this many coordinates, 512 bytes for each are more than the second-level cache of a GPU holds.
_LARGE = 1 << 16
# With so many entries for each coordinate on the mean, at most a quarter of the coordinates have 256.
_FEW = 64


def hints(letters, operand: PackedTensor | Pattern, kind: str | None = None) -> dict:
    """What default schedules for a kind of device, by default the operand's, are told of it: see `KernelSpec`."""
    pattern = operand if isinstance(operand, Pattern) else operand.pattern
    on_cpu = (kind or pattern.device.type) == "cpu"
    here = kind is None or kind == pattern.device.type
    flags = () if on_cpu else pattern.uneven if here else pattern.measure_uneven()
    uneven = tuple(letter for letter, flag in zip(letters, flags) if flag)
    large = () if on_cpu else tuple(letter for letter, size in zip(letters, pattern.shape) if size >= _LARGE)
    slots, size = sum(math.prod(part.values_shape) for part in pattern.parts.values()), math.prod(pattern.shape)
    sizes = dict(zip(letters, pattern.shape))
    skewed = tuple(letter for letter in uneven if letter in large and slots <= _FEW * sizes[letter])
    eighths = 8 if on_cpu or size == 0 else min(8, max(1, round(8 * slots / size)))
    tf32 = not on_cpu and torch.backends.cuda.matmul.fp32_precision == "tf32"
    filled = tuple(letter for letter, flag in zip(letters, pattern.filled) if flag)
    flags = most_are_empty(pattern.parts.values(), pattern.shape) if on_cpu else ()
    empty = tuple(letter for letter, flag in zip(letters, flags) if flag)
    known = {"uneven": uneven, "large": large, "skewed": skewed, "filled": filled, "hypersparse": empty}
    known |= {"eighths": eighths, "tf32": tf32}
    room = any(part.has_room for part in pattern.parts.values())
    return {**known, "slabs": None if on_cpu else _slabs(operand), "room": room}


def _slabs(operand: PackedTensor | Pattern) -> int | None:
    """What the cost model says of small stored blocks, for the density that they have now."""
    if not isinstance(operand, PackedTensor) or isinstance(operand.format, Sum) or operand.ndim != 2:
        return None
    tile = operand.pattern.part().format.tile
    if len(tile) != 2:
        return None
    return slabs(Work(*operand.shape, 0, operand.slots, tuple(tile), operand.dtype))


_META = torch.device("meta")


def check_operands(operands, kind: str | None = None) -> None:
    """Raise `DataError` for what is no tensor and, unless it is known what `kind` of device runs, has no values."""
    for n, operand in enumerate(operands):
        if not isinstance(operand, (torch.Tensor, PackedTensor, Pattern)):
            name = f"{type(operand).__module__}.{type(operand).__name__}".removeprefix("builtins.")
            raise DataError(f"einsum: operand {n} is a {name}, not a torch tensor; torch.as_tensor makes one of it")
        if kind is None and operand.device == _META:
            raise DataError(
                f"einsum: operand {n} is on meta and has no values; load them first, or compile without them for a "
                "target that is named: lacis.compile(..., target='cuda:sm_90a')"
            )


def _device(operands) -> torch.device:
    """Where the operands lie, those without values apart."""
    found = [operand.device for operand in operands]
    return next((device for device in found if device != _META), _META)


def _dense_class(size: int, is_line: bool) -> int:
    """What is promised of a size that changes from call to call: whole panels, wide or narrow, vectors, or nothing.

    Lines of so many elements of half types begin at chunks of 16 bytes where they are a multiple of 8: tiles are
    copied by these.
    """
    classes = (128, 32, 8, 4, 1) if is_line else (128, 32, 4, 1)
    return next(known for known in classes if size % known == 0 and (size or known == 1))


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
    """The dtype of all operands, whose device is one too; a pattern has no dtype."""
    valued = [n for n, operand in enumerate(operands) if not isinstance(operand, Pattern)]
    if not valued:
        raise DataError("einsum: a pattern alone has no values; give a dense operand to sample")
    first = valued[0]
    dtype, device = operands[first].dtype, _device(operands)
    for n, operand in enumerate(operands):
        if n in valued and operand.dtype != dtype:
            raise DataError(f"einsum: operand {n} is {operand.dtype}, operand {first} is {dtype}; cast one of them")
        if operand.device not in (device, _META):
            other = next(n for n, operand in enumerate(operands) if operand.device == device)
            raise DataError(
                f"einsum: operand {n} is on {operand.device}, operand {other} on {device}; move one of them"
            )
    if dtype != torch.bool:
        check_dtype("einsum", dtype)
    return dtype
