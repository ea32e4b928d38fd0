# SPDX-License-Identifier: Apache-2.0
"""Level kinds and a binding that tests define: runs, hashed, a window, and two that are there already."""

import lacis
import torch


@lacis.kind
class MyRuns(lacis.LevelKind):
    """Entries in runs of neighbours."""

    pos = lacis.array("i32", per="parent", plus=1)
    first = lacis.array("i32", per="parent", plus=1)
    start = lacis.array("i32")
    begin = lacis.array("i32", plus=1)

    def bounds(self, at):
        behind = at.parent + 1  # computed first, as the kinds that are there do: the assembler text has this order
        return self.pos[at.parent], self.pos[behind]

    def open(self, at, lo):
        return self.first[at.parent]

    def coordinate(self, at, lo, pos, run):
        run = run + (pos >= self.begin[run + 1])
        return self.start[run] + pos - self.begin[run], run

    def place(self, fibre):
        crd, parent = fibre.crd[fibre.first], fibre.parent[fibre.first]
        begins = torch.ones_like(crd, dtype=torch.bool)
        begins[1:] = (crd[1:] != crd[:-1] + 1) | (parent[1:] != parent[:-1])
        runs, count = begins.nonzero().reshape(-1), crd.numel()
        first = torch.searchsorted(parent[runs], torch.arange(fibre.parents + 1, device=fibre.crd.device))
        arrays = {"pos": fibre.starts(), "first": first, "start": crd[runs]}
        return lacis.Placed(
            fibre.ends - 1, count, (count,), {**arrays, "begin": torch.cat([runs, runs.new_tensor([count])])}
        )


@lacis.kind
class MyHash(lacis.LevelKind):
    """A table of 2^k slots under each parent, at most half full."""

    base = lacis.array("i32", per="parent", plus=1)
    key = lacis.array("i32", per="position")
    ordered = False

    def bounds(self, at):
        return self.base[at.parent], self.base[at.parent + 1]

    def coordinate(self, at, lo, pos):
        return self.key[pos], self.key[pos] >= 0

    def home(self, crd, mask):
        return crd * 40503 & mask

    def find(self, at, crd):
        base, mask = self.base[at.parent], self.base[at.parent + 1] - self.base[at.parent] - 1

        def occupied(slot):
            return (self.key[base + slot] != crd) & (self.key[base + slot] >= 0)

        slot = base + lacis.whilei(occupied, lambda slot: slot + 1 & mask, self.home(crd, mask))
        return slot, self.key[slot] == crd

    def place(self, fibre):
        crd, parent = fibre.crd[fibre.first], fibre.parent[fibre.first]
        count = torch.bincount(parent, minlength=fibre.parents)
        room = 2 ** torch.log2((2 * count).clamp(min=1).double()).ceil().long()
        base = torch.cat([room.new_zeros(1), torch.cumsum(room, 0)])
        key, mask = crd.new_full((int(base[-1]),), -1), room[parent] - 1
        at, left = self.home(crd, mask), torch.arange(crd.numel(), device=crd.device)
        position = torch.empty_like(at)
        while left.numel():
            slot = base[parent[left]] + at[left]
            free = key[slot] < 0
            key[slot[free]] = crd[left[free]]
            won = key[slot] == crd[left]
            position[left[won]] = slot[won]
            left = left[~won]
            at[left] = at[left] + 1 & mask[left]
        return lacis.Placed(position[fibre.ends - 1], key.numel(), (key.numel(),), {"base": base, "key": key})


@lacis.kind
class MyWindow(lacis.LevelKind):
    """The three neighbours of the diagonal, without arrays."""

    width = 3
    fills = True

    def bounds(self, at):
        return at.parent * self.width, at.parent * self.width + self.width

    def coordinate(self, at, lo, pos):
        crd = lo // self.width + (pos - lo) - self.width // 2
        return crd, (crd >= 0) & (crd < at.size)

    def place(self, fibre):
        offset = fibre.crd - fibre.parent + self.width // 2
        if bool(((offset < 0) | (offset >= self.width)).any()):
            raise lacis.DataError("an entry lies outside of the window")
        slots = fibre.parents * self.width
        return lacis.Placed(fibre.parent * self.width + offset, slots, (slots,))


@lacis.kind
class MyCsr(lacis.LevelKind):
    """`compressed`, written again."""

    pos = lacis.array("i32", per="parent", plus=1)
    crd = lacis.array("i32", per="position")

    def bounds(self, at):
        behind = at.parent + 1  # computed first, as the kinds that are there do: the assembler text has this order
        return self.pos[at.parent], self.pos[behind]

    def coordinate(self, at, lo, pos):
        return self.crd[pos]

    def seek(self, at, lo, hi, crd):
        def halve(ends):
            lo, hi = ends
            middle = lo + (hi - lo >> 1)
            before = self.crd[middle] < crd
            return lacis.where(before, middle + 1, lo), lacis.where(before, hi, middle)

        return lacis.whilei(lambda ends: ends[0] < ends[1], halve, (lo, hi))[0]

    def place(self, fibre):
        count = fibre.first.numel()
        return lacis.Placed(fibre.ends - 1, count, (count,), {"pos": fibre.starts(), "crd": fibre.crd[fibre.first]})


@lacis.kind
class MyDelta(lacis.LevelKind):
    """`var*delta<8>`, written again."""

    pos = lacis.array("i32", per="parent", plus=1)
    delta = lacis.array("u8", per="position")

    def bounds(self, at):
        behind = at.parent + 1  # computed first, as the kinds that are there do: the assembler text has this order
        return self.pos[at.parent], self.pos[behind]

    def open(self, at, lo):
        return -1

    def coordinate(self, at, lo, pos, before):
        delta = self.delta[pos]
        valid = delta != 255
        crd = before + lacis.where(valid, delta + 1, 255)
        return crd, valid, crd

    def place(self, fibre):
        before = torch.full_like(fibre.crd, -1)
        before[1:] = torch.where(fibre.parent[1:] == fibre.parent[:-1], fibre.crd[:-1], -1)
        gap = (fibre.crd - before - 1).clamp(min=0)
        taken = fibre.begins * (1 + gap // 255)
        ends = torch.cumsum(taken, 0)
        bounds = torch.searchsorted(fibre.parent, torch.arange(fibre.parents + 1, device=fibre.crd.device))
        pos = torch.cat([ends.new_zeros(1), ends])[bounds]
        delta = pos.new_full((int(pos[-1]),), 255)
        delta[ends[fibre.first] - 1] = (gap % 255)[fibre.first]
        return lacis.Placed(ends - 1, delta.numel(), (delta.numel(),), {"pos": pos, "delta": delta})


@lacis.binding
class MyPairs:
    """Neighbours change places."""

    def forward(self, i):
        return i ^ 1

    def inverse(self, r):
        return r ^ 1

    def size(self, rows):
        return rows


@lacis.binding
class MyMorton:
    """Z-order."""

    def forward(self, i, j):
        return self.spread(i) << 1 | self.spread(j)

    def inverse(self, z):
        return self.gathered(z >> 1), self.gathered(z)

    def size(self, rows, columns):
        return 4 ** max(rows - 1, columns - 1, 0).bit_length()

    def spread(self, x):
        return sum((x >> bit & 1) << 2 * bit for bit in range(31))

    def gathered(self, z):
        return sum((z >> 2 * bit & 1) << bit for bit in range(31))
