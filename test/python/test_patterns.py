# SPDX-License-Identifier: Apache-2.0
"""Patterns: transposes over the same arrays, and companions made on the device."""

import itertools
import warnings

import lacis
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lacis.errors import DataError, FormatError
from lacis.formats import Bcsc, Coo, Csc, Csr, Ell, Format, companion, decompose
from lacis.packing import pack
from lacis.patterns import Pattern, announce
from lacis.patterns.derived import companion_arrays
from lacis.patterns.room import with_room
from strategies import NEST, PREDEFINED, formats, sparse, tensors

COO = "i : compressed<unique=false>, j : singleton, k : singleton"
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(formats(), tensors(dtype=torch.float32), st.sampled_from([(0,), (1,), (0, 1)]))
def test_companion_names_every_slot_once(fmt, tensor, leading):
    other = companion(fmt, leading)
    if other is None:
        return
    assert Format.parse(str(other)) == other
    packed = pack(tensor, fmt)
    structure = packed.pattern.part()
    arrays = packed.derived(str(other))
    lead, n = len(leading), len(other.prefix)
    link = arrays[f"link{n - 1}"].long()
    axes, valid = structure.slot_axes()
    assert torch.equal(link.sort().values, valid.nonzero().reshape(-1))
    finest = [min(d.div for lv in fmt.prefix for d in lv.digits if d.axis == a) for a in range(2)]
    sizes = [-(-tensor.shape[a] // finest[a]) for a in leading]
    pos = arrays[f"pos{lead}"].long()
    assert pos.numel() == torch.Size(sizes).numel() + 1 and pos[0] == 0 and pos[-1] == link.numel()
    rows = torch.repeat_interleave(torch.arange(pos.numel() - 1), pos.diff())
    expected = torch.zeros_like(link)
    for axis, size in zip(leading, sizes):
        expected = expected * size + axes[axis][link] // finest[axis]
    assert torch.equal(rows, expected)
    key = rows * 10**6 + arrays[f"crd{lead}"].long()
    assert bool((key.diff() >= 0).all())
    assert bool(((key.diff() > 0) | (link.diff() > 0)).all())


def test_companion_tables():
    assert str(companion(Bcsc(16, 16), [0])) == str(
        Format.parse(
            "(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed<unique=false>, link, "
            "i mod 16 : dense, j mod 16 : dense)"
        )
    )
    assert str(companion(NEST, [0])) == "#lacis.format<(i, j) -> (i : dense, j : compressed<unique=false>, link)>"
    assert companion(Csr(), [0, 1]) is None


@pytest.mark.parametrize("order", list(itertools.permutations("ijk")), ids="".join)
@pytest.mark.parametrize("own", [COO, "k : dense, i : dense, j : compressed"])
def test_companions_have_the_order_of_their_coordinates(own, order):
    """Their blocks are sorted by as few levels as the order of the slots leaves to do, and those with room as all."""
    mask = torch.rand(7, 5, 6, generator=torch.Generator().manual_seed(0)) < 0.3
    part = Pattern.from_mask(mask, f"(i, j, k) -> ({own})").part()
    for structure in (part, with_room(part, part.slots + 3)):
        axes, sound = structure.slot_axes()
        keys = [dict(zip("ijk", axes))[letter] for letter in order]
        expected = torch.arange(structure.slots)
        for key in [*reversed(keys), ~sound]:
            expected = expected[torch.sort(key[expected], stable=True).indices]
        first, *rest = order
        text = f"({first} : compressed<unique=false>, {rest[0]} : singleton, {rest[1]} : singleton, link)"
        made = companion_arrays(structure, f"(i, j, k) -> {text}")
        assert made["link3"].tolist() == expected.tolist()
        for number, key in enumerate(keys):
            assert made[f"crd{number}"].tolist() == torch.where(sound, key, -1)[expected].tolist()


def test_companion_arrays():
    a = torch.tensor([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 5.0]])
    csc = pack(a, Csc)
    by_rows = csc.derived("(i, j) -> (i : dense, j : compressed<unique=false>, link)")
    assert {k: v.tolist() for k, v in by_rows.items()} == {
        "pos1": [0, 2, 2, 5],
        "crd1": [1, 3, 0, 2, 3],
        "link2": [1, 3, 0, 2, 4],
    }
    assert csc.derived("(i, j) -> (i : dense, j : compressed<unique=false>, link)") is by_rows


def test_companions_of_parts_and_of_padding():
    a = torch.tensor([[1, 2, 3], [0, 4, 0], [5, 0, 6.0]])
    packed = pack(a, decompose(ell=Ell(2), rest=Coo))
    by_columns = packed.derived(str(companion(Ell(2), [1])), "ell")
    assert {k: v.tolist() for k, v in by_columns.items()} == {
        "pos1": [0, 2, 4, 5],
        "crd1": [0, 2, 0, 1, 2],
        "link2": [0, 4, 1, 2, 5],
    }
    with pytest.raises(FormatError, match="no part 'nosuch'"):
        packed.derived(str(companion(Ell(2), [1])), "nosuch")
    with pytest.raises(FormatError, match="needs a 'link' level"):
        packed.derived(str(Csr()), "ell")


def test_patterns_transpose_without_copies():
    mask = sparse(6, 9) != 0
    pattern = Pattern.from_mask(mask, Csr)
    turned = pattern.transpose()
    assert turned.format == Csc() and turned.shape == (9, 6)
    assert torch.equal(turned.to_mask(), mask.T)
    assert turned.storage["crd1"].data_ptr() == pattern.storage["crd1"].data_ptr()


@pytest.mark.parametrize("fmt", PREDEFINED, ids=str)
def test_transpose_of_every_format(fmt):
    a = sparse(10, 13)
    assert torch.equal(pack(a, fmt).transpose().validate().to_dense(), a.T)


@pytest.mark.parametrize("fmt", [*PREDEFINED, decompose(ell=Ell(2), rest=Coo)], ids=str)
def test_gather_takes_what_pack_takes(fmt):
    a = sparse(21, 18)
    packed = pack(a, fmt)
    full = torch.randn(21, 18, requires_grad=True)
    kept = torch.where(a != 0, full, 0)
    again = packed.with_values(packed.pattern.gather(full))
    assert torch.equal(again.to_dense(), kept)
    again.to_dense().sum().backward()
    assert torch.equal(full.grad, (a != 0).float())


def test_gather_gives_a_place_that_is_there_twice_one_value():
    twice = torch.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]]), torch.ones(2), (1, 2))
    packed = pack(twice, Coo)
    assert packed.pattern.gather(torch.tensor([[5.0, 7.0]])).tolist() == [7.0, 0.0]
    with pytest.raises(DataError, match=r"shape \[2, 2\]"):
        packed.pattern.gather(torch.ones(2, 2))


def test_packing_finds_uneven_axes_and_a_captured_graph_refuses_what_waits(monkeypatch):
    dense = torch.zeros(600, 500)
    dense[3] = 1
    capturing = lambda answer: monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: answer)
    monkeypatch.setattr(Pattern, "device", property(lambda self: torch.device("cuda")))
    capturing(False)
    pattern = pack(dense, Csr).pattern
    lazy = Pattern(pattern.format, pattern.parts)
    assert lazy.uneven == Pattern.from_mask(dense != 0, Coo).uneven == (True, False)
    capturing(True)
    assert pattern.uneven == (True, False) and pattern.transpose().uneven == (False, True)
    assert pack(dense, decompose(ell=Ell(width=3), rest=Coo)).pattern.uneven == (True, False)
    with pytest.raises(DataError, match="while a CUDA graph is captured.*once before the capture"):
        Pattern(pattern.format, pattern.parts).uneven  # noqa: B018
    padded = Pattern.from_mask(dense != 0, Ell)
    with pytest.raises(DataError, match="link.*while a CUDA graph is captured"):
        padded.derived(str(companion(Ell(width=500), [1])))
    columns = str(companion(Csr(), [1]))
    made = pattern.derived(columns)  # without a wait, and not kept: it holds nothing before the graph runs
    assert pattern.derived(columns) is not made
    capturing(False)
    kept = pattern.derived(columns)
    assert kept is not made and pattern.derived(columns) is kept


def test_refusals():
    with pytest.raises(DataError, match="must be a bool tensor"):
        Pattern.from_mask(torch.ones(2, 2), Csr)
    with pytest.raises(DataError, match="a permutation of 2 axes"):
        Pattern.from_mask(torch.ones(2, 2) > 0, Csr).transpose(0, 0)


@pytest.mark.parametrize("make", ["pack", "companion"])
def test_an_array_for_each_of_very_many_rows_is_announced(monkeypatch, make):
    """Before it is made: the bytes, and what to do."""
    one = torch.sparse_coo_tensor(torch.tensor([[5], [1]]), torch.ones(1), (1000, 4), check_invariants=True)
    packed, text = pack(one, Coo), "(i, j) -> (i : dense, j : compressed<unique=false>, link)"
    monkeypatch.setattr(announce, "MOST_SILENT", 8 * 1000)
    message = r"test_patterns.py:\d+: 'compressed.*' of .* takes 8008 bytes for its 1001 positions, filled or not; .*"
    with pytest.warns(UserWarning, match=message):
        pack(one, Csr) if make == "pack" else packed.derived(text)
    monkeypatch.setattr(announce, "MOST_SILENT", 8 * 1001)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pack(one, Csr)


@pytest.mark.parametrize("block", [None, (4, 8), (7, 3)])
def test_places_are_a_mask_by_numbers(block):
    """In any order; of whole blocks too, those at the edges included."""
    shape = (24, 40)
    grid = shape if block is None else tuple(-(-n // b) for n, b in zip(shape, block))
    chosen = torch.rand(grid, generator=torch.Generator().manual_seed(0)) < 0.3
    numbers = chosen.reshape(-1).nonzero().reshape(-1)
    mask = chosen
    if block is not None:
        mask = chosen.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[: shape[0], : shape[1]]
    formats = [lacis.Csr(), lacis.Csc(), lacis.Coo(), lacis.Ell()] if block is None else []
    formats += [] if block is None else [lacis.Bsr(*block), lacis.Bcsc(*block), lacis.BlockedEll(*block)]
    for format in formats:
        expected = lacis.Pattern.from_mask(mask, format)
        found = lacis.Pattern.of_places(format, shape, numbers.flip(0), block=block).validate()
        assert found.nnz == expected.nnz and found.valid == {}
        assert all(torch.equal(found.storage[name], array) for name, array in expected.storage.items())
        twice = lacis.Pattern.of_places(format, shape, torch.cat([numbers, numbers]), distinct=False, block=block)
        assert torch.equal(twice.to_mask(), mask)


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((lacis.Csr(), (2, 2), torch.tensor([4])), "positions are from 0 to 3"),
        ((lacis.Csr(), (2, 2), torch.tensor([1, 1])), "a position is there twice"),
        ((lacis.Csr(), (2, 2), torch.tensor([1.0])), "positions are an int64 tensor"),
        ((lacis.Bsr(2, 2), (2, 2), torch.tensor([0]), True, (2,)), "blocks of 1 axes"),
    ],
)
def test_places_that_are_none(arguments, said):
    with pytest.raises(lacis.DataError, match=said):
        lacis.Pattern.of_places(*arguments)
    with pytest.raises(lacis.FormatError, match="does not store whole blocks"):
        lacis.Pattern.of_places(lacis.Csr(), (2, 2), torch.tensor([0]), block=(2, 2))
