# SPDX-License-Identifier: Apache-2.0
"""Updates that do the same operations again, on other numbers: captured in a CUDA graph, later ones are one launch.

An update is some thousand small operations, which the host takes longer to launch than a GPU to do. None of them waits
for the device where a policy keeps its counts (`Policy.repeats`), and all that is written lies where it lay.
"""

from __future__ import annotations

import collections
import math

import torch

from ..nn.sharded import is_sharded
from ..patterns.capturing import is_captured
from ..sparsifiers import Policy
from ..sparsifiers.choose import signed
from ..sparsifiers.view import seed_of
from .decide import decide
from .graph import Lane
from .together import Together, kin

_LANES = 4  # graphs that run at a time, for some of their steps have one thread block
_ALL = 2**30  # bytes of temporaries that all lanes may keep, each those of its largest graph
_LARGEST = 2**29  # and one graph: a weight that needs more is large enough to be updated by steps
_TOGETHER = 2**27  # and one graph of several weights


class Replays:
    """The captured updates of the weights of a model: for each weight those of the last kind that was seen."""

    def __init__(self):
        self._found: dict[str, Replay] = {}
        self._lanes: list[Lane] = []
        self._largest = 1  # bytes
        self._inputs: dict[tuple, torch.Tensor] = {}
        self._apart: set[tuple] = set()  # what is derived of such weights is made for each alone

    def ready(self, asked: list[tuple], step: int, followers, resize: bool) -> dict[str, Replay]:
        """By name of the weight, the updates which cannot fail; the others of `asked` are to be done step by step.

        Raises as `Layer.arrived`.
        """
        found = {}
        for layer, sparsifier in asked:
            kind = _kind_of(layer, sparsifier, step, followers)
            arrived = None if kind is None else layer.arrived(sparsifier)
            if arrived is None or not all(_is_on_gpu(grad) for grad in arrived.values()):
                continue
            kind += (resize, *((name, grad.shape, grad.dtype) for name, grad in arrived.items()))
            known = self._found.get(layer.name)
            if known is None or known.kind != kind:  # the first of a kind makes what later ones find
                self._found[layer.name] = Replay(layer, kind)
            else:
                known.prepare(arrived, sparsifier, step, followers)
                found[layer.name] = known
        for known in self._incomplete(found):
            known.forget()
        new = [known for known in found.values() if not known.is_tried]
        self._bring_together(new)
        for known in new:
            lane = self._lane(known.layer.weight.device, known.temporaries)
            inputs = {name: self._input(lane, name, grad) for name, grad in known.arrived.items()}
            known.capture(lane, inputs, step, followers, resize)
        able = {name: known for name, known in found.items() if known.graph is not None}
        for known in self._incomplete(able):  # the next update finds them apart
            self._apart.add(known.together.key)
            known.forget()
        for known in found.values():
            if known.graph is None:
                known.dismiss()
        return {name: known for name, known in able.items() if known.graph is not None}

    def run(self, replays: list[Replay]) -> None:
        """Do these updates, several at a time, then what they do together."""
        self._run(replays)
        self._run(list(dict.fromkeys(each.together for each in replays if each.together is not None)))
        for each in replays:
            each.note()
            each.dismiss()

    def _run(self, each_of: list) -> None:
        lanes = [lane for lane in self._lanes if any(each.lane is lane for each in each_of)]
        for lane in lanes:
            with lane.follows():
                for each in each_of:
                    if each.lane is lane:
                        each.run()
        for lane in lanes:
            lane.join()

    def _incomplete(self, found: dict[str, Replay]) -> list[Replay]:
        """Those of which others are missing whose derived arrays one graph makes with theirs."""
        present = collections.Counter(each.together for each in found.values())
        return [each for each in found.values() if each.together and present[each.together] < each.together.count]

    def _bring_together(self, new: list[Replay]) -> None:
        """Have the derived arrays of weights that are alike made by one graph, up to so many bytes of temporaries."""
        alike = collections.defaultdict(list)
        for known in new:
            if (key := kin(known.layer.weight)) is not None and key not in self._apart:
                alike[key].append(known)
        for key, members in alike.items():
            most = max(_TOGETHER // max(known.temporaries for known in members), 1)
            for first in range(0, len(members), most):
                some = members[first : first + most]
                together = Together([known.layer.weight for known in some], key)
                size = sum(known.temporaries for known in some)
                if len(some) > 1 and key not in self._apart:
                    if together.capture(self._lane(some[0].layer.weight.device, size)):
                        for known in some:
                            known.together = together
                    else:
                        self._apart.add(key)

    def _lane(self, device: torch.device, size: int) -> Lane:
        """A lane for a graph that keeps so many bytes: that on which the fewest weights are."""
        mine = [lane for lane in self._lanes if lane.device == device]
        self._largest = max(self._largest, size)
        if len(mine) < min(_LANES, _ALL // self._largest):
            self._lanes.append(Lane(device))
            return self._lanes[-1]
        return min(mine, key=lambda lane: sum(each.lane is lane for each in self._found.values()))

    def _input(self, lane: Lane, name: str | None, grad: torch.Tensor) -> torch.Tensor:
        """Where the graphs of a lane, one after another, find a gradient of this size."""
        key = id(lane), name, grad.shape, grad.dtype
        if key not in self._inputs:
            self._inputs[key] = torch.empty_like(grad, memory_format=torch.contiguous_format)
        return self._inputs[key]


class Replay:
    """A kind of update of a weight. Its graph reads gradients from `inputs`, and all else from where it lies."""

    def __init__(self, layer, kind: tuple):
        self.layer, self.kind = layer, kind
        self.forget()

    def forget(self) -> None:
        """There is no graph, and none was tried."""
        self.is_tried, self.lane, self.graph = False, None, None
        self.together: Together | None = None

    @property
    def temporaries(self) -> int:
        return _temporaries(self.layer, self._sparsifier)

    def capture(self, lane: Lane, inputs, step: int, followers, resize: bool) -> None:
        """Make the graph, which does not run, or find that there can be none."""
        layer, sparsifier, self.is_tried = self.layer, self._sparsifier, True
        self.lane, self._inputs = lane, inputs
        self._seed = torch.zeros((), dtype=torch.int64, device=lane.device)
        self._uneven = layer.weight.described().pattern.uneven

        def work():
            look = layer.look_with(sparsifier, step, inputs)
            look.view.seed_on_device = self._seed
            move = look.moved(decide(look, sparsifier), resize, derives=self.together is None)
            for write in [move.write, *(write for each in followers for write in each.moved(move))]:
                write()

        gradients = [(values, values.grad) for values in layer.values.values()]
        with torch.no_grad():
            self.graph = lane.captured(work)
        for values, grad in gradients:
            values.grad = grad

    def prepare(self, arrived, sparsifier, step: int, followers) -> None:
        """What the next `run` takes."""
        self.arrived, self._next_seed = arrived, signed(seed_of(sparsifier.seed, self.layer.name, step))
        self._sparsifier = sparsifier
        self._followed = [held for each in followers for held in each.held_for(self.layer)]

    def run(self) -> None:
        """Launch it on the present stream."""
        for name, held in self._inputs.items():
            held.copy_(self.arrived[name])
        self._seed.fill_(self._next_seed)
        self.graph.replay()

    def note(self) -> None:
        """Have everybody know of it who looks at a tensor's count of changes."""
        torch.autograd.graph.increment_version(self._followed)
        self.layer.note_written(self._uneven)

    def dismiss(self) -> None:
        """What `prepare` was told is no more needed."""
        self.arrived = self._followed = None


def _kind_of(layer, sparsifier, step: int, followers) -> tuple | None:
    """What must be the same for two updates of a weight to be alike; None where they cannot be captured."""
    if not isinstance(sparsifier, Policy) or not sparsifier.knows("repeats"):
        return None
    repeats = sparsifier.repeats(step)
    held = [layer.held(), *(each.held_for(layer) for each in followers)]
    if repeats is None or any(each is None for each in held):
        return None
    tensors, device = [tensor for each in held for tensor in each], layer.weight.device
    if not all(_is_plain(tensor, device) for tensor in tensors) or is_captured(device):
        return None
    if _temporaries(layer, sparsifier) > _LARGEST:
        return None
    lie = tuple((tensor.data_ptr(), tensor.shape, tensor.dtype) for tensor in tensors)
    return type(sparsifier), repeats, sparsifier.block, lie


def _temporaries(layer, sparsifier) -> int:
    """Bytes: as measured, 200 for each place of the weight, and eight times its values."""
    places = math.prod(layer.weight.packed_shape) // math.prod(sparsifier.block or ())
    return 200 * places + 8 * sum(values.nbytes for values in layer.values.values())


def _is_on_gpu(tensor: torch.Tensor) -> bool:
    return tensor.is_cuda and not is_sharded(tensor)


def _is_plain(tensor: torch.Tensor, device: torch.device) -> bool:
    own = type(tensor) in (torch.Tensor, torch.nn.Parameter) and type(tensor.data) is torch.Tensor
    return own and _is_on_gpu(tensor) and tensor.device == device and not tensor.is_inference()
