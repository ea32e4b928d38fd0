# SPDX-License-Identifier: Apache-2.0
"""When patterns change: what `Schedule.attach` answers."""

from __future__ import annotations

import torch

from ..errors import DataError, ScheduleError
from ..nn import require_equal_patterns
from ..sparsifiers import Sparsifier
from .decide import decide
from .layer import Layer
from .replay import Replays

_NEVER = float("inf")


class Updates:
    """Made by `Schedule.attach`. Call `step` once for each step of training; save it beside model and optimizer.

    The patterns of the weights whose sparsifier has a `Ramp` or is a `Policy` change when that says. What the
    followers keep goes with the entries: the state of any optimizer that has a number for each value, and copies of
    the model. Values that come begin with 0 unless the policy says otherwise, and so does their state.

    >>> import lacis, torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 4))
    >>> s = lacis.create_schedule(model, target="eager")
    >>> ramp = lacis.Ramp(0.0, 0.75, range(0, 5, 2), power=1)
    >>> handle = s["0.weight"].sparsify(lacis.Magnitude(ramp)).set_format(lacis.Csr)
    >>> model = s.build()
    >>> optimizer = torch.optim.AdamW(model.parameters())
    >>> updates = s.attach(optimizer)
    >>> for step in range(5):
    ...     model(torch.randn(2, 8)).sum().backward()
    ...     optimizer.step()
    ...     changed = updates.step()
    ...     optimizer.zero_grad()
    ...     print(changed, handle.packed.nnz)
    False 32
    True 20
    False 20
    True 8
    False 8
    """

    def __init__(self, model, layers: list[Layer], followers, group, resize: bool):
        self._count = 0
        self._model, self._layers, self.followers = model, layers, list(followers)
        self._group, self._resize = group, resize
        self._replays = Replays()
        self._ended: str | None = None
        self._policies = [layer for layer in layers if layer.policy is not None]
        self._observing = [layer for layer in layers if layer.observes]
        for layer in self._observing:
            layer.begin()
        self._plan()

    @property
    def count(self) -> int:
        """How often `step` was called."""
        return self._count

    def step(self) -> bool:
        """Count a step, change the patterns that are due, and answer whether any did.

        Call it once after each `backward()`, before or after `optimizer.step()`, and before `zero_grad()` where a
        policy reads gradients. A weight that changed has no gradient afterwards, so that `if not updates.step():
        optimizer.step()` is RigL's own order. Raises `DataError` where a policy reads a gradient that is not there,
        where a weight was changed by `set_packed` (its followers do not know), and what a policy or its format raises;
        nothing has changed then.
        """
        self._require_attached()
        count = self._count + 1
        due = [layer for layer in self._policies if layer.is_due(count)] if count >= self._next else []
        before = [(layer, dict(layer.state)) for layer in self._observing]
        try:
            for layer in self._observing:
                layer.state = {name: array.clone() for name, array in layer.state.items()}
                layer.policy.observe(layer.look(layer.policy, count).view)
            changed = self.change([(layer, layer.policy) for layer in due], count)
        except BaseException:
            for layer, state in before:
                layer.state = state
            raise
        self._count = count
        if count >= self._next - 1:
            self._plan()
        return changed

    def change(self, asked: list[tuple[Layer, Sparsifier]], step: int) -> bool:
        """Have each weight take what a sparsifier says, as a whole or not at all; is any pattern another one now?"""
        if not asked:
            return False
        moves, replays = [], {}
        for layer, _ in asked:
            for follower in self.followers:
                follower.check(layer)
        if self._group is None:
            replays = self._replays.ready(asked, step, self.followers, self._resize)
        for layer, sparsifier in asked:
            if layer.name in replays:
                continue
            look = layer.look(sparsifier, step, self._group)
            decision = decide(look, sparsifier, self._group)
            moves.append(look.moved(decision, self._resize))
        return self._write([move for move in moves if move is not None], list(replays.values()))

    def fit(self, layer: Layer) -> None:
        """Give the room of a weight back, and that of what follows it."""
        for follower in self.followers:
            follower.check(layer)
        move = layer.look(layer.policy, self._count).fitted()
        if move is not None:
            self._write([move])
            for part in layer.weight._parts():
                part.keep_room(False)

    def _write(self, moves: list, replays: list = ()) -> bool:
        """Put in what was made and checked, with all that follows, and run what was captured; is there any?"""
        writes = [write for follower in self.followers for move in moves for write in follower.moved(move)]
        with torch.no_grad():
            for write in [*(move.write for move in moves), *writes]:
                write()
            self._replays.run(replays)
        return bool(moves or replays)

    def state_dict(self) -> dict:
        """The number of steps, and the arrays of the policies by name of the weight: plain tensors.

        With the states of the model and of the optimizer, training goes on bit by bit as it would have.
        """
        return {"count": self._count, "policies": {layer.name: layer.saved() for layer in self._policies}}

    def load_state_dict(self, state: dict) -> None:
        """What `state_dict` gave, on a model of the same schedule, before or after model and optimizer are loaded.

        Raises `DataError` for the state of another schedule, and changes nothing then.
        """
        self._require_attached()
        names = [layer.name for layer in self._policies]
        count = state.get("count") if isinstance(state, dict) else None
        if type(count) is not int or count < 0 or not isinstance(state.get("policies"), dict):
            raise DataError("load_state_dict: a state has 'count' and 'policies', as Updates.state_dict() gives them")
        if set(state["policies"]) != set(names):
            raise DataError(
                f"load_state_dict: the state is of the weights {sorted(state['policies'])}, the schedule has policies "
                f"for {sorted(names)}"
            )
        for layer in self._policies:
            _check_arrays(layer, state["policies"][layer.name])
        for layer in self._policies:
            layer.load(state["policies"][layer.name])
        self._count = count
        self._plan()

    def end(self, reason: str) -> None:
        """From now on `step` raises."""
        self._ended = reason
        for layer in self._layers:
            if layer.collector is not None:
                layer.collector.disarm()

    def _plan(self) -> None:
        """When the next update is due, and which weights collect gradients for it in the backward pass before."""
        whens = [layer.policy.due() for layer in self._policies]
        self._next = min((_after(when, self._count) for when in whens), default=_NEVER)
        for layer in self._policies:
            if layer.collector is not None:
                layer.collector.disarm()
                if layer.is_due(self._count + 1):
                    layer.collector.arm()

    def _require_attached(self) -> None:
        if self._ended is not None:
            raise ScheduleError(f"these updates are attached no more: {self._ended}")
        for layer in self._layers:
            if layer.weight.sets_by_hand != layer.sets_by_hand:
                raise DataError(
                    f"the pattern of '{layer.name}' was set by set_packed(), so what follows it has the entries "
                    f'before; s["{layer.name}"].resparsify(...) takes followers along'
                )

    def require_equal(self) -> None:
        """Compare the patterns of all ranks of the group; see `require_equal_patterns`."""
        if self._group is not None:
            require_equal_patterns(self._model, self._group)


def _check_arrays(layer: Layer, given) -> None:
    """Raise `DataError` unless a state has the arrays of a layer's policy, as far as the pattern does not say."""
    kept = layer.saved()
    if not isinstance(given, dict) or set(given) != set(kept):
        what = sorted(given) if isinstance(given, dict) else f"a {type(given).__name__}"
        raise DataError(f"load_state_dict: '{layer.name}' keeps {sorted(kept)}, the state has {what}")
    for name, array in given.items():
        if not isinstance(array, torch.Tensor) or array.is_meta:
            what = "on the meta device" if isinstance(array, torch.Tensor) else f"a {type(array).__name__}"
            raise DataError(f"load_state_dict: '{name}' of '{layer.name}' is a tensor, not {what}")


def _after(when: range, count: int) -> float:
    """The first step of `when` after `count`."""
    if count < when[0]:
        return when[0]
    number = (count - when[0]) // when.step + 1
    return when[number] if number < len(when) else _NEVER
