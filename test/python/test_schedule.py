# SPDX-License-Identifier: Apache-2.0
"""The language: handles, verbs, contradictions, the printed tree; none of it touches the model or the compiler."""

import copy
import subprocess
import sys

import lacis
import pytest
import torch


def make_model():
    torch.manual_seed(0)
    inner = torch.nn.Sequential(torch.nn.Linear(48, 32), torch.nn.ReLU())
    return torch.nn.Sequential(torch.nn.Linear(40, 48), inner, torch.nn.Linear(32, 10))


@pytest.fixture
def s():
    return lacis.create_schedule(make_model(), target="eager")


def test_recording_changes_nothing():
    model = make_model()
    before = copy.deepcopy(model.state_dict())
    modules = list(model.modules())
    s = lacis.create_schedule(model)
    s["0.weight"].sparsify(lacis.Magnitude(0.9)).set_format(lacis.Csc)
    s.match(r".*weight")
    str(s)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert list(model.modules()) == modules


def test_schedule_imports_no_compiler():
    later = {"lacis.emit", "lacis._core", "lacis.runtime", "lacis.nn"}
    script = f"import sys, lacis.schedule; assert not {later} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_verbs_return_the_handle_and_keep_the_line(s):
    handle = s["0.weight"]
    assert handle.set_format(lacis.Csc) is handle
    (step,) = handle.steps
    assert step == lacis.steps.SetFormat(lacis.Csc())
    assert step.location[0] == __file__ and step.location[1] > 0


def test_unknown_name_gives_the_nearest(s):
    with pytest.raises(lacis.ScheduleError, match=r"test_schedule.py:\d+: .*'0.wieght'; the nearest are '0.weight'"):
        s["0.wieght"]


def test_match_takes_whole_names(s):
    assert [h.name for h in s.match(r"\d\.weight")] == ["0.weight", "2.weight"]
    assert len(s.match(r".*weight")) == 3
    with pytest.raises(lacis.ScheduleError, match="no whole name"):
        s.match("weight")
    with pytest.raises(lacis.ScheduleError, match="regular expression"):
        s.match("(")


def test_group_takes_the_verbs_for_all_or_none(s):
    s["2.weight"].set_format(lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match="format already"):
        s.match(r".*weight").set_format(lacis.Csc)
    assert [len(h.steps) for h in s.match(r".*weight")] == [0, 0, 1]
    assert len(s.match(r".*weight").sparsify(lacis.Keep)) == 3


CONTRADICTIONS = {
    "two sparsifiers": (lambda h: h.sparsify(lacis.Keep), lambda h: h.sparsify(lacis.Keep)),
    "two formats": (lambda h: h.set_format(lacis.Csr), lambda h: h.set_format(lacis.Csc)),
    "a format for one axis twice": (
        lambda h: h.block(4, 4).set_format(lacis.Csr, axis=[0, 1]),
        lambda h: h.set_format(lacis.Csr, axis=[1, 2]),
    ),
    "a sum and a format": (lambda h: h.decompose(a=lacis.Ell(2), b=lacis.Coo), lambda h: h.set_format(lacis.Csr)),
    "a format and a sum": (lambda h: h.set_format(lacis.Csr), lambda h: h.decompose(a=lacis.Ell(2), b=lacis.Coo)),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictions_name_both_lines(s, case):
    first, second = CONTRADICTIONS[case]
    handle = first(s["0.weight"])
    count = len(handle.steps)
    with pytest.raises(lacis.ScheduleError, match=r"(?s)test_schedule.py:\d+: .*already.*test_schedule.py:\d+: note: "):
        second(handle)
    assert len(handle.steps) == count


REFUSALS = {
    "blocks that do not nest": lambda h: h.block(8, 8).block(3, 3),
    "a block size that is not positive": lambda h: h.block(0, 4),
    "sizes for another rank": lambda h: h.block(4, 4, 4).set_format(lacis.Csr),
    "blocks of the format and of block()": lambda h: h.block(4, 4).set_format(lacis.Bsr(8, 8)),
    "a part without capacity before the last": lambda h: h.decompose(a=lacis.Csr, b=lacis.Coo),
    "one part": lambda h: h.decompose(a=lacis.Csr),
    "no format": lambda h: h.set_format(3),
    "no sparsifier": lambda h: h.sparsify("0.9"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_come_at_the_call(s, case):
    with pytest.raises(lacis.Error, match=r"test_schedule.py:\d+: "):
        REFUSALS[case](s["0.weight"]).block(2, 2)


def test_the_order_of_the_verbs_does_not_matter():
    formats = []
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        handle = lacis.create_schedule(make_model())["0.weight"]
        verbs = [lambda h: h.sparsify(lacis.Keep), lambda h: h.block(16, 16), lambda h: h.set_format(lacis.Bsr)]
        for n in order:
            verbs[n](handle)
        formats.append(handle.format)
    assert formats == [lacis.Bsr(16, 16)] * 3


def test_block_and_csr_is_bsr(s):
    assert s["0.weight"].block(8, 4).set_format(lacis.Csr).format == lacis.Bsr(8, 4)


def test_a_block_makes_a_sum_of_blocks(s):
    format = s["0.weight"].block(8, 8).decompose(ell=lacis.BlockedEll(width=2), rest=lacis.Bcsc).format
    assert format.parts == {"ell": lacis.BlockedEll(8, 8, width=2), "rest": lacis.Bcsc(8, 8)}


def test_steps_of_a_part_name_its_loops(s):
    handle = s["0.weight"].decompose(ell=lacis.Ell(width=2), rest=lacis.Coo)
    part = handle.part("ell").split_nnz("j", 4).reorder("j1", "j0").unroll("upto4.j", 2)
    assert part.steps == handle.steps[1:]
    assert part.steps[:2] == (lacis.steps.SplitNnz("ell.j", 4), lacis.steps.Reorder("ell.j1", "ell.j0"))
    assert part.steps[2:] == (lacis.steps.Unroll("upto4.ell.j", 2),)
    assert handle.part("rest").steps == () and '.reorder("ell.j1", "ell.j0")' in str(s)
    with pytest.raises(lacis.ScheduleError, match="relayout: it names no loop of its own, say it of the whole param"):
        part.relayout("x")
    with pytest.raises(lacis.ScheduleError, match="no part 'middle'; its parts are ell, rest"):
        handle.part("middle")


def test_a_loop_that_a_part_lacks_is_refused_at_its_line():
    model = make_model()
    s = lacis.create_schedule(model, target="cpu")
    s["0.weight"].decompose(ell=lacis.Ell(width=2), rest=lacis.Coo).part("rest").split("i", 4)
    with pytest.raises(lacis.CompileError, match=r"test_schedule.py:\d+:0: error: split: no loop named 'rest.i'"):
        s.build()


def test_steps_are_data():
    split = lacis.steps.Split("i", 32)
    assert split == lacis.steps.Split(loop="i", factor=32) and hash(split) == hash(lacis.steps.Split("i", 32))
    assert split.text() == '#lacis.split<loop = "i", factor = 32>'
    assert lacis.steps.Reorder("b", "i").text() == '#lacis.reorder<loops = ["b", "i"]>'
    assert lacis.steps.Split("i", 32, location=("a.py", 1)) == split


def test_every_verb_has_a_picture():
    for step in lacis.steps.STEPS.values():
        assert "-->" in step.__doc__, step


def test_tree(s):
    s["1.0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csc)
    lines = [line.split("  test_")[0].split("  /")[0] for line in str(s).splitlines()]
    assert lines[0] == "Sequential  (target eager)"
    assert "│  ├─ 0: Linear" in lines
    assert any(
        line.endswith(".sparsify(Magnitude(sparsity=0.5))") for line in [l.split("  test")[0].rstrip() for l in lines]
    )
    assert any("= #lacis.format<(i, j) -> (j : dense, i : compressed)>" in line for line in lines)
    assert lines[-1] == "└─ (2 modules as they are)"


def test_unknown_target():
    with pytest.raises(lacis.ScheduleError, match="no target 'tpu'"):
        lacis.create_schedule(make_model(), target="tpu")


def test_unknown_verb(s):
    with pytest.raises(AttributeError, match="no verb 'sparsfy'"):
        s["0.weight"].sparsfy


def test_where_takes_the_parameters_with_so_many_zeros(s):
    for name, share in (("0.weight", 0.8), ("1.0.weight", 0.5), ("2.weight", 1.0), ("2.bias", 0.9)):
        parameter = s.model.get_parameter(name).data
        parameter.view(-1)[: round(share * parameter.numel())] = 0
    everything = s.match(".*")  # modules too
    for zeros, expected in ((0.8, ["0.weight", "2.weight", "2.bias"]), (1, ["2.weight"]), (0.0, None)):
        found = [handle.name for handle in everything.where(zeros)]
        assert found == (expected or [name for name, _ in s.model.named_parameters()])
    s.match(r".*weight").where(zeros=0.8).set_format(lacis.Csr)
    assert [site.name for site in s.sites] == ["0.weight", "2.weight"]
    with pytest.warns(UserWarning, match="at least 100% of the elements is 0") as caught:
        assert len(s.match("0.*").where(1).set_format(lacis.Csr)) == 0
    assert caught[0].filename == __file__


def test_where_refuses_what_is_no_share_and_what_nobody_knows(s):
    with pytest.raises(lacis.ScheduleError, match="zeros is a share from 0 to 1, not 80"):
        s.match(".*").where(zeros=80)
    group = s.match("0.weight")
    group.set_format(lacis.Csr)
    s.build()
    with pytest.raises(lacis.ScheduleError, match="'0.weight' is packed already"):
        group.where(0.5)
    meta = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(2, 2, device="meta")))
    with pytest.raises(lacis.ScheduleError, match="'0.weight' is on the meta device"):
        meta.match(".*weight").where(0.5)


def test_where_nothing_has_so_many_zeros_a_build_leaves_the_model():
    """As TVM converts none then; a schedule that nobody said anything of is refused still."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4))
    s = lacis.create_schedule(model, target="eager")
    with pytest.warns(UserWarning, match="in no parameter of the group at least 80%"):
        s.match(r".*weight").where(zeros=0.8).set_format(lacis.Csr)
    assert s.build() is model and type(model[0]) is torch.nn.Linear
    s.restore()
    with pytest.raises(lacis.ScheduleError, match="nothing is scheduled"):
        lacis.create_schedule(model).build()
