# SPDX-License-Identifier: Apache-2.0
"""A level kind from outside of lacis is packed, read and validated like its own."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from lacis.errors import DataError
from lacis.formats import Coordinate, Extent, Format, register
from lacis.formats.level import Placed, Positions
from lacis.packing import PackedTensor, pack
from strategies import tensors


@register
@dataclasses.dataclass(frozen=True)
class Even(Extent):
    """Like `var`, but every segment begins at an even position."""

    name = "even"
    has_code = True
    pads = True

    def buffers(self):
        return ("pos",)

    def place(self, fibre):
        room = fibre.starts().diff()
        ends = torch.cumsum(room + room % 2, 0)
        starts = torch.cat([ends.new_zeros(1), ends])
        slots = int(starts[-1])
        return Placed(starts[fibre.parent] + self.index(fibre), slots, (slots,), {"pos": starts})

    def read(self, buffers, parents, size, device):
        position = torch.arange(buffers["crd"].numel(), device=device)
        parent = torch.searchsorted(buffers["pos"][1:].long().contiguous(), position, right=True)
        return Positions(parent, position - buffers["pos"].long()[parent], position.numel())

    def check(self, check, buffers, parents, size):
        check.none("pos", buffers["pos"] % 2 != 0, "position {value} is odd", buffers["pos"])
        return int(buffers["pos"][-1])


@register
@dataclasses.dataclass(frozen=True)
class Mirrored(Coordinate):
    """Coordinates counted from the far end of the axis."""

    name = "mirrored"
    has_code = True

    def buffers(self):
        return ("crd",)

    def place(self, fibre, placed):
        crd = torch.full((placed.slots,), -1, device=fibre.crd.device)
        crd[placed.pos[fibre.first]] = fibre.size - 1 - fibre.crd[fibre.first]
        return {"crd": crd}

    def read(self, buffers, positions, size):
        crd = buffers["crd"].long()
        return (size - 1 - crd).clamp(0, max(size - 1, 0)), crd >= 0

    def check(self, check, buffers, level, positions, size):
        check.none("crd", buffers["crd"] >= size, "coordinate {value} is out of range", buffers["crd"])


@register
@dataclasses.dataclass(frozen=True)
class Runs(Coordinate):
    """Entries in runs of neighbours: a bit for each that begins one, and where the runs begin."""

    name = "runs"
    has_code = True

    def buffers(self):
        return ("first", "begins", "start")

    def width_of(self, buffer):
        return "i32" if buffer in self.buffers() else None

    def place(self, fibre, placed):
        crd, parent = fibre.crd[fibre.first], fibre.parent[fibre.first]
        begins = torch.ones_like(crd)
        begins[1:] = ((crd[1:] != crd[:-1] + 1) | (parent[1:] != parent[:-1])).long()
        starts = begins.bool()
        first = torch.searchsorted(parent[starts], torch.arange(fibre.parents + 1, device=crd.device))
        words = torch.nn.functional.pad(begins, (0, -len(begins) % 32)).reshape(-1, 32)
        bits = (words << torch.arange(32, device=crd.device)).sum(1)
        return {"first": first, "begins": torch.where(bits < 2**31, bits, bits - 2**32), "start": crd[starts]}

    def read(self, buffers, positions, size):
        bits = (buffers["begins"].long()[:, None] >> torch.arange(32)) & 1
        begins = bits.reshape(-1)[: positions.slots]
        run = torch.cumsum(begins, 0) - 1
        place = torch.arange(positions.slots)
        return buffers["start"].long()[run] + place - place[begins.bool()][run], None

    def check(self, check, buffers, level, positions, size):
        crd, _ = self.read(buffers, positions, size)
        check.none("begins", (crd >= size).any().reshape(1), "a run ends outside of the level")


TEXTS = [
    "(i, j) -> (i : dense, j : even*mirrored)",
    "(i, j) -> (j : even*crd, i : var*mirrored)",
    "(i, j) -> (i floordiv 4 : dense, j floordiv 3 : even*mirrored, i mod 4 : dense, j mod 3 : dense)",
    "(i, j) -> (i : dense, j : var*runs)",
]


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=40, deadline=None)
@given(tensor=tensors())
def test_an_extent_and_a_coordinate_from_outside(text, tensor):
    fmt = Format.parse(text)
    assert Format.parse(str(fmt)) == fmt and text in str(fmt)
    assert torch.equal(pack(tensor, fmt).validate().to_dense(), tensor)


def test_its_own_checks_are_asked():
    packed = pack(torch.eye(3), TEXTS[0])
    packed.storage["crd1"][0] = 9
    with pytest.raises(DataError, match=r"'crd1' at \[0\]: coordinate 9 is out of range"):
        PackedTensor.from_storage(packed.format, packed.shape, packed.tensors)
