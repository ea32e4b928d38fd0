# SPDX-License-Identifier: Apache-2.0
"""What follows from the patterns of several weights of one size, made at once: as many operations as for one."""

from __future__ import annotations

import torch

from ..capture.gradient import VALUES
from ..nn.arrays import as_buffer
from ..nn.replace import write_all
from ..patterns import Pattern
from ..patterns.structure import Structure
from ..patterns.transforms import mapped


class Together:
    """Weights that are alike but for their numbers; a graph makes the derived arrays of all from where theirs lie."""

    def __init__(self, weights: list, key: tuple):
        self._weights, self.count, self.key = weights, len(weights), key
        self.lane = self.graph = None

    def capture(self, lane) -> bool:
        """Make the graph, which does not run; False where there can be none."""
        try:
            with torch.no_grad():
                self._derive()  # what comes from the host is on the device then
                self.lane, self.graph = lane, lane.captured(self._derive)
        except RuntimeError:  # an operation that cannot be mapped: each weight alone says what is wrong, if anything is
            return False
        return self.graph is not None

    def run(self) -> None:
        """Launch it on the present stream."""
        self.graph.replay()

    def _derive(self) -> None:
        names = self._weights[0].format.buffers
        stacked = {name: torch.stack([each.array(name) for each in self._weights]) for name in names}
        stacked[VALUES] = torch.stack([each.values.detach() for each in self._weights])
        made = mapped(self._of_one, stacked)
        held = [getattr(each, name) for name in made for each in self._weights]
        write_all(zip(held, (new for tensor in made.values() for new in as_buffer(tensor).contiguous()), strict=True))

    def _of_one(self, given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        part, buffers = self._weights[0], dict(given)
        values = buffers.pop(VALUES)
        structure = Structure.of_values(part.format, part.packed_shape, buffers, values, has_room=part.has_room)
        return part.derived_arrays(Pattern(part.format, {"": structure}), values)


def kin(weight) -> tuple | None:
    """What is equal for weights whose derived arrays are made together; None where they are made for each alone."""
    parts = weight._parts()
    part = parts[0]
    made = {name for names in part.derived.values() for name in names.values()} - set(part.format.buffers)
    if len(parts) > 1 or part.valid is not None or part.kept_gradient is not None or not made:
        return None
    arrays = ((name, array.shape, array.dtype) for name, array in part.own_arrays.items())
    derived = tuple((key, *names.items()) for key, names in part.derived.items())
    return (
        part.format,
        part.packed_shape,
        part.has_room,
        part.values.shape,
        part.values.dtype,
        part.values.device,
        *arrays,
        derived,
    )
