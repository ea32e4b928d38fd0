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
    for format, bytes in ((_ROWS, 32), (_COLUMNS, 128)):
        step = Derivation("layout", (("capacity", 12), ("format", format), ("swizzle", bytes)))
        lists = Derivation("tile_schedule", _LISTS, step)
        weight.bind([("", step, "pos1"), ("", step, "values"), ("", lists, "pos2")])
    for _ in range(3):
        model(torch.randn(8, 192).bfloat16()).square().mean().backward()
        made.clear(), operators.clear()
        assert updates.step()
    assert made == [True, True]
    assert len(operators) < 650, "a GPU takes 1.5 us for each, however small"
    weight.validate()


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
