# SPDX-License-Identifier: Apache-2.0
"""What is known of the arrays of a packed part: which were checked, and which hold nothing yet."""

from __future__ import annotations

import time

import torch

from ..errors import DataError
from ..patterns.capturing import refuse_capture
from ..patterns.fingerprint import fingerprint
from ..patterns.room import is_longer
from ..patterns.seen import changes

_VALUES = "values"


class Known:
    """The arrays that kernels may walk, each with how many changes torch had counted when it was checked.

    Arrays reach a part by many ways: `set_packed`, `load_state_dict`, an assignment, writes into what `state_dict()`
    gave. `follow` looks at all of them before a kernel does.
    """

    def __init__(self):
        self._checked: dict[str, tuple[torch.Tensor, int]] = {}
        self._empty: dict[str, tuple[torch.Tensor, int]] = {}
        self._print: torch.Tensor | None = None  # of arrays that somebody writes again and again

    def note(self, part) -> None:
        """The part's arrays are well formed, and what is derived from them is theirs."""
        self._checked, self._print = _counted(part.own_arrays), None
        self._empty = {}

    def holds(self, part) -> bool:
        """Are the arrays those that were noted, with nothing written since?"""
        return _same(self._checked, part.own_arrays)

    def written(self) -> list[tuple[torch.Tensor, int]]:
        """The arrays of the pattern, each with the changes that were counted: a call looks whether there are more."""
        return list(self._checked.values())

    def follow(self, part) -> None:
        """Check what was written into the arrays, or put in their place, and derive the rest from it again.

        Raises `DataError` where the arrays are malformed, or hold nothing.
        """
        self.require_content(part)
        if self.holds(part) or not all(map(_is_plain, part.own_arrays.values())):
            return  # a tracer or a transform of torch answers for arrays of its own
        refuse_capture(part.values.device, "what follows from a pattern")
        if self._print is not None and torch.equal(self._print, fingerprint(part.own_arrays)):
            self._checked = _counted(part.own_arrays)  # the same numbers, as DDP sends them before each forward pass
            return
        packed = part.packed().validate()
        part.keep_room(part.has_room or is_longer(part.format, packed.storage, len(packed.values)))
        part.refresh()
        self._print = fingerprint(part.own_arrays)

    def empty(self, part) -> str | None:
        """The name of a tensor on the meta device, or one that was emptied and into which nothing was written since."""
        for name, tensor in {_VALUES: part.values, **part.own_arrays}.items():
            if tensor.is_meta or (name in self._empty and _same({name: self._empty[name]}, {name: tensor})):
                return name
        return None

    def require_content(self, part) -> None:
        """Raise `DataError` where a tensor holds no numbers."""
        name = self.empty(part)
        if name is None:
            return
        if getattr(part, name).is_meta:
            raise DataError(
                f"'{name}' is on the meta device and holds no numbers; load_state_dict(state, assign=True) brings "
                "them, or to_empty(device=...) and then load_state_dict(state)"
            )
        raise DataError(f"'{name}' holds no numbers since to_empty(); load_state_dict(state) brings them")

    def moved(self, part, before: dict[str, torch.Tensor], held: bool, keeps: bool) -> None:
        """The part's tensors are others now, which `keeps` their content or does not; it `held` those `before`."""
        now = {_VALUES: part.values, **part.own_arrays}
        empty = [name for name in now if not keeps or before[name].is_meta or name in self._empty]
        self._empty = _counted({name: now[name] for name in empty})
        self._checked = _counted(part.own_arrays) if held and not empty else {}

    def __getstate__(self):
        return {"_checked": {}, "_print": None, "_empty": self._empty}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._empty = {name: (tensor, changes(tensor)) for name, (tensor, _) in self._empty.items()}


def keeps_content(fn, device: torch.device) -> bool:
    """Does what `torch.nn.Module._apply` is given keep the numbers of a tensor? That of `to_empty` does not."""
    if device.type == "meta":
        return True
    probe = torch.arange(64, device=device) * 0x9E3779B97F4A7C1 + time.perf_counter_ns()
    found = fn(probe.clone())
    return found.is_meta or torch.equal(found.to(device), probe)


def _is_plain(tensor: torch.Tensor) -> bool:
    own = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    return type(tensor) in own and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def _counted(arrays) -> dict[str, tuple[torch.Tensor, int]]:
    return {name: (tensor, changes(tensor)) for name, tensor in arrays.items()}


def _same(known, arrays) -> bool:
    if known.keys() != arrays.keys():
        return False
    return all(known[name][0] is tensor and known[name][1] == changes(tensor) for name, tensor in arrays.items())
