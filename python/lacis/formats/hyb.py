# SPDX-License-Identifier: Apache-2.0
"""`Hyb(c, k)`: rows in buckets by their length, in strips of columns."""

from __future__ import annotations

from ..errors import FormatError
from .axes import iter
from .format import Format
from .rule import Rule, digit, nnz
from .sum import Sum


class Hyb(Sum):
    """Rows by their length: part `b2` lists those of 3 or 4 entries, `long` holds those of more than `2 ** k`.

    A bucket pads to `2 ** b` entries, `b` from 0 to `k`; a longer row is cut into rows of `2 ** k`. With `c` strips of
    columns each has buckets of its own, `s0_b0` to `s0_long`, and counts its own entries. It is `hyb(c, k)` of
    "SparseTIR: Composable Abstractions for Sparse Compilation in Deep Learning" (Ye et al., ASPLOS 2023).

    >>> import torch, lacis
    >>> packed = lacis.pack(torch.ones(8, 8).triu(), lacis.Hyb(1, 2))
    >>> {name: len(part) for name, part in packed.values.items()}
    {'b0': 1, 'b1': 2, 'b2': 8, 'long': 32}

    How wide a strip is follows from the tensor; `columns` says it beforehand. Raises `FormatError` for sizes that are
    not positive, and without strips yet.
    """

    def __init__(self, c: int = 1, k: int = 5, columns: int | None = None):
        for name, value, least in (("c", c, 1), ("k", k, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise FormatError(f"Hyb: '{name}' must be a whole number from {least} on, not {value!r}")
        self.c, self.k, self.columns = c, k, columns
        if c == 1 or columns is not None:
            super().__init__(*_parts(c, k, -(-columns // c) if columns else 1))

    def __getattr__(self, name):
        if name in ("parts", "predicates"):
            raise FormatError(f"Hyb({self.c}, {self.k}) has no strips before it has a tensor; give Hyb(..., columns=n)")
        raise AttributeError(name)

    def for_shape(self, shape) -> Sum:
        if len(shape) != 2:
            raise FormatError(f"Hyb has 2 axes, the tensor has {len(shape)}")
        return self if self.columns is not None or self.c == 1 else Hyb(self.c, self.k, shape[1])


def _parts(c: int, k: int, width: int) -> tuple[dict[str, Format], dict[str, tuple]]:
    """The formats and the rules of `c` strips of `width` columns. What reaches the last strip lies in it: its buckets
    need not ask, as its last part does not, and so all of them are one group of row classes."""
    parts, rules = {}, {}
    for strip in range(c):
        prefix = f"s{strip}_" if c > 1 else ""
        inside = digit("j") // width == strip
        for b in range(k + 1):
            rule = _of_bucket(b)
            parts[f"{prefix}b{b}"] = _listed(2**b, unique=True)
            rules[f"{prefix}b{b}"] = inside & rule if strip + 1 < c else rule
        parts[f"{prefix}long"] = _listed(2**k, unique=False)
        rules[f"{prefix}long"] = inside
    del rules[f"{prefix}long"]  # the last part takes what is left
    return parts, {name: rule.tests(parts[name].axes) for name, rule in rules.items()}


def _of_bucket(b: int) -> Rule:
    few = nnz("i") < 2**b + 1
    return (nnz("i") >= 2 ** (b - 1) + 1) & few if b else few


def _listed(width: int, unique: bool) -> Format:
    with iter(dim=2) as (I, J):
        return Format.of([I.compress(unique=unique).level(), J.compress().pack(width).level()])
