# SPDX-License-Identifier: Apache-2.0
"""A schedule in a file: saved, compared, loaded onto a fresh copy of the model, and built to the same kernels."""

import copy

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
    s["3.weight"].decompose(ell=lacis.Ell(width=4), rest=lacis.Coo)
    s["4.weight"].sparsify(lacis.BlockMagnitude(0.75)).block(4, 8).set_format(lacis.Bsr)
    s["5.weight"].set_format(lacis.Bsr(4, 4)).split("b", 8).reorder("b0", "i0", "i1", "b1").vectorize("b1", 8).unroll(
        "j0", 2
    )
    return s


def test_a_schedule_replays_on_a_fresh_model(tmp_path):
    model = make_model()
    fresh, x = copy.deepcopy(model), torch.randn(5, 24)
    s = record(model)
    s.save(tmp_path / "a.json")
    again = lacis.load_schedule(tmp_path / "a.json", fresh)
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


FILES = {
    "{": "is no saved schedule",
    '{"lacis": 99}': "no schedule that this version reads",
    '{"lacis": 1, "target": "cpu", "deterministic": true, "allow_dense": false, "parameters": '
    '{"9.weight": []}}': "9.weight",
    '{"lacis": 1, "target": "cpu", "deterministic": true, "allow_dense": false, "parameters": '
    '{"0.weight": [{"verb": "splt"}]}}': "splt",
    '{"lacis": 1, "target": "cpu", "deterministic": true, "allow_dense": false, "parameters": {"0.weight": '
    '[{"verb": "set_format", "format": {"class": "os.system", "command": "true"}}]}}': "no format and no sparsifier",
}


@pytest.mark.parametrize("text", FILES)
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(lacis.ScheduleError, match=FILES[text]):
        lacis.load_schedule(tmp_path / "a.json", make_model())
