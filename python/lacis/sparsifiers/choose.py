# SPDX-License-Identifier: Apache-2.0
"""Choosing the largest scores, with ties broken by position, and scores that look random but repeat."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from ..errors import DataError
from .ramp import Ramp


def check_sparsity(sparsity) -> float | Ramp:
    """Raise `DataError` unless it is a share between 0 and 1, or a `Ramp` of such."""
    if isinstance(sparsity, Ramp):
        check_sparsity(sparsity.start), check_sparsity(sparsity.end)
        return sparsity
    if not isinstance(sparsity, (int, float)) or not 0 <= sparsity <= 1:
        raise DataError(f"a sparsity is a share from 0 to 1, not {sparsity!r}")
    return float(sparsity)


def keep_count(numel: int, sparsity: float) -> int:
    """`numel - round(sparsity * numel)`.

    >>> keep_count(10, 0.9)
    1
    """
    return numel - round(sparsity * numel)


@dataclasses.dataclass(frozen=True)
class Keys:
    """Numbers that are compared, as integers without a sign in the lowest `bits` bits.

    `at` gives those of a slice or an index of positions, so that they need not all be there at once.
    """

    numel: int
    bits: int
    device: torch.device
    at: Callable[[slice | torch.Tensor], torch.Tensor]

    def signed(self, keys: torch.Tensor) -> torch.Tensor:
        """Some keys as integers with a sign, in the same order: what torch compares."""
        return keys ^ signed(1 << 63) if self.bits == 64 else keys

    def ordered(self) -> torch.Tensor:
        """All of them so."""
        return self.signed(self.at(slice(0, self.numel)))


def magnitudes(tensor: torch.Tensor) -> Keys:
    """|tensor|, in row-major order; NaN is as large as infinity."""
    flat = (tensor.abs() if tensor.is_complex() else tensor).reshape(-1)
    flat = flat.view(torch.uint8) if flat.dtype == torch.bool else flat
    if not flat.is_floating_point():
        return Keys(flat.numel(), torch.iinfo(flat.dtype).bits, flat.device, lambda at: flat[at].abs())
    dtype = _INTEGERS[flat.element_size()]
    infinity = int(torch.tensor(torch.inf, dtype=flat.dtype).view(dtype))
    words, without_sign = flat.view(dtype), torch.iinfo(dtype).max
    keys = lambda at: (words[at] & without_sign).clamp_(max=infinity)
    return Keys(flat.numel(), torch.iinfo(dtype).bits - 1, flat.device, keys)


_GOLDEN = 0x9E3779B97F4A7C15  # odd, with its bits spread evenly: 2^64 divided by the golden ratio
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def hashed(numel: int, seed: int | torch.Tensor, device) -> Keys:
    """64 bits for each position that look random and are the same on every device.

    The seed may be an int64 scalar on the device: the seed modulo 2^64, with a sign.
    """
    start = seed * signed(_GOLDEN) if isinstance(seed, torch.Tensor) else signed(seed * _GOLDEN)

    def keys(at):
        word = torch.arange(at.start, at.stop, device=device) if isinstance(at, slice) else at.clone()
        word += start
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            word ^= (word >> shift).bitwise_and_((1 << (64 - shift)) - 1)
            word = word if factor == 1 else word.mul_(signed(factor))
        return word.bitwise_xor_(signed(1 << 63))

    return Keys(numel, 64, torch.device(device), keys)


def among(keys: Keys, positions: torch.Tensor) -> Keys:
    """The keys of some positions, numbered anew."""
    return Keys(len(positions), keys.bits, keys.device, lambda where: keys.at(positions[where]))


def keep_largest(keys: Keys, count: int) -> torch.Tensor:
    """bool [numel]: the `count` largest; of equal ones the first.

    >>> keep_largest(magnitudes(torch.tensor([1.0, 3.0, 1.0])), 2).tolist()
    [True, True, False]
    """
    if count <= 0 or count >= keys.numel:
        return torch.full((keys.numel,), count > 0, device=keys.device)
    on_gpu = keys.device.type == "cuda" and keys.numel <= _SORTED
    if on_gpu or torch.compiler.is_compiling():  # nobody looks at numbers on the way
        order = torch.sort(keys.ordered(), descending=True, stable=True).indices
        return torch.zeros(keys.numel, dtype=torch.bool, device=keys.device).index_fill(0, order[:count], True)
    if keys.device.type == "cpu" and keys.numel <= _SELECTED:
        return _select_largest(keys.ordered(), count)
    if keys.device.type == "cpu" and (guessed := _guess_largest(keys, count)) is not None:
        return guessed
    digits = torch.empty(keys.numel, dtype=torch.int16, device=keys.device)
    edge, held, shift = _ALL, keys.numel, keys.bits
    while held > keys.numel // _SHARE and shift > 0:
        width = min(shift, _DIGIT)
        shift -= width
        edge, held, count = _next_digit(keys, digits, edge, shift, width, count)
    kept = digits > edge
    found = []
    for part in _slices(keys):
        equal = (digits[part] == edge).nonzero().reshape(-1) + part.start
        if shift > 0:
            found.append(equal)
        elif count > 0:  # they are the same number
            kept[equal[:count]] = True
            count -= len(equal)
    if found:
        at = torch.cat(found)
        rest = torch.sort(keys.at(at), descending=True, stable=True).indices
        kept[at[rest[:count]]] = True
    return kept


def _select_largest(numbers: torch.Tensor, count: int) -> torch.Tensor:
    """The same of all numbers at once."""
    edge = torch.kthvalue(numbers, len(numbers) - count + 1).values
    kept = numbers > edge
    equal = (numbers == edge).nonzero().reshape(-1)
    return kept.index_fill_(0, equal[: count - int(kept.sum())], True)


def _guess_largest(keys: Keys, count: int) -> torch.Tensor | None:
    """The same, where a sample says between which two keys the smallest of them is: all are looked at once, and those
    between the two again."""
    sample = keys.signed(keys.at(torch.arange(0, keys.numel, keys.numel // _SAMPLE)))
    share = count / keys.numel
    slack = 6 * math.sqrt(len(sample) * share * (1 - share)) + 8  # six standard deviations of how many lie above
    most, least = (
        int(torch.kthvalue(sample, min(max(len(sample) - round(rank), 1), len(sample))).values)
        for rank in (share * len(sample) - slack, share * len(sample) + slack)
    )
    kept, between = (torch.empty(keys.numel, dtype=torch.bool) for _ in range(2))
    for part in _slices(keys, 2**16 * torch.get_num_threads()):
        mine = keys.signed(keys.at(part))
        torch.gt(mine, most, out=kept[part])
        torch.ge(mine, least, out=between[part]).logical_xor_(kept[part])
    at = between.nonzero().reshape(-1)
    count -= int(torch.count_nonzero(kept))
    if not 0 < count <= len(at) <= keys.numel // 2:
        return None
    return kept.index_fill_(0, at[_select_largest(keys.signed(keys.at(at)), count)], True)


_DIGIT = 12  # bits: a histogram of 32 KiB, which stays in the first-level cache
_SHARE = 64  # where one digit in so many is left in question, their numbers are sorted
_SORTED = 2**25  # so many numbers a GPU sorts in a few milliseconds, and in 0.6 GB; it waits for none of them then
_SELECTED = 2**18  # of so many a CPU selects in the time of two digits, or in a fifth where a third of them are equal
_SAMPLE = 2**14  # keys: 6 standard deviations of how many lie above are at most 2.4 % of all
_ALL, _ABOVE, _BELOW = -2, 2**15 - 1, -1  # no digits: not looked at yet, larger than the edge, smaller


def _slices(keys: Keys, step: int = 2**15):
    """Positions in pieces of `step`: by default as many as one thread works on in its second-level cache, which torch
    does not hand out to several threads; on a GPU in pieces of 64 MB of numbers, which fill it many times."""
    step = step if keys.device.type == "cpu" else 2**23
    return [slice(start, min(start + step, keys.numel)) for start in range(0, keys.numel, step)]


def _each(work, parts, device: torch.device):
    """The results of `work`, in order, on a CPU from as many threads as torch has: each part is too small to be shared
    out. Another thread launches on another stream of a GPU, and holds more memory at once."""
    if len(parts) < 2 or device.type != "cpu":
        yield from map(work, parts)
        return
    inference = torch.is_inference_mode_enabled()  # what a new thread does not know

    def task(part):
        with torch.inference_mode(inference):
            return work(part)

    with concurrent.futures.ThreadPoolExecutor(torch.get_num_threads()) as pool:
        yield from pool.map(task, parts)


def _next_digit(keys: Keys, digits, edge: int, shift: int, width: int, count: int) -> tuple[int, int, int]:
    """Looks at one more digit of the numbers at the edge. `digits` says what is known of each position.

    Returns the digit of the smallest number that is kept, how many have it, and how many of those are kept.
    """

    def look(part):
        known = digits[part]
        at = part if edge == _ALL else (known == edge).nonzero().reshape(-1)
        mine = keys.at(at if edge == _ALL else at + part.start) >> shift
        mine = mine.bitwise_and_((1 << width) - 1).to(torch.int16)
        if edge == _ALL:
            known.copy_(mine)
        else:
            known.copy_(torch.where(known > edge, _ABOVE, _BELOW))
            known[at] = mine
        return torch.bincount(mine, minlength=1 << width)

    held = torch.zeros(1 << width, dtype=torch.int64, device=keys.device)
    for each in _each(look, _slices(keys), keys.device):
        held += each
    from_above = held.flip(0).cumsum(0)
    place = int((from_above < count).sum())
    found = len(held) - 1 - place
    return found, int(held[found]), count - (int(from_above[place - 1]) if place else 0)


def magnitude(tensor: torch.Tensor) -> torch.Tensor:
    """|tensor| in a type that compares: float32 for half types."""
    wide = tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
    return wide.abs()


def signed(value: int) -> int:
    """The int64 that equals it modulo 2^64."""
    value &= 2**64 - 1
    return value - 2**64 if value >= 2**63 else value


def blocked(tensor: torch.Tensor, block) -> torch.Tensor:
    """[grid..., prod(block)]: the blocks of a tensor, filled up with zeros at the edges."""
    pad = [edge for size, b in zip(reversed(tensor.shape), reversed(block)) for edge in (0, -size % b)]
    tensor = F.pad(tensor, pad)
    rank = tensor.ndim
    grid = [size // b for size, b in zip(tensor.shape, block)]
    tensor = tensor.reshape([n for pair in zip(grid, block) for n in pair])
    tensor = tensor.permute([2 * a for a in range(rank)] + [2 * a + 1 for a in range(rank)])
    return tensor.reshape(*grid, math.prod(block))


def slabs(shape, height: int, elements: int = 2**20):
    """Slices of the first axis, of whole `height`s and about so many elements: what is made of each stays small."""
    step = max(elements // max(math.prod(shape[1:]) * height, 1), 1) * height
    return [slice(start, min(start + step, shape[0])) for start in range(0, shape[0], step)]


def spread(grid: torch.Tensor, block, shape) -> torch.Tensor:
    """A value per block repeated over its elements, cut to `shape`."""
    for axis, size in enumerate(block):
        grid = grid.repeat_interleave(size, axis)
    return grid[tuple(slice(0, size) for size in shape)]


def unblocked(rows: torch.Tensor, block, shape) -> torch.Tensor:
    """The tensor whose blocks are the rows of `rows` [blocks, prod(block)]: what `blocked` took apart."""
    rank = len(shape)
    grid = [-(-size // b) for size, b in zip(shape, block)]
    apart = rows.reshape(*grid, *block).permute([n for axis in range(rank) for n in (axis, rank + axis)])
    padded = apart.reshape([n * b for n, b in zip(grid, block)])
    return padded[tuple(slice(0, size) for size in shape)]
