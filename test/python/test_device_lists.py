# SPDX-License-Identifier: Apache-2.0
"""Work lists, layouts and companions, made by operations of static size, are those that loops over numbers make."""

import bisect
import heapq
import itertools

import pytest
import torch

import lacis
from derived_cost import COST
from lacis.emit.group_rows import group_rows as group_rows_text
from lacis.emit.hand_out import hand_out as hand_out_text
from lacis.formats.companion import companion
from lacis.patterns import balance, derived
from lacis.patterns import group_rows as grouping
from lacis.patterns import hand_out as rule
from lacis.patterns.group_rows import group_rows
from lacis.patterns.hand_out import hand_out
from lacis.patterns.place import place, sort_entries
from lacis.patterns.regroup import regroup
from lacis.runtime import pattern_kernels as kernel
from lacis.runtime import kernels

WORKERS = (1, 3, 16, 132)
PANELS = (0, 1, 2, 7, 64)


def lists_of(arrays, pos="pos1"):
    """What each worker has, as tuples."""
    bounds = arrays[pos].tolist()
    rows = list(zip(*(arrays[name].tolist() for name in arrays if name != pos)))
    return [rows[a:b] for a, b in itertools.pairwise(bounds)]


def given(items, workers):
    """Items of (weight, what), the heaviest first to the least loaded worker."""
    load, lists = [(0.0, worker) for worker in range(workers)], [[] for _ in range(workers)]
    for weight, what in sorted(items, key=lambda item: -item[0]):
        time, worker = load[0]
        lists[worker].append(what)
        heapq.heapreplace(load, (time + weight, worker))
    return lists


def costs(panels):
    return [torch.rand(panels).double(), torch.randint(0, 4, (panels,)).double(), torch.full((panels,), 1 / 3).double()]


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("panels", PANELS)
def test_groups(panels, workers):
    """Lists for each number of tiles that the last group may have, the whole groups before it handed out already."""
    for cost in costs(panels):
        got = lists_of(balance.group_lists(cost, workers=workers, raster=3, groups=2), "pos2")
        order = sorted(range(panels), key=lambda panel: -cost[panel])
        load = [(0.0, worker) for worker in range(workers)]
        for group, tiles in itertools.product(range(2), (1, 2, 3)):
            busy, want = sorted(load), [[] for _ in range(workers)]
            for panel, tile in itertools.product(order, range(tiles)):
                time, worker = busy[0]
                want[worker].append((panel, tile))
                heapq.heapreplace(busy, (time + cost[panel].item(), worker))
            first = (group * 3 + tiles - 1) * workers
            assert got[first : first + workers] == want
            load = busy if tiles == 3 else load
        whole, part = (got[number * workers :][:workers] for number in (2, 3 + 1))
        want = [w + [(panel, tile + 3) for panel, tile in p] for w, p in zip(whole, part)]
        assert lists_of(balance.work_lists(cost, 5, workers=workers, raster=3)) == want


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("panels", PANELS)
def test_shares(panels, workers):
    for by in (1, 2, 8):
        counts, cost = torch.randint(0, 20, (panels,)), torch.rand(by + 1).double().sort().values
        want = [
            (cost[min(by, n - first)].item(), (panel, first // by))
            for panel, n in enumerate(counts.tolist())
            for first in range(0, n, by)
        ]
        for spare in (0, 7) if panels else (0,):
            most = int(counts.sum()) + spare
            got = balance.share_lists(counts, cost, by=by, workers=workers, most=most)
            assert lists_of(got) == given(want, workers)


@pytest.mark.parametrize("by, within", [(8, 128), (30, 640), (1, 64)])
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("panels, most", [(0, 1), (1, 60), (7, 60), (64, 60), (64, 2)])
def test_gathered_shares(panels, most, workers, by, within):
    counts = torch.randint(0, most, (panels,))
    positions = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    columns = torch.cat([torch.zeros(0), *(torch.randint(0, 200, (n,)).sort().values * 16 for n in counts.tolist())])
    column, bounds, want = columns.long().tolist(), positions.tolist(), []
    for panel, (begin, end) in enumerate(itertools.pairwise(bounds)):
        first = begin
        while first < end:
            last = bisect.bisect_left(column, column[first] // 64 * 64 + within, first, min(first + by, end))
            want.append((panel, first - begin, last - first))
            first = last
    want.sort(key=lambda share: -share[2])
    whole = len(want) // workers * workers
    rest = want[whole:]
    length = next(n for n in range(1, by + 1) if sum(-(-share[2] // n) for share in rest) <= workers)
    for panel, first, count in rest:
        cuts = [count * n // -(-count // length) for n in range(-(-count // length) + 1)]
        want += [(panel, first + low, high - low) for low, high in itertools.pairwise(cuts)]
    want = want[:whole] + want[whole + len(rest) :]
    for spare in (0, 5) if panels else (0,):
        held = torch.cat([columns, torch.zeros(spare)]).int()
        got = balance.gathered_shares(positions.int(), held, by=by, within=within, workers=workers, segment=8)
        assert lists_of(got) == given([(share[2] + 8.0, share) for share in want], workers)


def test_columns_of_a_panel():
    """Arrays of a layout are as long as its blocks can make them; positions behind the last count for nothing."""
    text = (
        "(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed<unique=false>, "
        "(i floordiv 64 mod 1, j floordiv 16 mod 4) : bitmap, i mod 64 : dense, j mod 16 : dense)"
    )
    dense = torch.ones(64, 64)
    packed = lacis.pack(dense, lacis.Bsr(16, 16))
    layout = regroup(packed.pattern.parts[""], text, capacity=3)
    assert layout.arrays["pos1"].tolist() == [0, 2] and layout.arrays["pos2"].tolist()[:3] == [0, 3, 4]
    assert layout.arrays["bits2"].tolist()[:2] == [0b0111, 0b1000]
    half = lacis.pack(dense * (torch.arange(64) < 16), lacis.Bsr(16, 16))
    layout = regroup(half.pattern.parts[""], text)
    assert layout.arrays["pos2"].tolist() == [0, 1] and len(layout.tile_rows) == 4
    tiles = layout.values(half.values)
    assert torch.equal(tiles[0], torch.ones(64, 16)) and not tiles[1:].any()


@pytest.mark.parametrize("format", [lacis.Csr(), lacis.Csc(), lacis.Coo(), lacis.Bsr(4, 4), lacis.Bcsc(4, 2)], ids=str)
@pytest.mark.parametrize("shape", [(50, 70), (9, 3)])
def test_companions(format, shape):
    """Where every stored block is an entry, sorting alone makes the companion that placing the entries makes."""
    for density, lead in itertools.product((0.0, 0.2, 1.0), ([0], [1])):
        packed = lacis.pack(torch.randn(shape) * (torch.rand(shape) < density), format)
        structure = packed.pattern.parts[""]
        walked = companion(packed.format, lead)
        axes, _ = structure.slot_axes()
        entries = sort_entries(walked, shape, axes, torch.arange(structure.slots))
        want = place(walked, shape, entries).buffers
        assert derived._lists_every_block(structure, walked)
        got = derived.companion_arrays(structure, walked)
        assert list(got) == list(want) and all(torch.equal(got[name], want[name]) for name in want)


def test_the_kernel_hands_out_as_the_heap_does():
    for n, workers, most, groups in ((64, 132, 4, 3), (5, 7, 3, 2), (300, 13, 1, 1), (0, 3, 2, 2), (22, 5, 8, 16)):
        tiles = range(1, most + 1)
        cost = torch.rand(n, dtype=torch.float64).sort(descending=True).values
        cost[: n // 3], cost[n - n // 5 :] = cost[:1], -1.0
        given = hand_out(cost, workers=workers, tiles=tiles, groups=groups)
        assert torch.equal(kernel.hand_out(cost.expand(most, -1).contiguous(), workers, tiles, groups), given)
        tiles = [*tiles, most, 1]
        each = torch.rand(len(tiles), n, dtype=torch.float64)
        given = hand_out(each, workers=workers, tiles=tiles)
        assert torch.equal(kernel.hand_out(each, workers, tiles, 1), given)
        for row, count in enumerate(tiles):
            alone = hand_out(each[row], workers=workers, tiles=[count])
            assert torch.equal(given[0, row, :, :count], alone[0, 0]) and (given[0, row, :, count:] == -1).all()


@pytest.mark.parametrize("rows, steps, panels", [(1, 1, 1), (7, 5, 3), (128, 128, 22), (40, 100, 7), (9, 64, 9)])
def test_rows_of_a_panel_share_steps(rows, steps, panels, monkeypatch):
    """Each row has a place; the kernel and torch order them alike, and what a panel needs is less than by chance."""
    panel = torch.arange(rows) * panels // rows

    def needed(order):
        return sum(present[order[panel == n]].any(0).sum().item() for n in range(panels))

    for density in (0.0, 0.1, 0.4, 1.0):
        present = torch.rand(rows, steps) < density
        order = group_rows(present, panels)
        assert order.sort().values.tolist() == list(range(rows))
        assert rows < 128 or density in (0.0, 1.0) or needed(order) < 0.97 * needed(torch.arange(rows))
        calls = []
        monkeypatch.setattr(grouping, "_DEVICE", "cpu")
        monkeypatch.setattr(grouping, "on_device", lambda *args: calls.append(args) or kernel.group_rows(*args))
        assert torch.equal(group_rows(present, panels), order) and len(calls) == 1
        monkeypatch.undo()
    many = torch.rand(grouping.MOST + 1, 2) < 0.5
    assert group_rows(many, 3).tolist() == list(range(len(many)))


@pytest.mark.parametrize("ties", [False, True])
def test_rounds_end_where_a_worker_comes_again(ties):
    """Costs far apart, and equal ones, zeros too: rounds of one tile and of many, within groups and across them."""
    for n, workers, most, groups in ((1, 2, 2, 3), (9, 4, 2, 3), (3, 132, 8, 16), (33, 132, 4, 5), (40, 1, 1, 2)):
        cost = torch.randint(0, 3, (n,)).double() if ties else torch.rand(n).double() ** 8
        cost = torch.cat([cost.sort(descending=True).values, torch.full((n // 4,), -1.0).double()])
        tiles = range(1, most + 1)
        given = hand_out(cost, workers=workers, tiles=tiles, groups=groups)
        assert torch.equal(kernel.hand_out(cost.expand(most, -1).contiguous(), workers, tiles, groups), given)


@pytest.mark.long
@pytest.mark.parametrize("text, threads", [(hand_out_text, 256), (group_rows_text, 128)])
def test_kernels_are_one_block_a_list(text, threads):
    compiled = kernels.compile_kernel(text(True), "cuda:sm_80")
    assert [launch["block"] for launch in compiled.info["launches"]] == [[threads, 1, 1]]


def test_the_kernel_serves_every_list(monkeypatch):
    """With what each caller gives it: float32 and float64, with strides, integers, tails of none."""
    cost, positions = torch.rand(30, 2)[:, 0], torch.tensor([0, 9, 9, 31], dtype=torch.int32)
    columns = torch.cat([torch.arange(9), torch.arange(22), torch.zeros(4)]).int() * 16
    arrays = {"pos1": torch.tensor([0, 2, 5], dtype=torch.int32), "pos2": torch.arange(6, dtype=torch.int32)}
    panels = balance.panel_cost(arrays, tile_bytes=9, step_bytes=70, cycles=30.0, cost=COST)

    def made():
        return [
            balance.work_lists(cost, 5, workers=7, raster=2),
            balance.group_lists(cost.flip(0), workers=7, raster=3, groups=2),
            balance.group_lists(panels, workers=3, raster=4, groups=2),
            balance.share_lists(positions.diff(), torch.rand(5).sort().values * 0 + 1, by=4, workers=7, most=31),
            balance.share_lists(positions.diff(), torch.arange(5.0).double(), by=4, workers=7, most=35),
            balance.gathered_shares(positions, columns, by=4, within=128, workers=7, segment=8),
        ]

    want, calls = made(), []
    monkeypatch.setattr(rule, "_DEVICE", "cpu")
    monkeypatch.setattr(rule, "on_device", lambda *args: calls.append(args) or kernel.hand_out(*args))
    for here, there in zip(made(), want, strict=True):
        assert all(torch.equal(here[name], there[name]) for name in there)
    assert len(calls) == len(want)
