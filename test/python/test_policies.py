# SPDX-License-Identifier: Apache-2.0
"""Policies of the user's own, and what is refused of arguments, answers and states."""

import warnings

import lacis
import pytest
import torch
from lacis.sparsifiers import View, choose, regrow
from lacis.sparsifiers.choose import among, hashed, keep_largest, magnitudes
from test_updates import build, content, same, train


class SevenLines(lacis.Policy):
    def mask(self, tensor):
        return lacis.Random(0.5)(tensor)

    def change(self, view):
        return view.values.abs().argsort(descending=True)[:-3], view.empty()[:3]

    def initial(self, view, grow):
        return view.values.new_full((len(grow),), 0.5)


def test_a_policy_of_the_users_own():
    model, s, optimizer, updates = build("csr", SevenLines(range(0, 9, 3)))
    assert train(model, optimizer, updates, range(3)) == [False, False, True]
    assert (s["0.weight"].packed.to_dense() == 0.5).sum() == 3


@pytest.mark.parametrize(
    "answer, said",
    [
        (lambda v: (torch.tensor([0, 0]), v.empty()[:0]), "'keep' names a place twice"),
        (lambda v: (torch.tensor([v.count]), v.empty()[:0]), "'keep' names a place that is not from 0 to 479"),
        (lambda v: (torch.tensor([0]), torch.tensor([-1])), "'grow' names a place"),
        (lambda v: (torch.tensor([0]), v.positions[:1]), "'grow' names a place that is kept"),
        (lambda v: (torch.tensor([0.0]), v.empty()[:0]), "int64 tensors with one axis, 'keep' is torch.float32"),
        (lambda v: ([0], v.empty()[:0]), "'keep' is list"),
    ],
)
def test_an_answer_that_makes_no_sense(answer, said):
    policy = SevenLines(range(1, 9))
    policy.change = answer
    model, s, optimizer, updates = build("csr", policy)
    before = [t.clone() for t in content(model, optimizer)]
    with pytest.raises(lacis.DataError, match=f"'0.weight': SevenLines: .*{said}"):
        updates.step()
    assert same(before, content(model, optimizer)) and updates.count == 0


def test_numbers_that_are_not_finite_come_last():
    model, s, optimizer, updates = build()
    train(model, optimizer, updates, range(3))
    x = torch.randn(8, 40, dtype=torch.float64)
    x[:, 5] = torch.nan
    x[:, 7] = torch.inf
    optimizer.zero_grad()
    model[0](x).nan_to_num(0, 0, 0).square().sum().backward()
    had = s["0.weight"].packed.pattern.to_mask()
    model[2].weight.values.grad = torch.zeros_like(model[2].weight.values)
    model[2](torch.randn(8, 24, dtype=torch.float64)).sum().backward()
    assert updates.step()
    grown = s["0.weight"].packed.pattern.to_mask() & ~had
    assert grown.any() and not grown[:, [5, 7]].any()


@pytest.mark.parametrize("format", ["csr", "bsr", "nest"])
def test_a_policy_that_looks_at_each_step_finds_its_places_once(format, monkeypatch):
    """Until the pattern is another one, or something was written into its arrays."""
    from lacis.training import layer

    found, places_of = [], layer.places_of
    monkeypatch.setattr(layer, "places_of", lambda *args: found.append(args) or places_of(*args))
    model, s, optimizer, updates = build(format, lacis.Movement(lacis.Ramp(0.0, 0.8, range(0, 9, 4))))
    counts = []
    for step in range(8):
        counts.append(len(found))
        train(model, optimizer, updates, [step])
    counts = [count - counts[0] for count in counts]
    assert counts == [0, 0, 0, 0, 0, 2, 2, 2]  # two weights; the first update is at step 4
    for step in range(8, 10):
        train(model, optimizer, updates, [step])
    before, array = len(found), next(each for name, each in model.named_buffers() if "0.weight.crd" in name)
    array.copy_(array.clone())  # written, as torch.distributed.checkpoint does
    train(model, optimizer, updates, [10])
    assert len(found) == before + 1


def test_schedules_with_policies_are_saved(tmp_path):
    policies = [
        lacis.Magnitude(lacis.Ramp(0.0, 0.9, range(10, 100, 10), power=1), per="row"),
        lacis.Regrow(lacis.Ramp(0.5, 0.9, range(0, 100, 10)), share=0.2, grow="gradient", initial=("uniform", 0.1)),
        lacis.Movement(lacis.Ramp(0.0, 0.9, range(0, 100, 10))),
    ]
    for policy in policies:
        s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(8, 4)), target="eager")
        s["0.weight"].sparsify(policy).set_format(lacis.Csr)
        s.save(tmp_path / "schedule.json")
        loaded = lacis.load_schedule(tmp_path / "schedule.json", torch.nn.Sequential(torch.nn.Linear(8, 4)))
        assert repr(loaded["0.weight"]) == repr(s["0.weight"])


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: lacis.Ramp(0.0, 0.9, [1, 2]), "when is an ascending range"),
        (lambda: lacis.Ramp(0.0, 0.9, range(9, 0, -1)), "when is an ascending range"),
        (lambda: lacis.Ramp(0.0, 0.9, range(9), power=0), "power is positive"),
        (lambda: lacis.Ramp("0", 0.9, range(9)), "start is a number"),
        (lambda: lacis.Magnitude(lacis.Ramp(0.0, 1.5, range(9))), "a share from 0 to 1, not 1.5"),
        (lambda: lacis.Magnitude(0.5, per="column"), "per is 'tensor' or 'row'"),
        (lambda: lacis.Regrow(0.5), "when is an ascending range of step counts"),
        (lambda: lacis.Regrow(0.5, range(9), grow="best"), "grow is 'random' or 'gradient'"),
        (lambda: lacis.Regrow(0.5, range(9), anneal="step"), "anneal is None"),
        (lambda: lacis.Regrow(0.5, range(9), initial="zeros"), "initial is a number or"),
        (lambda: lacis.Movement(0.5), "a Ramp is expected"),
        (lambda: SevenLines(range(9), reads=["loss"]), "a policy reads 'grad' and 'candidates', not 'loss'"),
    ],
)
def test_arguments(make, said):
    with pytest.raises(lacis.DataError, match=said):
        make()


def test_attach_says_what_it_needs():
    s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(8, 4)), target="eager")
    optimizer = torch.optim.SGD(s.model.parameters(), lr=0.1)
    with pytest.raises(lacis.ScheduleError, match="attach: the model is not built"):
        s.attach(optimizer)
    with pytest.raises(lacis.ScheduleError, match="the model is not built"):
        s["0.weight"].resparsify(lacis.Magnitude(0.5))
    _, s, optimizer, updates = build()
    with pytest.raises(lacis.ScheduleError, match="an optimizer comes first, not a Sequential"):
        s.attach(s.model)
    with pytest.raises(lacis.ScheduleError, match="optimizers and modules can follow, not a int"):
        s.attach(optimizer, 3)
    with pytest.raises(lacis.ScheduleError, match="or 'self', not 'world'"):
        s.attach(optimizer, group="world")
    for state in ({}, {"count": 1}, {"count": -1, "policies": {}}, {"count": 1, "policies": {"other": {}}}):
        with pytest.raises(lacis.DataError, match="load_state_dict: "):
            updates.load_state_dict(state)
    with pytest.warns(UserWarning, match="no optimizer that was given trains '0.weight', whose pattern changes"):
        s.attach(torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1))
    again = s.attach(optimizer)
    with pytest.raises(lacis.ScheduleError, match=r"attach\(\) was called again"):
        updates.step()
    with pytest.warns(UserWarning, match="step\\(\\) was never called"):
        s.restore()
    with warnings.catch_warnings(action="error"), pytest.raises(lacis.ScheduleError, match="restored"):
        again.step()


@pytest.mark.parametrize("said", [None, (torch.arange(3),), torch.arange(2), "ab"], ids=str)
def test_what_a_policy_answers_is_two_tensors(said):
    """Else the update is refused by the weight's name, and nothing has changed."""

    class Says(lacis.Policy):
        def mask(self, tensor):
            return lacis.Magnitude(0.5).mask(tensor)

        def change(self, view):
            return said

    s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(8, 4)), target="eager")
    s["0.weight"].sparsify(Says(range(1, 9))).set_format(lacis.Csr)
    updates = s.attach(torch.optim.SGD(s.build().parameters(), lr=0.1))
    before = s["0.weight"].packed.pattern.to_mask()
    with pytest.raises(lacis.DataError, match=r"'0.weight': Says: change\(\) must answer two int64 tensors"):
        updates.step()
    assert updates.count == 0 and torch.equal(s["0.weight"].packed.pattern.to_mask(), before)


def test_states_of_updates_hold_tensors():
    """What is none is refused before anything is loaded."""
    s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(8, 4)), target="eager")
    s["0.weight"].sparsify(lacis.Movement(lacis.Ramp(0.0, 0.5, range(2, 9)))).set_format(lacis.Csr)
    updates = s.attach(torch.optim.SGD(s.build().parameters(), lr=0.1))
    good = updates.state_dict()
    for given in (None, "scores", {"scores": "x"}, {"scores": torch.ones(32, device="meta")}):
        with pytest.raises(lacis.DataError, match="load_state_dict: .*'0.weight'"):
            updates.load_state_dict({"count": 3, "policies": {"0.weight": given}})
    with pytest.raises(lacis.DataError, match="a state has 'count' and 'policies'"):
        updates.load_state_dict({**good, "count": True})
    assert updates.count == 0
    updates.load_state_dict({**good, "count": 3})
    assert updates.count == 3


@pytest.mark.parametrize(
    "sparsifier", [lacis.Magnitude(lacis.Ramp(0.0, 0.5, range(9))), lacis.Regrow(0.5, range(9)), lacis.Wanda(0.5)]
)
def test_activations_take_no_policies(sparsifier):
    s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(8, 4)), target="eager")
    with pytest.raises(lacis.ScheduleError, match="'0:out' is chosen anew in each call"):
        s["0:out"].sparsify(sparsifier)
    assert not s["0:out"].steps


class Wrapped(torch.optim.Optimizer):
    """As Accelerate's: another optimizer, with its groups and its state."""

    def __init__(self, optimizer, name):
        setattr(self, name, optimizer)
        self.inner = optimizer if name == "inner" else None

    param_groups = property(lambda self: self._of().param_groups)
    state = property(lambda self: self._of().state)

    def _of(self):
        return vars(self).get("optimizer") or self.inner

    def step(self, closure=None):
        self._of().step()


@pytest.mark.parametrize("name", ["optimizer", "inner"])
def test_to_attach_a_wrapped_optimizer_trains_nothing(name):
    model, s, optimizer, _ = build()
    model(torch.ones(2, 40, dtype=torch.float64)).sum().backward()
    before = [t.clone() for t in content(model, optimizer)]
    updates = s.attach(Wrapped(optimizer, name))
    assert same(before, content(model, optimizer))
    assert any(train(model, optimizer, updates, range(5)))


@pytest.mark.parametrize("stored", [0, 1, 40, 99, 100])
def test_what_is_drawn_among_all_places_is_what_empty_ones_alone_would_be(stored):
    positions = torch.randperm(100, generator=torch.Generator().manual_seed(stored))[:stored].sort().values
    view = View("w", 3, (10, 10), None, positions, torch.zeros(stored))
    for count in (0, 1, 12, 50, 100 - stored):
        if count <= 100 - stored:
            empty = view.empty()
            expected = empty[keep_largest(among(view.keys(100), empty), count)]
            assert torch.equal(regrow._drawn(view, count).nonzero().reshape(-1), expected)


@pytest.mark.parametrize("numel", [70, 2**18, 2**18 + 1])  # about `choose._SELECTED`
@pytest.mark.parametrize("numbers", ["equal", "third", "distinct", "ascending"])
def test_the_largest_of_few_and_of_many_are_the_first_of_a_stable_sort(numel, numbers):
    values = torch.randn(numel, generator=torch.Generator().manual_seed(numel))
    values = values.abs().sort().values if numbers == "ascending" else values
    values[:: {"equal": 1, "third": 3}.get(numbers, numel)] = 1e-3
    order = torch.sort(values.abs(), descending=True, stable=True).indices
    for count in (1, 9, numel // 30, numel // 3, numel - numel // 5, numel - 1):
        expected = torch.zeros(numel, dtype=torch.bool).index_fill(0, order[:count], True)
        assert torch.equal(keep_largest(magnitudes(values), count), expected)


@pytest.mark.parametrize("share", [0.00001, 0.001, 0.04, 0.4, 1.0])  # from a quarter on nothing is guessed
def test_the_largest_hashed_keys(share):
    keys = hashed(300_000, 7, "cpu")
    order, count = torch.sort(keys.ordered(), descending=True).indices, round(share * keys.numel)
    expected = torch.zeros(keys.numel, dtype=torch.bool).index_fill(0, order[:count], True)
    assert torch.equal(keep_largest(keys, count), expected)


@pytest.mark.parametrize("largest", ["seen", "missed"])
def test_a_sample_that_misleads_is_not_believed(largest):
    """Large keys where the sample looks, or nowhere there: too few or too many others are above what it says."""
    numel = 2**20
    step = numel // choose._SAMPLE
    where = slice(0, numel, step) if largest == "seen" else torch.arange(numel) % step != 0
    values = torch.zeros(numel)
    values[where] = 1 + torch.rand(values[where].shape, generator=torch.Generator().manual_seed(0))
    order = torch.sort(values, descending=True, stable=True).indices
    for count in (1, numel // 100, numel // 10):
        expected = torch.zeros(numel, dtype=torch.bool).index_fill(0, order[:count], True)
        assert torch.equal(keep_largest(magnitudes(values), count), expected)
