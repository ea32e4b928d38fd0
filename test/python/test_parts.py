# SPDX-License-Identifier: Apache-2.0
"""Shares whose sums are cut: their lists, and the gradients of values that are made by them, against float64."""

import dataclasses

import pytest
import torch

import lacis
from lacis import _core
from lacis.capture import capture_einsum
from lacis.capture.gradient import gradient_specs
from lacis.emit import emit
from lacis.patterns import functions
from lacis.patterns.balance import gathered_shares
from lacis.patterns.parts import gathered_part_lists, part_lists
from lacis.runtime import ptxas
from lacis.runtime.compile import load_kernel
from lacis.runtime.kernels import compile_kernel

COUNTS = {"none": [], "empty": [0, 0], "one": [1], "few": [3, 0, 9, 1], "many": [(7 * n) % 31 for n in range(40)]}


@pytest.mark.parametrize("workers", [1, 7, 40, 132])
@pytest.mark.parametrize("name", COUNTS)
def test_each_part_is_done_once(name, workers):
    counts = torch.tensor(COUNTS[name], dtype=torch.int64)
    cost = torch.tensor([0.0, 1.5, 2.5, 3.5, 3.5], dtype=torch.float64)
    options = {"by": 4, "workers": workers, "most": int(counts.sum()) + 3, "parts": 4, "kept": 16}
    lists = part_lists(counts, cost, **options)
    shares = {(panel, share) for panel, count in enumerate(counts.tolist()) for share in range(-(-count // 4))}
    rows = list(zip(*(lists[f"crd{n}"].tolist() for n in range(2, 7))))
    pos = lists["pos2"].tolist()
    assert sorted(rows[: pos[workers]]) == [(*share, 0, 1, -1) for share in sorted(shares)]
    parts = {share: [] for share in shares}
    for panel, share, part, number, slot in rows[pos[workers] : pos[-1]]:
        parts[panel, share].append((part, number, slot))
    slots = []
    for found in parts.values():
        number, first = found[0][1], min(slot for _, _, slot in found)
        assert sorted(found) == [(part, number, first + part if number > 1 else -1) for part in range(number)]
        slots += [slot for _, _, slot in found if slot >= 0]
    assert sorted(slots) == list(range(len(slots))) and len(slots) <= 2 * workers


@pytest.mark.parametrize("workers", [1, 7, 132])
@pytest.mark.parametrize("panels, most", [(0, 1), (1, 60), (7, 60), (3, 2)])
def test_each_part_of_gathered_shares_is_done_once(panels, most, workers):
    counts = torch.randint(0, most, (panels,))
    positions = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    columns = torch.cat([torch.zeros(0), *(torch.randint(0, 200, (n,)).sort().values * 16 for n in counts.tolist())])
    options = {"by": 6, "within": 640, "workers": workers, "segment": 8}
    lists = gathered_part_lists(positions.int(), columns.int(), **options, parts=4, kept=16)
    plain = gathered_shares(positions.int(), columns.int(), **options)
    rows = list(zip(*(lists[f"crd{n}"].tolist() for n in range(2, 8))))
    pos, count = lists["pos2"].tolist(), plain["pos1"][-1].item()
    shares = list(zip(*(plain[f"crd{n}"][:count].tolist() for n in range(1, 4))))
    assert pos[: workers + 1] == plain["pos1"].tolist()
    assert rows[: pos[workers]] == [(*share, 0, 1, -1) for share in shares]
    done, slots = {}, []
    for panel, first, count, part, number, slot in rows[pos[workers] : pos[-1]]:
        done.setdefault((panel, first, count, number), []).append((part, slot))
    for (_, _, _, number), found in done.items():
        begin = min(slot for _, slot in found)
        assert sorted(found) == [(part, begin + part if number > 1 else -1) for part in range(number)]
        slots += [slot for _, slot in found if slot >= 0]
    covered = sorted((panel, first + n) for panel, first, count, _ in done for n in range(count))
    assert covered == [(panel, n) for panel, count in enumerate(counts.tolist()) for n in range(count)]
    assert sorted(slots) == list(range(len(slots))) and len(slots) <= 2 * workers


def test_what_does_not_come_out_even_is_cut():
    cost = torch.tensor([0.0, 1.0], dtype=torch.float64)
    for shares, cut, number in ((64, 64, 2), (132, 0, 1), (256, 0, 1), (268, 4, 4), (400, 4, 4)):
        options = {"by": 1, "workers": 132, "most": shares, "parts": 4, "kept": 16}
        lists = part_lists(torch.ones(shares, dtype=torch.int64), cost, **options)
        numbers = lists["crd5"][: lists["pos2"][-1]].tolist()
        assert numbers.count(1) == 2 * shares - cut and numbers.count(number) == (cut * number if cut else 2 * shares)


@pytest.mark.long
@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80"])
@pytest.mark.parametrize("block", [128, 64, 32])
def test_gradients_of_cut_shares(block, target, monkeypatch):
    """In plain loops, by the steps of a GPU: sums that are too short to be cut, and others; nothing is outside."""
    monkeypatch.setattr(functions, "_workers", lambda structure: 7)
    kept = torch.rand(4, 6) < 0.6
    kept[1], kept[2] = True, False
    dense = torch.randn(4 * block, 6 * block) * kept.repeat_interleave(block, 0).repeat_interleave(block, 1)
    packed = lacis.pack(dense.bfloat16(), lacis.Bsr(block, block))
    x = torch.randn(4104, 6 * block).bfloat16()
    captured = lambda: gradient_specs(capture_einsum("ij,bj->bi", [packed, x[:8]], None)[0])["values"]
    compiled = compile_kernel(emit(captured()), target)
    steps = tuple(lacis.steps.parse(text) for text in compiled.info["steps"])
    assert [step.parts for step in steps if step.mnemonic == "balance"] == [8] and len(compiled.info["launches"]) == 2
    if ptxas.find():
        _core.compile(emit(captured()), target, {"ptxas": ptxas.find(), "check_ptxas": True})
    monkeypatch.setenv("LACIS_DEBUG", "1")
    kernel = load_kernel(dataclasses.replace(captured(), steps=steps), "cpu", torch.device("cpu"))
    assert "lacis.checked" in kernel.text
    for tokens in (8, 2040, 2048, 4104):
        dy = torch.randn(tokens, 4 * block).bfloat16()
        got = kernel.run([x[:tokens], dy], packed, packed.values.shape)
        want = packed.pattern.gather(dy.double().T @ x[:tokens].double())
        assert (got.double() - want).norm() <= 2.0**-7 * want.norm()


@pytest.mark.long
@pytest.mark.parametrize("block", [32, 16])
def test_gradients_of_cut_shares_that_are_gathered(block, monkeypatch):
    """The same where only stored blocks are multiplied."""
    monkeypatch.setattr(functions, "_workers", lambda structure: 7)
    kept = torch.rand(1096 // block, 1304 // block) < 0.3
    dense = torch.randn(1096 // block * block, 1304 // block * block)
    dense = dense * kept.repeat_interleave(block, 0).repeat_interleave(block, 1)
    packed = lacis.pack(dense.bfloat16(), lacis.Bsr(block, block))
    x, dy = (torch.randn(1096, size).bfloat16() for size in reversed(dense.shape))
    spec = gradient_specs(capture_einsum("ij,bj->bi", [packed, x], None)[0])["values"]
    spec = dataclasses.replace(spec, eighths=3)
    steps = tuple(lacis.steps.parse(text) for text in compile_kernel(emit(spec), "cuda:sm_90a").info["steps"])
    assert [(step.within, step.parts) for step in steps if step.mnemonic == "balance"] == [(640, 8)]
    options = {"ptxas": ptxas.find(), "check_ptxas": True} if ptxas.find() else {}
    compiled = _core.compile(emit(spec), "cuda:sm_90a", options | {"stages": True})
    assert "lacis.mma_gathered" in compiled.stages["tiles"]
    assert len(_core.artifact_info(compiled.artifact)["launches"]) == 2
    monkeypatch.setenv("LACIS_DEBUG", "1")
    kernel = load_kernel(dataclasses.replace(spec, steps=steps), "cpu", torch.device("cpu"))
    for tokens in (8, 1000, 1024, 1096):
        got = kernel.run([x[:tokens], dy[:tokens]], packed, packed.values.shape)
        want = packed.pattern.gather(dy[:tokens].double().T @ x[:tokens].double())
        assert (got.double() - want).norm() <= 2.0**-7 * want.norm()


@pytest.mark.long
def test_sums_in_tf32_are_not_cut():
    packed = lacis.pack(torch.randn(256, 256), lacis.Bsr(64, 64))
    spec = capture_einsum("ij,bj->bi", [packed, torch.zeros(8, 256)], None)[0]
    spec = gradient_specs(dataclasses.replace(spec, tf32=True))["values"]
    steps = [lacis.steps.parse(text) for text in compile_kernel(emit(spec), "cuda:sm_90a").info["steps"]]
    assert [step.parts for step in steps if step.mnemonic == "balance"] == [None]
    steps = tuple(dataclasses.replace(step, parts=8) if step.mnemonic == "balance" else step for step in steps)
    with pytest.raises(lacis.CompileError, match="tiles: sums of shares in tf32 are not cut into 'parts'"):
        compile_kernel(emit(dataclasses.replace(spec, steps=steps)), "cuda:sm_90a")


@pytest.mark.parametrize("workers", [3, 4, 5])
def test_lists_begin_where_kernels_read_them(workers):
    """What does not begin at a multiple of 16 bytes would be copied at each call."""
    counts, cost = torch.tensor([3, 1, 5, 2]), torch.tensor([0.0, 1.0, 2.0])
    lists = part_lists(counts, cost, by=2, workers=workers, most=11, parts=4, kept=16)
    assert all(array.data_ptr() % 16 == 0 for array in lists.values())
