# SPDX-License-Identifier: Apache-2.0
"""Updates that are done again on other numbers: what a graph would do is done by the same operations on a CPU."""

import lacis
import pytest
import torch
from derived_cost import COST
from lacis.patterns import functions, kept
from lacis.patterns.capturing import made_in_graphs
from lacis.patterns.derivation import Derivation
from lacis.training import decide, replay
from test_updates import build, train
from torch.utils._python_dispatch import TorchDispatchMode


class Lane:
    """Runs in place of a stream: its graphs are the work itself, done anew at each replay."""

    def __init__(self, device):
        self.device = device
        self.follows, self.join = lambda: torch.no_grad(), lambda: None

    def captured(self, work):
        found = type("Graph", (), {})()
        found.replay = work
        return found


@pytest.mark.parametrize("format", ["csr", "bsr"])
@pytest.mark.parametrize("arguments", [{}, {"grow": "gradient"}, {"grow": "gradient", "candidates": 0.5}], ids=str)
def test_an_update_is_done_again_on_other_numbers(format, arguments, monkeypatch):
    """Seeds and gradients reach it through the tensors that a graph reads; patterns and weights are those of steps."""
    found = []
    for is_again in (False, True):
        if is_again:
            monkeypatch.setattr(replay, "Lane", Lane)
            monkeypatch.setattr(replay, "_is_plain", lambda tensor, device: not tensor.is_inference())
            monkeypatch.setattr(replay, "_is_on_gpu", lambda tensor: True)
            monkeypatch.setattr(decide, "_on_host", lambda tensor: False)
        policy = lacis.Regrow(0.75, range(2, 100, 2), initial=("uniform", 0.1), seed=5, **arguments)
        model, s, optimizer, updates = build(format, policy)
        assert train(model, optimizer, updates, range(12)).count(True) == 6
        replays = updates._replays._found.values()
        assert any(each.graph is not None for each in replays) == is_again
        state = [t for held in optimizer.state.values() for t in held.values() if isinstance(t, torch.Tensor)]
        found.append(
            [s["0.weight"].packed.pattern.to_mask(), *(t.detach().clone() for t in [*model.parameters(), *state])]
        )
    for mine, theirs in zip(*found):
        assert torch.equal(mine, theirs)


def test_a_policy_whose_choice_is_changed_is_not_done_again():
    """A subclass says another `change`, so neither the mask nor the operations of its base speak for it."""

    class Mine(lacis.Regrow):
        def change(self, view):
            return super().change(view)

    assert lacis.Regrow(0.5, range(1, 2)).knows("repeats") and lacis.Regrow(0.5, range(1, 2)).knows("select")
    assert not Mine(0.5, range(1, 2)).knows("repeats") and not Mine(0.5, range(1, 2)).knows("select")


_LAYOUT = (
    "#lacis.format<(i, j) -> ({0} floordiv 384 : dense, {1} floordiv 64 : compressed<unique=false>, "
    "({0} floordiv 64 mod 6, {1} floordiv 16 mod 4) : bitmap, {2} : dense, {3} : dense)>"
)
_ROWS = _LAYOUT.format("i", "j", "i mod 64", "j mod 16")
_COLUMNS = _LAYOUT.format("j", "i", "i mod 16", "j mod 64")
_LISTS = (("columns", 128), ("cost", COST), ("period", 16), ("swizzle_group", 8))


def bind_both(weight):
    """Have a weight keep the arrays of the products by rows and by columns: tiles, their copies, work lists."""
    for format, bytes in ((_ROWS, 32), (_COLUMNS, 128)):
        step = Derivation("layout", (("capacity", 12), ("format", format), ("swizzle", bytes)))
        lists = Derivation("tile_schedule", _LISTS, step)
        weight.bind([("", step, "pos1"), ("", step, "values"), ("", lists, "pos2")])


def test_a_captured_update_makes_each_layout_once(monkeypatch):
    """Tiles, where values go in them, and work lists come from one layout for each walk, also within a graph."""
    made, operators, within = [], [], [False]

    class Counted(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            is_view = any(each.alias_info and not each.alias_info.is_write for each in func._schema.returns)
            operators.extend([] if is_view else [func])
            return func(*args, **(kwargs or {}))

    class Captured(Lane):
        def captured(self, work):
            def replay():
                within[0] = True
                with made_in_graphs(), Counted():
                    work()
                within[0] = False

            found = type("Graph", (), {})()
            found.replay = replay
            return found

    regroup = functions.regroup
    as_they_are = lambda present, panels: torch.arange(len(present))  # a GPU has a kernel for it
    monkeypatch.setattr("lacis.patterns.regroup.group_rows", as_they_are)
    monkeypatch.setattr(functions, "regroup", lambda *a, **named: made.append(within[0]) or regroup(*a, **named))
    monkeypatch.setattr(kept, "is_captured", lambda _: within[0])
    monkeypatch.setattr(replay, "Lane", Captured)
    monkeypatch.setattr(replay, "_is_plain", lambda tensor, device: not tensor.is_inference())
    monkeypatch.setattr(replay, "_is_on_gpu", lambda tensor: True)
    monkeypatch.setattr(decide, "_on_host", lambda tensor: False)
    model = torch.nn.Sequential(torch.nn.Linear(192, 768, bias=False)).bfloat16()
    s = lacis.create_schedule(model, target="eager")
    policy = lacis.Regrow(0.75, range(1, 100), grow="gradient")
    s["0.weight"].block(32, 32).sparsify(policy).set_format(lacis.Bsr)
    s.build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    updates, weight = s.attach(optimizer), model[0].weight
    bind_both(weight)
    for _ in range(3):
        model(torch.randn(8, 192).bfloat16()).square().mean().backward()
        made.clear(), operators.clear()
        assert updates.step()
    assert made == [True, True]
    assert len(operators) < 650, "a GPU takes 1.5 us for each, however small"
    weight.validate()


@pytest.fixture
def replayed(monkeypatch):
    """Updates on a CPU are captured by lanes that do the work again."""
    monkeypatch.setattr(replay, "Lane", Lane)
    monkeypatch.setattr(replay, "_is_plain", lambda tensor, device: not tensor.is_inference())
    monkeypatch.setattr(replay, "_is_on_gpu", lambda tensor: True)
    monkeypatch.setattr(decide, "_on_host", lambda tensor: False)


_SHAPES = ((192, 160), (192, 160), (160, 192), (64, 96), (192, 160), (160, 192))


def several(seed=0, blocks=32):
    """Layers of few sizes whose weights have the arrays of both products, their schedule, optimizer and updates."""
    torch.manual_seed(seed)
    model = torch.nn.ModuleList(torch.nn.Linear(i, o, bias=False) for o, i in _SHAPES).bfloat16()
    s = lacis.create_schedule(model, target="eager")
    policy = lacis.Regrow(0.75, range(1, 100), grow="gradient", seed=seed)
    s.match(r".*weight").block(blocks, blocks).sparsify(policy).set_format(lacis.Bsr)
    s.build()
    for layer in model:
        bind_both(layer.weight)
    optimizer = torch.optim.AdamW(model.parameters())
    return model, s, optimizer, s.attach(optimizer)


def steps(model, optimizer, updates, count, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        optimizer.zero_grad()
        for layer, (_, inputs) in zip(model, _SHAPES):
            layer(torch.randn(8, inputs, generator=generator).bfloat16()).float().square().mean().backward()
        optimizer.step()
        assert updates.step()


def arrays(model, optimizer):
    state = [t for held in optimizer.state.values() for t in held.values()]
    return [t.detach().clone() for t in [*model.parameters(), *model.buffers(), *state]]


def test_weights_of_one_size_make_their_arrays_together(replayed):
    """Three of one size, two of another and one alone: tiles, lists and their copies are those made one by one."""
    seed, found = torch.seed() % 2**31, []
    for is_again in (True, False):
        model, _, optimizer, updates = several(seed)
        if not is_again:
            updates._replays.ready = lambda *_: {}
        steps(model, optimizer, updates, 4, seed)
        counts = [each.together and each.together.count for each in updates._replays._found.values()]
        assert counts == ([3, 3, 2, None, 3, 2] if is_again else [])
        for layer in model:
            layer.weight.validate()
        found.append(arrays(model, optimizer))
    assert len(found[0]) == len(found[1])
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(*found))


def test_weights_of_a_group_part_where_one_is_missing(replayed):
    """A state that was loaded lies elsewhere: its weight is updated by steps, the others go on without it."""
    model, s, optimizer, updates = several()
    groups = lambda: {n: each.together for n, each in updates._replays._found.items()}
    steps(model, optimizer, updates, 3, 0)
    before, held = groups(), optimizer.state[model[0].weight.values]
    held["exp_avg"] = held["exp_avg"].clone()
    steps(model, optimizer, updates, 1, 1)
    after = groups()
    assert after["0.weight"] is None and after["1.weight"].count == 2 and after["1.weight"] is after["4.weight"]
    assert after["2.weight"] is before["2.weight"]
    steps(model, optimizer, updates, 2, 2)
    for layer in model:
        layer.weight.validate()


def test_what_cannot_be_made_together_is_made_one_by_one(replayed, monkeypatch):
    """An operation without a rule for several patterns, and a graph that cannot be captured, cost no update."""

    def fail(*_):
        raise RuntimeError("vmap: no rule")

    monkeypatch.setattr("lacis.training.together.mapped", fail)
    model, _, optimizer, updates = several()
    steps(model, optimizer, updates, 4, 0)
    assert all(each.together is None and each.graph is not None for each in updates._replays._found.values())
    monkeypatch.undo()
    monkeypatch.setattr(replay, "Lane", Lane)
    for name, answer in (("_is_plain", lambda tensor, device: True), ("_is_on_gpu", lambda tensor: True)):
        monkeypatch.setattr(replay, name, answer)
    monkeypatch.setattr(decide, "_on_host", lambda tensor: False)
    model, _, optimizer, updates = several()
    capture = replay.Replay.capture

    def spoilt(self, *given):
        capture(self, *given)
        if self.layer.name == "1.weight":
            self.graph = None

    monkeypatch.setattr(replay.Replay, "capture", spoilt)
    steps(model, optimizer, updates, 4, 0)
    found = updates._replays._found
    assert [each.graph is None for each in found.values()] == [False, True, False, False, False, False]
    assert found["0.weight"].together is None and found["2.weight"].together.count == 2
    for layer in model:
        layer.weight.validate()


def test_what_a_graph_makes_is_kept_for_that_graph_alone(monkeypatch):
    """A pattern made within a capture keeps what follows from it there, one made before does not, and nobody later."""
    now = [True]
    monkeypatch.setattr(kept, "is_captured", lambda _: now[0])
    text = "(i, j) -> (j : dense, i : compressed<unique=false>, link)"
    make = lambda: lacis.pack(torch.eye(4), lacis.Csr()).pattern
    before = make()
    with made_in_graphs():
        inside = make()
        assert inside.derived(text) is inside.derived(text)
        assert before.derived(text) is not before.derived(text)
    with made_in_graphs():
        assert inside.derived(text) is not inside.derived(text)
    now[0] = False
    assert inside.derived(text) is not inside.derived(text)
    assert before.derived(text) is before.derived(text)
