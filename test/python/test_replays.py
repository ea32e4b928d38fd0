# SPDX-License-Identifier: Apache-2.0
"""Updates that are done again on other numbers: what a graph would do is done by the same operations on a CPU."""

import lacis
import pytest
import torch
from lacis.training import decide, replay
from test_updates import build, train


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
