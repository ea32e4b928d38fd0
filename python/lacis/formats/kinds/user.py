# SPDX-License-Identifier: Apache-2.0
"""A level kind that a user defines, by its name: the class that was decorated with it answers."""

import dataclasses

import torch

from ...errors import DataError, FormatError
from ..level import Coordinate, Extent, Placed, Positions, register
from ..own.eager import Eager
from ..own.level_kind import KINDS

# Positions without an entry under one parent, at the most: more are taken for damage before memory is.
_MOST_MORE = 1024


@register
@dataclasses.dataclass(frozen=True)
class User(Extent, Coordinate):
    """`@k`; it has code once a class is decorated with `lacis.kind` under that name."""

    symbol: str = "@kind"

    name = "kind"
    hint = ": decorate its class with lacis.kind"

    @property
    def spelling(self):
        return self.symbol

    @property
    def definition(self):
        """The class, or None."""
        return KINDS.get(self.symbol)

    def _says(self, fact: str, otherwise):
        return getattr(self.definition, fact) if self.definition else otherwise

    has_code = property(lambda self: self.definition is not None)
    unique = property(lambda self: self._says("unique", True))
    ordered = property(lambda self: self._says("ordered", True))
    gaps = property(lambda self: self._says("gaps", False))
    fills = property(lambda self: self._says("fills", False))
    pads = property(lambda self: self._says("_padded", False))

    @property
    def capacity(self):
        return self._says("fixed", None)

    @property
    def arrays(self):
        return self.definition.arrays() if self.definition else {}

    @property
    def per_position(self):
        return next((name for name, own in self.arrays.items() if own.per == "position"), None)

    def buffers(self):
        return tuple(self.arrays)

    def width_of(self, buffer):
        own = self.arrays.get(buffer)
        return own and own.dtype.replace("u", "i")

    def __reduce__(self):
        cls = self.definition
        return (_of_class, (cls,)) if cls is not None and "<locals>" not in cls.__qualname__ else (User, (self.symbol,))

    def _refuse(self, what):
        raise FormatError(f"level kind '{self.symbol}' has no {what}")

    # Packing.

    def place(self, fibre, placed=None):
        if placed is not None:
            return {}  # the coordinates lie with the positions
        if self.definition.place is None:
            self._refuse("packing: its class has no method 'place'")
        made = self.definition.place(self.definition.__new__(self.definition), fibre)
        if not isinstance(made, Placed) or set(made.buffers) != set(self.arrays):
            named = ", ".join(self.arrays) or "none"
            raise FormatError(f"kind '{self.symbol}', 'place': answers lacis.Placed with its arrays, {named}")
        if self.capacity is not None and made.slots != fibre.parents * self.capacity:
            raise FormatError(
                f"kind '{self.symbol}', 'place': {made.slots} positions under {fibre.parents} parents with "
                f"{self.capacity} each"
            )
        if not (self.pads or self.fills or self.gaps) and made.slots != fibre.first.numel():
            raise FormatError(
                f"kind '{self.symbol}', 'place': {made.slots} positions for {fibre.first.numel()} entries; "
                "'coordinate' answers whether there is one, or 'fills = True' stores others"
            )
        return dataclasses.replace(made, buffers={n: _signed(t, self.arrays[n]) for n, t in made.buffers.items()})

    # Reading, for the extent and for the coordinate.

    def read(self, buffers, where, size, device=None):
        if isinstance(where, Positions):
            return self._coordinates(Eager(buffers, size, where.parent.device), where)
        eager = Eager(buffers, size, device)
        lo, hi = self._bounds(eager, where)
        return self._positions(lo, hi, self._room(buffers, hi))

    def _room(self, buffers, hi) -> int:
        own = buffers.positions
        return own.numel() if own is not None else max(int(hi.max()), 0) if hi.numel() else 0

    def _bounds(self, eager, parents: int):
        numbers = torch.arange(parents, device=eager.device)
        if self.capacity is not None:
            return numbers * self.capacity, (numbers + 1) * self.capacity
        run = lambda machine, parent: self.definition.call("bounds", machine, parent)
        return eager.run("bounds", run, numbers)

    def _positions(self, lo, hi, slots: int) -> Positions:
        """All positions, where fibres lie one behind the other."""
        position = torch.arange(slots, device=lo.device)
        parent = torch.searchsorted(hi.contiguous(), position, right=True).clamp(max=max(lo.numel() - 1, 0))
        if not lo.numel():
            return Positions(torch.zeros_like(position), torch.zeros_like(position), slots, position < 0)
        inside = (position >= lo[parent]) & (position < hi[parent])
        offset = torch.where(inside, position - lo[parent], 0)
        return Positions(parent, offset, slots, None if bool(inside.all()) else inside)

    def _coordinates(self, eager, positions: Positions):
        """The coordinates, and which positions hold entries, of those that lie under a parent."""
        crd = torch.zeros(positions.slots, dtype=torch.int64, device=eager.device)
        valid = torch.zeros_like(crd, dtype=torch.bool)
        inside = torch.arange(positions.slots, device=eager.device)
        inside = inside if positions.valid is None else inside[positions.valid]
        if inside.numel():
            walk = self._walk if self.definition._states else self._at_once
            walk(eager, positions, inside, crd, valid)
        return torch.where(valid, crd, 0), valid if self.pads or positions.valid is not None else None

    def _coordinate(self, eager, lo, pos, *state):
        run = lambda machine, *arguments: self.definition.call("coordinate", machine, None, *arguments)
        found = eager.run("coordinate", run, lo, pos, *state)
        if self.pads:
            return found[0], found[1], found[2:]
        return found[0], torch.ones_like(lo, dtype=torch.bool), found[1:]

    def _at_once(self, eager, positions, inside, crd, valid):
        found, is_entry, _ = self._coordinate(eager, inside - positions.offset[inside], inside)
        crd[inside], valid[inside] = found, is_entry

    def _walk(self, eager, positions, inside, crd, valid):
        """Fibre by fibre side by side, one position after the other."""
        lo = inside[positions.offset[inside] == 0]
        length = torch.zeros_like(crd).index_add_(0, inside - positions.offset[inside], torch.ones_like(inside))[lo]
        run = lambda machine, parent, first: self.definition.call("open", machine, parent, first)
        state = eager.run("open", run, positions.parent[lo], lo)
        for number in range(int(length.max())):
            left = length > number
            lo, length, state = lo[left], length[left], [each[left] for each in state]
            crd[lo + number], valid[lo + number], state = self._coordinate(eager, lo, lo + number, *state)

    # Validation, for the extent and for the coordinate.

    def check(self, check, buffers, *where):
        if len(where) == 2:
            return self._check_bounds(check, buffers, *where)
        return self._check_coordinates(check, buffers, *where[1:])

    def _check_bounds(self, check, buffers, parents, size) -> int:
        device = next((t.device for t in buffers.values()), torch.device("cpu"))
        counts = {"parent": parents}
        for name, own in self.arrays.items():
            length = buffers[name].numel() - own.plus
            wanted = counts.setdefault(own.per, length)
            if buffers[name].ndim != 1 or length != wanted or length < 0:
                shape = f"[{max(wanted, 0) + own.plus}]"
                check.fail(name, f"must have shape {shape}, not {list(buffers[name].shape)}")
        eager = Eager(buffers, size, device, check.fail)
        lo, hi = self._bounds(eager, parents)
        before = torch.cat([hi.new_zeros(1), hi[:-1]])
        bad = (hi < lo) | ((lo < before) if self.gaps else (lo != before)) if parents else hi < lo
        if bool(bad.any()):
            at = int(bad.nonzero()[0])
            rule = (
                "positions begin behind those of the parent before" if self.gaps else "positions follow on each other"
            )
            self._say(check, f"has the positions [{int(lo[at])}, {int(hi[at])}) under parent {at}; {rule}")
        if check.slots is None and bool((hi - lo > size + _MOST_MORE).any()):
            self._say(check, f"has {int((hi - lo).max())} positions under one parent, and {size} coordinates")
        slots = self._room(buffers, hi)
        if check.slots is not None and slots != check.slots:
            self._say(check, f"has {slots} positions, and values for {check.slots}")
        if parents and (int(hi.max()) > slots or (not self.gaps and int(hi.max()) != slots)):
            check.fail(buffers.per_position, f"must have shape [{int(hi.max())}], not [{slots}]")
        if "open" in self.definition.methods():
            run = lambda machine, parent, first: self.definition.call("open", machine, parent, first)
            eager.run("open", run, torch.arange(parents, device=device), lo)
        return slots

    def _check_coordinates(self, check, buffers, positions, size):
        crd, valid = self._coordinates(Eager(buffers, size, positions.parent.device, check.fail), positions)
        valid = torch.ones_like(crd, dtype=torch.bool) if valid is None else valid
        self._fail(check, valid & ((crd < 0) | (crd >= size)), crd, f"is outside of the level's {size}")
        entries = valid.nonzero().reshape(-1)
        parent, crd = positions.parent[entries], crd[entries]
        if not self.ordered:
            order = torch.argsort(crd, stable=True)
            order = order[torch.argsort(parent[order], stable=True)]
            entries, parent, crd = entries[order], parent[order], crd[order]
        flags = torch.zeros_like(valid)
        below = (crd[1:] <= crd[:-1]) if self.unique else (crd[1:] < crd[:-1])
        flags[entries[1:]] = (parent[1:] == parent[:-1]) & below
        full = torch.zeros(valid.shape, dtype=crd.dtype, device=crd.device).index_copy(0, entries, crd)
        self._fail(check, flags, full, "does not lie behind the one before it" if self.ordered else "is there twice")

    def _fail(self, check, bad, crd, message):
        if bool(bad.any()):
            at = int(bad.nonzero()[0])
            self._say(check, f"has coordinate {int(crd[at])} at position {at}, which {message}")

    def _say(self, check, message):
        raise DataError(f"level {check.number} of kind '{self.symbol}' {message}")


def _of_class(cls) -> User:
    return User(cls._symbol)


def _signed(tensor, own):
    """Bits without a sign, as the integer type with one has them."""
    if own.unsigned is None:
        return tensor
    limit = 1 << own.unsigned
    bad = (tensor < 0) | (tensor >= limit)
    if bool(bad.any()):
        raise FormatError(f"'place': {int(tensor[bad][0])} does not fit into {own.dtype}")
    return torch.where(tensor >= limit // 2, tensor - limit, tensor)
