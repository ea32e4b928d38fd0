# SPDX-License-Identifier: Apache-2.0
"""A schedule in a file: saved, compared, loaded onto a fresh copy of the model, and built to the same kernels."""

import copy
import gc

import pytest
import torch

import lacis


class Positive(lacis.Sparsifier):
    def __init__(self, above: float = 0.0):
        self.above = above

    def mask(self, tensor):
        return tensor > self.above


class Ellpack(lacis.Format):
    def __init__(self):
        with lacis.iter(dim=2) as (I, J):
            J.compress(coordinate=True).pack()
            self.indices = [I, J]


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Linear(24, 24) for _ in range(6)))


def record(model):
    class Local(Ellpack):
        pass

    s = lacis.create_schedule(model, target="cpu", deterministic=True)
    s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csc)
    s["1.weight"].sparsify(Positive(0.01)).set_format(Ellpack)
    s["2.weight"].block(16, 16).set_format(Local, axis=[0, 1]).set_format(lacis.Coo, axis=[2, 3])
    sum = s["3.weight"].decompose(ell=lacis.Ell(width=4), rest=lacis.Coo)
    sum.part("ell").split_nnz("j", 4).unroll("j1")
    sum.part("rest").unroll("j", 2)
    s["4.weight"].sparsify(lacis.BlockMagnitude(0.75)).block(4, 8).set_format(lacis.Bsr)
    s["5.weight"].set_format(lacis.Bsr(4, 4)).split("b", 8).reorder("b0", "i0", "i1", "b1").vectorize("b1", 8).unroll(
        "j0", 2
    )
    return s


def test_a_schedule_replays_on_a_fresh_model(tmp_path):
    model = make_model().eval()
    fresh, x = copy.deepcopy(model), torch.randn(5, 24)
    s = record(model)
    s.save(tmp_path / "a.json")
    again = lacis.load_schedule(tmp_path / "a.json", fresh, classes=[Positive, Ellpack])
    assert [h.site.loop_steps for h in again.match(".*weight")] == [h.site.loop_steps for h in s.match(".*weight")]
    assert [h.format for h in again.match(".*weight")] == [h.format for h in s.match(".*weight")]
    assert (again.target, again.deterministic) == ("cpu", True)
    again.save(tmp_path / "b.json")
    text = (tmp_path / "a.json").read_text()
    assert (tmp_path / "b.json").read_text() == text
    with torch.no_grad():
        assert torch.equal(s.build()(x), again.build()(x))
    keys = [[h.kernel.key for h in schedule.match(".*weight")] for schedule in (s, again)]
    assert keys[0] == keys[1]


def trained():
    """A model and a schedule of its gradients and activations."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(40, 24), torch.nn.Tanh(), torch.nn.Linear(24, 8), torch.nn.Linear(8, 8))
    s = lacis.create_schedule(model, target="cpu")
    s["0.weight"].sparsify(lacis.Magnitude(0.8)).set_format(lacis.Csr)
    s["0.weight"].grad.parallel("i_j")
    s["0:in0"].grad.split("b", 2).parallel("j")
    s["1:out"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr).split("i", 8)
    s["3:out"].grad.sparsify(lacis.NM(1, 4)).set_format(lacis.Ell(width=2))
    return model, s


def handles(s):
    return s["0.weight"].grad, s["0:in0"].grad, s["1:out"], s["3:out"].grad


def test_gradients_and_activations_replay(tmp_path):
    model, s = trained()
    s.save(tmp_path / "a.json")
    again = lacis.load_schedule(tmp_path / "a.json", copy.deepcopy(model))
    again.save(tmp_path / "b.json")
    lines = (tmp_path / "a.json").read_text().splitlines()
    assert (tmp_path / "b.json").read_text().splitlines() == lines
    for section, name in (("parameters", "0.weight"), ("activations", "1:out"), ("gradients", "3:out")):
        assert f'    "{name}": [' in lines[lines.index(f'  "{section}": {{') :]
    assert '      {"verb": "parallel", "loop": "j"}' in lines
    assert [repr(h) for h in handles(s)] == [repr(h) for h in handles(again)]
    assert [h.steps for h in handles(s)[:2]] == [h.steps for h in handles(again)[:2]]


def test_replayed_gradients_are_the_same_kernels(tmp_path):
    model, s = trained()
    for handle in handles(s)[2:]:
        handle.site.steps.clear()
    s.save(tmp_path / "a.json")
    again = lacis.load_schedule(tmp_path / "a.json", copy.deepcopy(model))
    results = []
    for schedule in (s, again):
        built, x = schedule.build(), torch.ones(5, 40, requires_grad=True)
        built(x).sum().backward()
        results.append([x.grad, *(p.grad for p in built.parameters())])
    assert all(map(torch.equal, *results))
    kernels = [[s["0.weight"].kernels[role].key for role in ("grad_values", "grad_input")] for s in (s, again)]
    assert kernels[0] == kernels[1] and s["0:in0"].grad.kernel.steps[:2] == s["0:in0"].grad.steps
    lacis.save_kernels(built, tmp_path / "kernels")  # by the keys of calls, for schedules of gradients change them
    key = built[0].family().key
    assert key != built[0].family().kernel.key and (tmp_path / "kernels" / f"{key}.lacis").exists()


def test_two_files_differ_where_the_gradients_do(tmp_path):
    for name, factor in (("a", 4), ("b", 8)):
        s = lacis.create_schedule(make_model(), target="cpu")
        s["0.weight"].set_format(lacis.Csc)
        s["0:in0"].grad.split("b", factor)
        s.save(tmp_path / name)
    a, b = ((tmp_path / name).read_text().splitlines() for name in "ab")
    assert [pair for pair in zip(a, b) if pair[0] != pair[1]] == [
        tuple(f'      {{"verb": "split", "loop": "b", "factor": {factor}}}' for factor in (4, 8))
    ]


def test_one_step_is_one_line(tmp_path):
    record(make_model()).save(tmp_path / "a.json")
    lines = (tmp_path / "a.json").read_text().splitlines()
    assert '      {"verb": "split", "loop": "b", "factor": 8},' in lines
    assert '      {"verb": "set_format", "format": {"class": "lacis.formats.predefined.Csc"}}' in lines
    assert f'      {{"verb": "sparsify", "sparsifier": {{"class": "{__name__}.Positive", "above": 0.01}}}},' in lines
    assert any('"verb": "set_format", "format": {"format": "#lacis.format<' in line for line in lines), "a local class"


REFUSED = {
    "a mask": lambda s: s["0.weight"].sparsify(torch.ones(32, 32, dtype=torch.bool)),
    "a local sparsifier": lambda s: s["0.weight"].sparsify(type("Mine", (Positive,), {"__module__": "__main__"})),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_json_cannot_hold_is_refused(tmp_path, case):
    s = lacis.create_schedule(make_model())
    REFUSED[case](s)
    with pytest.raises(lacis.ScheduleError, match=r"test_saved_schedule.py:\d+: save: '0.weight': sparsify: "):
        s.save(tmp_path / "a.json")
    assert not list(tmp_path.iterdir())


HEAD = '{"lacis": 1, "target": "cpu", "deterministic": true, "allow_dense": false, '
FILES = {
    "{": "is no saved schedule",
    '{"lacis": 99}': "no schedule that this version reads",
    '{"lacis": 1, "target": "cpu", "deterministic": true, "allow_dense": false, "parameters": '
    '{"9.weight": []}}': "9.weight",
    '{"lacis": 1, "target": "cpu", "deterministic": true, "allow_dense": false, "parameters": '
    '{"0.weight": [{"verb": "splt"}]}}': "splt",
    '{"lacis": 1, "target": "cpu", "deterministic": true, "allow_dense": false, "parameters": {"0.weight": '
    '[{"verb": "set_format", "format": {"class": "os.system", "command": "true"}}]}}': "'os.system', which is none of",
    '{"lacis": 1, "target": "cpu"}': "does not say 'deterministic'",
    HEAD + '"parameters": []}': "'parameters' must have a list of steps for each name",
    HEAD + '"gradients": {"0.weight": [1]}}': "'gradients' must have a list of steps for each name",
    HEAD + '"parameters": {"0.weight": [{}]}}': "no such verb: None",
    HEAD + '"parameters": {"0.weight": [{"verb": "set_format", "format": {"class": ["a"]}}]}}': "names the class",
    HEAD + '"parameters": {"0.weight": [{"verb": "sparsify", "sparsifier": '
    '{"class": "lacis.sparsifiers.magnitude.Magnitude", "share": 1}}]}}': "Magnitude' that cannot be: .*'share'",
    "[" * 100_000: "is no saved schedule",
}


@pytest.mark.parametrize("text", FILES)
def test_other_files_are_refused(tmp_path, text):
    if text.startswith("[["):
        gc.collect()  # nothing that earlier tests have left is finalized where the recursion is deep
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(lacis.ScheduleError, match=FILES[text]):
        lacis.load_schedule(tmp_path / "a.json", make_model())


def test_a_file_makes_no_module_be_imported(tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    step = '{"verb": "sparsify", "sparsifier": {"class": "trap.Mine"}}'
    (tmp_path / "a.json").write_text(HEAD + f'"parameters": {{"0.weight": [{step}]}}}}')
    with pytest.raises(lacis.ScheduleError, match=r"'trap.Mine', which is none of Lacis; .*classes=\[...\]"):
        lacis.load_schedule(tmp_path / "a.json", make_model())
    assert not (tmp_path / "sprung").exists()


def test_classes_are_formats_and_sparsifiers(tmp_path):
    record(make_model()).save(tmp_path / "a.json")
    with pytest.raises(lacis.ScheduleError, match="classes: .* is no format and no sparsifier"):
        lacis.load_schedule(tmp_path / "a.json", make_model(), classes=[torch.nn.Linear])
