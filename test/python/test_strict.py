# SPDX-License-Identifier: Apache-2.0
"""`strict=True`: no kernel multiplies tiles, in which NaN and infinity reach outputs without an entry."""

import dataclasses

import pytest
import torch
from strategies import mostly_long
from test_tile_schedules import problem

import lacis
from lacis import _core, steps
from lacis.capture import capture_einsum
from lacis.capture.gradient import gradient_specs
from lacis.emit import emit
from lacis.runtime.call import Call
from lacis.schedule.steps.tensorize import refuse_tiles

TILE = [steps.Tensorize("i1", "b1", "j1")]
MESSAGE = "tensorize: strict=True keeps NaN and infinity from outputs without an entry there"


def operands(format=lacis.Csr, dtype=torch.float32):
    torch.manual_seed(0)
    w = torch.randn(64, 96) * (torch.rand(64, 96) < 0.3)
    return lacis.pack(w, format).to(dtype), torch.randn(8, 96).to(dtype)


TURNS = [(block, slot) for block in (16, 64) for slot in ("", "1", "values")]


@pytest.mark.parametrize("block, slot", mostly_long(TURNS, (16, "")))
def test_no_kernel_multiplies_tiles(block, slot):
    """Those of gradients neither; for few tokens a warp multiplies stored blocks, and nothing else."""
    packed, x, _ = problem(lacis.Bsr, 256, 384, 64, (block, block))
    spec = Call("ij,bj->bi", [packed, x], strict=True).pieces[""][0]
    spec = {"": spec, **gradient_specs(spec)}[slot]
    assert spec == dataclasses.replace(spec, plain=True)
    stages = _core.compile(emit(spec), "cuda:sm_90a", {"stages": True}).stages
    assert "lacis.roles" not in stages["tiles"] and "wgmma" not in stages["ptx"]


def test_only_kept_entries_meet_nan():
    packed, x = operands()
    x[3, 5] = float("nan")
    for strict in (False, True):
        found = lacis.einsum("ij,bj->bi", packed, x, strict=strict)
        assert torch.equal(found[3].isnan(), packed.to_dense()[:, 5] != 0) and not found[:3].isnan().any()


def test_a_kernel_stays_strict():
    """In its gradients, for other sizes, and where the epilogue runs by itself."""
    packed, x = operands()
    kernel = lacis.compile("ij,bj->bi", packed, x, strict=True)
    assert "lacis.plain" in kernel.text and all(spec.plain for spec in kernel.family.specs.values())
    assert torch.equal(kernel(packed, x[:3]), lacis.einsum("ij,bj->bi", packed, x[:3], strict=True))
    call = Call("ij,bj->bi", [packed, x], strict=True)
    for other in (call.without_epilogue(), *call.by_part()):
        assert all(spec.plain for spec, _ in other.pieces.values())
    assert not capture_einsum("ij,bj->bi", [packed, x])[0].plain


def test_steps_that_make_tiles_are_refused():
    packed, x = operands()
    for run in (lacis.einsum, lacis.compile):
        with pytest.raises(lacis.ScheduleError, match=MESSAGE):
            run("ij,bj->bi", packed, x, steps=TILE, strict=True)
    refuse_tiles([steps.Tensorize("i1", "b1", "j1", kind="mma")])


def model():
    return torch.nn.Sequential(torch.nn.Linear(96, 64))


def test_a_schedule_says_so_once(tmp_path):
    s = lacis.create_schedule(model(), target="eager", strict=True)
    w = s["0.weight"].sparsify(lacis.Magnitude(0.7)).set_format(lacis.Csr)
    for handle in (w, w.grad, s["0:in0"].grad):
        with pytest.raises(lacis.ScheduleError, match=MESSAGE) as refused:
            handle.tensorize("i1", "b1", "j1")
        assert refused.value.location[0] == __file__
    s.save(tmp_path / "s.json")
    built = s.build()
    assert built[0].spec().plain and built[0].strict
    again = lacis.load_schedule(tmp_path / "s.json", model())
    assert again.strict and not lacis.create_schedule(model()).strict
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "s.json").read_text()


def test_a_dense_layer_is_not_strict():
    with pytest.raises(lacis.ScheduleError, match="take one of strict and allow_dense"):
        lacis.create_schedule(model(), strict=True, allow_dense=True)
