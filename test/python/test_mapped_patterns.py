# SPDX-License-Identifier: Apache-2.0
"""What follows from several patterns of one size at once is what follows from each alone, bit by bit."""

import lacis
import pytest
import torch
from derived_cost import COST
from lacis.patterns import Pattern
from lacis.patterns import group_rows as grouping
from lacis.patterns import hand_out as handing
from lacis.patterns.derivation import Derivation
from lacis.patterns.structure import Structure
from lacis.patterns.transforms import is_wrapped, mapped
from lacis.runtime import pattern_kernels as kernel

_TILES = (
    "#lacis.format<(i, j) -> ({0} floordiv {2} : dense, {1} floordiv 64 : compressed<unique=false>, "
    "({0} floordiv 64 mod {3}, {1} floordiv 16 mod 4) : bitmap, {4} : dense, {5} : dense)>"
)


def step(function, source=None, **parameters):
    return Derivation(function, tuple(sorted(parameters.items())), source)


_ROWS = step("layout", capacity=12, format=_TILES.format("i", "j", 384, 6, "i mod 64", "j mod 16"))
_LINKED = step(
    "layout",
    capacity=2,
    format="#lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 16 : compressed<unique=false>, "
    "(i floordiv 16 mod 8, j floordiv 16 mod 1) : bitmap, link, i mod 16 : dense, j mod 16 : dense)>",
)
_COMPANION = (
    "(i, j) -> (j floordiv 16 : dense, i floordiv 16 : compressed<unique=false>, link, i mod 16 : dense, "
    "j mod 16 : dense)"
)
STEPS = {
    "a companion": Derivation.index(_COMPANION),
    "tiles of rows": step("layout", **_ROWS.given, swizzle=64),
    "tiles of columns": step("layout", capacity=12, format=_TILES.format("j", "i", 128, 2, "i mod 16", "j mod 64")),
    "links": _LINKED,
    "lists of panels": step("tile_schedule", _ROWS, columns=128, swizzle_group=8, period=3, cost=COST),
    "lists of cut panels": step("tile_schedule", _ROWS, columns=128, swizzle_group=2, period=2, split=3, cost=COST),
    "lists of segments": step("segment_schedule", _LINKED, length=3, cost=COST),
    "lists of cut segments": step("segment_schedule", _LINKED, length=3, split=8, cost=COST),
    "gathered lists": step("segment_schedule", _LINKED, length=5, span=64, cost=COST),
    "gathered and cut lists": step("segment_schedule", _LINKED, length=5, span=64, split=4, cost=COST),
}


def patterns(count, blocks, shape=(400, 200), block=16):
    """So many patterns of as many stored blocks, where most rows of blocks are empty in the last."""
    grid = [-(-size // block) for size in shape]
    found = []
    for n in range(count):
        order = torch.rand(grid[0] * grid[1]).argsort() if n < count - 1 else torch.arange(grid[0] * grid[1])
        mask = torch.zeros(grid[0] * grid[1], dtype=torch.bool).index_fill(0, order[:blocks], True).reshape(grid)
        mask = mask.repeat_interleave(block, 0).repeat_interleave(block, 1)[: shape[0], : shape[1]]
        found.append(lacis.pack(torch.randn(shape) * mask, lacis.Bsr(block, block), mask=mask))
    return found


def made(step, structure, values):
    pattern = Pattern(structure.format, {"": structure})
    found = dict(pattern.derived(step))
    if step.function == "layout" and step is not _LINKED:
        layout = pattern.layout(step)
        places = layout.places(step.line, values.element_size())
        found |= {"values": layout.values(values, step.line), "places": places}
    return found


@pytest.mark.parametrize("blocks", [0, 1, 60, 13 * 25])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("has_kernels", [False, True])
def test_several_at_once_are_as_each_alone(step, blocks, has_kernels, monkeypatch):
    if has_kernels:  # those of a GPU, here compiled for the CPU
        for module, function in ((handing, kernel.hand_out), (grouping, kernel.group_rows)):
            monkeypatch.setattr(module, "_DEVICE", "cpu")
            monkeypatch.setattr(module, "on_device", function)
    several = patterns(4, blocks)
    parts = [each.pattern.part() for each in several]
    # blocks at the edges are taken whole: which of their places are entries is no part of what is stacked
    parts = [Structure.of_values(p.format, p.shape, p.buffers, e.values) for p, e in zip(parts, several)]
    stacked = {name: torch.stack([part.buffers[name] for part in parts]) for name in parts[0].buffers}
    stacked["values"] = torch.stack([each.values for each in several])

    def of_one(given):
        assert all(map(is_wrapped, given.values()))
        buffers = {name: array for name, array in given.items() if name != "values"}
        structure = Structure.of_values(parts[0].format, parts[0].shape, buffers, given["values"])
        return made(step, structure, given["values"])

    found = mapped(of_one, stacked)
    for n, (part, each) in enumerate(zip(parts, several)):
        want = made(step, part, each.values)
        assert found.keys() == want.keys()
        for name, tensor in want.items():
            assert found[name].dtype == tensor.dtype and torch.equal(found[name][n], tensor), (n, name)


def test_arrays_of_several_are_asked_for_only_in_a_map():
    """Of patterns that a transform of the user's stacks nothing can be made, also after a map of Lacis' own failed."""
    several = patterns(2, 20)
    stacked = {name: torch.stack([e.pattern.storage[name] for e in several]) for name in ("pos1", "crd1")}
    part = several[0].pattern.part()

    def of_one(given):
        return Pattern(part.format, {"": Structure(part.format, part.shape, given, 20, part.device)}).derived(_ROWS)

    def fail(given):
        raise ValueError("stop")

    assert mapped(of_one, stacked)["pos1"].shape[0] == 2
    with pytest.raises(ValueError, match="stop"):
        mapped(fail, stacked)
    with pytest.raises(lacis.DataError, match="cannot be made of several patterns at once"):
        torch.vmap(of_one)(stacked)
