# SPDX-License-Identifier: Apache-2.0
"""The tile kernels written by hand assemble clean, and the arrays that they walk say what the pattern says."""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from bench import tile_epilogue, tile_gradients, tiles  # noqa: E402

import lacis
from lacis import _core
from lacis.errors import FormatError
from derived_cost import COST
from lacis.patterns.balance import gathered_shares, panel_cost, share_lists, work_lists
from lacis.patterns.regroup import exchange_chunks, regroup
from lacis.runtime import ptxas

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "Tiles"
PAIRS = (
    "(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed, i floordiv 64 mod 2 : bitmap, link, "
    "i mod 64 : dense, j mod 64 : dense)"
)
COLUMN_PAIRS = (
    "(i, j) -> (j floordiv 128 : dense, i floordiv 64 : compressed, j floordiv 64 mod 2 : bitmap, link, "
    "i mod 64 : dense, j mod 64 : dense)"
)
COLUMN_SLABS = (
    "(i, j) -> (j floordiv 384 : dense, i floordiv 64 : compressed<unique=false>, "
    "(j floordiv 64 mod 6, i floordiv 16 mod 4) : bitmap, i mod 16 : dense, j mod 64 : dense)"
)
SLABS = (
    "(i, j) -> (i floordiv 384 : dense, j floordiv 64 : compressed<unique=false>, "
    "(i floordiv 64 mod 6, j floordiv 16 mod 4) : bitmap, i mod 64 : dense, j mod 16 : dense)"
)


@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.mlir") if path.stem != "checked"))
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_ptx_assembles_clean(name, dtype):
    """No C75xx and no spill."""
    options = {"ptxas": ptxas.find(), "check_ptxas": True, "stages": True}
    text = (FOLDER / f"{name}.mlir").read_text().replace("bf16", dtype)
    compiled = _core.compile(text, "cuda:sm_90a", options)
    assert "lacis.roles" in compiled.stages["tiles"] and "lacis.mma" in compiled.stages["buffers"]
    info = _core.artifact_info(compiled.artifact)
    assert info["tensor_maps"] and info["launches"][0]["shared"] > 48 * 1024


@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize(
    "layout",
    [*tile_epilogue.EPILOGUES.values(), tile_gradients.INPUT16_WIDE, tiles.BLOCK16_WIDE],
    ids=lambda layout: layout.file,
)
def test_variants_assemble_clean(layout):
    """Activations, and stages with more slabs."""
    _core.compile(layout.text, "cuda:sm_90a", {"ptxas": ptxas.find(), "check_ptxas": True})


def blocks(rows, columns, block, density):
    torch.manual_seed(0)
    mask = torch.rand(-(-rows // block), -(-columns // block)) < density
    mask = mask.repeat_interleave(block, 0).repeat_interleave(block, 1)[:rows, :columns]
    dense = torch.randn(rows, columns) * mask
    text = (
        f"(i, j) -> (i floordiv {block} : dense, j floordiv {block} : compressed, "
        f"i mod {block} : dense, j mod {block} : dense)"
    )
    return dense, lacis.pack(dense, lacis.Format.parse(text))


@pytest.mark.parametrize(
    "layout,block,options",
    [
        (PAIRS, 64, {"reorder": True}),
        (PAIRS, 64, {}),
        (SLABS, 16, {"capacity": 12}),
        (SLABS, 16, {"reorder": True}),
        (SLABS, 32, {"capacity": 5}),
        (SLABS, 128, {}),
        (COLUMN_PAIRS, 64, {"reorder": True}),
        (COLUMN_PAIRS, 64, {}),
        (COLUMN_SLABS, 16, {"capacity": 12}),
        (COLUMN_SLABS, 32, {"reorder": True}),
    ],
)
@pytest.mark.parametrize("shape", [(1000, 712), (64, 64), (1, 1)])
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_layout_holds_the_matrix(layout, block, options, shape, density):
    """The loops of a tile kernel over the arrays, in Python."""
    dense, packed = blocks(*shape, block, density)
    grouped = regroup(packed.pattern.parts[""], layout, **options)
    a, tiles = grouped.arrays, grouped.values(packed.values)
    outer, inner = (level.digits[0] for level in grouped.format.levels[:2])
    tile = grouped.format.tile
    height, width = outer.div // tile[outer.axis], inner.div // tile[inner.axis]
    found = torch.zeros(*(-(-size // 64) * 64 + 64 + block for size in shape))
    for panel in range(len(a["pos1"]) - 1):
        for stage in range(a["pos1"][panel], a["pos1"][panel + 1]):
            assert a["pos2"][stage + 1] - a["pos2"][stage] <= options.get("capacity", 32)
            present = [bit for bit in range(height * width) if a["bits2"][stage] >> bit & 1]
            for position, bit in zip(range(a["pos2"][stage], a["pos2"][stage + 1]), present, strict=True):
                at = [0, 0]
                at[outer.axis] = a["origin"][panel * height + bit // width] * tile[outer.axis]
                at[inner.axis] = a["crd1"][stage] * inner.div + bit % width * tile[inner.axis]
                found[at[0] : at[0] + tile[0], at[1] : at[1] + tile[1]] += tiles[position]
                if "link3" in a:
                    assert torch.equal(packed.values[a["link3"][position]], tiles[position])
    assert torch.equal(found[: shape[0], : shape[1]], dense)


def test_reordered_rows_share_columns():
    mask = torch.zeros(4, 8, dtype=torch.bool)
    mask[0, :4] = mask[3, :4] = mask[1, 4:] = mask[2, 4:] = True
    dense = mask.repeat_interleave(64, 0).repeat_interleave(64, 1).float()
    packed = lacis.pack(dense, lacis.Bsr(64, 64))
    steps = [int(regroup(packed.pattern.parts[""], PAIRS, reorder=r).arrays["pos1"][-1]) for r in (False, True)]
    assert steps == [16, 8]


@pytest.mark.parametrize("sides", [(8, 16), (64, 16), (32, 32)])
def test_several_matrices_follow_one_another(sides):
    """Each begins with a panel, and has the arrays that it has alone, where its rows keep their order."""
    below = "i floordiv 32 : dense, j floordiv 16 : compressed, i floordiv 8 mod 4 : bitmap, "
    below += "i mod 8 : dense, j mod 16 : dense"
    blocks = f"i floordiv {sides[0]} : dense, j floordiv {sides[1]} : compressed, i mod {sides[0]} : dense, "
    blocks += f"j mod {sides[1]} : dense"
    above = "(b, h, i, j) -> (b : dense, h : dense, "
    grid = torch.rand(2, 3, -(-72 // sides[0]), -(-70 // sides[1])) < 0.4
    grid[0, 1] = False
    mask = grid.repeat_interleave(sides[0], 2).repeat_interleave(sides[1], 3)[:, :, :72, :70]
    made = regroup(lacis.Pattern.from_mask(mask, f"{above}{blocks})").part(), f"{above}{below})").arrays
    assert len(made["pos3"]) == 2 * 3 * 3 + 1 and made["origin"].tolist() == list(range(2 * 3 * 3 * 4))
    first = 0
    for number, own in enumerate(mask.flatten(0, 1)):
        alone = regroup(lacis.Pattern.from_mask(own, f"(i, j) -> ({blocks})").part(), f"(i, j) -> ({below})").arrays
        steps = int(alone["pos1"][3])
        assert torch.equal(made["pos3"][3 * number : 3 * number + 4] - first, alone["pos1"][:4])
        for name, other in (("crd3", "crd1"), ("bits4", "bits2")):
            assert torch.equal(made[name][first : first + steps], alone[other][:steps])
        first += steps


def test_refuses_what_is_no_execution_layout():
    csr = lacis.pack(torch.eye(4), lacis.Csr)
    with pytest.raises(FormatError, match="matrices with stored blocks"):
        regroup(csr.pattern.parts[""], PAIRS)
    with pytest.raises(FormatError, match="do not nest"):
        regroup(blocks(96, 96, 48, 1.0)[1].pattern.parts[""], PAIRS)
    of_heads = f"(h, i, j) -> (h : dense, {PAIRS.split('-> (')[1]}"
    several = "(h, i, j) -> (h : dense, i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, "
    several = lacis.Pattern.from_mask(torch.ones(2, 64, 64).bool(), several + "j mod 64 : dense)")
    with pytest.raises(FormatError, match="below a dense level for each axis before theirs, without links"):
        regroup(several.part(), PAIRS)
    with pytest.raises(FormatError, match="of several matrices are of patterns, without values"):
        regroup(several.part(), of_heads.replace("link, ", "")).pieces


def test_exchanged_chunks():
    tile = torch.arange(64 * 16).reshape(1, 64, 16).to(torch.int16)
    got = exchange_chunks(tile, 32)
    assert torch.equal(got[:, :4], tile[:, :4]) and torch.equal(got[:, 4:8], tile[:, 4:8].roll(8, 2))
    assert torch.equal(exchange_chunks(got, 32), tile)


def test_work_lists_are_fair():
    cost = torch.tensor([5.0, 1.0, 1.0, 1.0, 4.0, 0.5])
    lists = work_lists(cost, 7, workers=5, raster=2)
    pairs = set(zip(lists["crd1"].tolist(), lists["crd2"].tolist()))
    assert pairs == {(panel, tile) for panel in range(6) for tile in range(7)}
    bounds = lists["pos1"].tolist()
    loads = [sum(cost[p] for p in lists["crd1"][a:b].tolist()) for a, b in zip(bounds, bounds[1:])]
    assert max(loads) < 1.2 * sum(loads) / 5


def test_cost_of_panels():
    arrays = {"pos1": torch.tensor([0, 2, 2]), "pos2": torch.tensor([0, 3, 4])}
    cost = panel_cost(arrays, tile_bytes=0, step_bytes=70_000, cycles=3000.0, cost=COST._replace(panel=500))
    assert cost.tolist() == [4 * 2 + 0.5, 2 * 0.5]


def test_shares_cover_every_position():
    counts = torch.tensor([5, 0, 9, 1])
    lists = share_lists(counts, torch.tensor([0.0, 1.0, 1.5, 1.75, 2.0]), by=4, workers=3, most=int(counts.sum()))
    pairs = sorted(zip(lists["crd1"].tolist(), lists["crd2"].tolist()))
    assert pairs == [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2), (3, 0)]
    assert lists["pos1"].tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("steps, workers", [(1, 4), (40, 1), (300, 7), (300, 132)])
def test_gathered_shares_cover_every_position(steps, workers):
    """Each once, in shares that are short enough, narrow enough, and as many for each worker."""
    torch.manual_seed(0)
    columns = torch.cat([torch.randint(0, 100, (count,)).sort().values * 16 for count in (steps, 0, steps // 2)])
    positions = torch.tensor([0, steps, steps, len(columns)])
    lists = gathered_shares(positions, columns, by=8, within=128, workers=workers, segment=8)
    found = []
    for panel, first, count in zip(*(lists[f"crd{n}"].tolist()[: lists["pos1"][-1]] for n in (1, 2, 3))):
        own = range(int(positions[panel]) + first, int(positions[panel]) + first + count)
        assert 0 < count <= 8 and own[-1] < positions[panel + 1]
        assert columns[own[-1]] + 16 - columns[own[0]] // 64 * 64 <= 128
        found += own
    assert sorted(found) == list(range(len(columns)))
    lengths = lists["pos1"].diff()
    assert len(lengths) == workers and lengths.max() - lengths.min() <= 1 + (len(columns) < 8 * workers)


@pytest.mark.parametrize(
    "layout",
    [tiles.BLOCK128, tiles.BLOCK64, tiles.BLOCK16, tile_epilogue.EPILOGUES["relu"]]
    + [tile_gradients.INPUT128, tile_gradients.INPUT64, tile_gradients.INPUT16]
    + [tile_gradients.VALUES128, tile_gradients.VALUES64],
    ids=lambda layout: layout.file,
)
@pytest.mark.parametrize("density", [0.0, 0.5])
def test_arrays_that_a_kernel_asks_for(layout, density, monkeypatch):
    """Each is made from the pattern, and the work lists name every panel that has work."""
    monkeypatch.setattr(tiles, "processors", lambda device: 5)
    weight, _ = blocks(1000, 712, layout.block, density)
    layer = tiles.Layer(layout, weight.bfloat16(), 333)
    assert len(layer.storage) == len(layer.kernel.storage) + len(layer.kernel.derived)
    lists = {
        d.name: t
        for d, t in zip(layer.kernel.derived, layer.storage[len(layer.kernel.storage) :])
        if d.step.function.endswith("schedule")
    }
    assert len(lists["pos1"]) == 6 and lists["pos1"][-1] <= len(lists["crd1"]) == len(lists["crd2"])
