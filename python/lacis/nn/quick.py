# SPDX-License-Identifier: Apache-2.0
"""A layer's call on tensors that were bound beforehand: what it costs beside its kernels is a few look-ups."""

from __future__ import annotations

import weakref

import torch
from torch.autograd import forward_ad

# Looked up once: what each call of Python touches costs several times as much where the model between two calls has
# used the caches.
_dispatch_modes = torch._C._len_torch_dispatch_stack
_transforms = torch._C._are_functorch_transforms_active
_captures = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)  # a torch without CUDA has none
_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # 0, the default one, is never captured
_WRITTEN = 2  # what `changed` of a kernel answers where other numbers were written into the same tensors


class Watched:
    """What was made for the tensors of a `SparseModule`, and is made again where one is another tensor.

    `places` are (part, attribute) of the weight. It looks where the tensors are found in each call, so that new values
    and patterns are seen; where the weight was replaced or a tensor is computed (a parametrization), there is nothing.
    Arrays that are derived from a pattern's own are others where those are, so that only those are looked at.
    """

    def __init__(self, module, operator, kernel, places):
        weight = getattr(module, operator.attribute)
        parts = [(weight._modules, name, weight._part(name)) for name, _ in weight._named_parts() if name]
        self._follow = weakref.WeakMethod(module.follow)
        self._owners = [(module._modules, operator.attribute, weight), *parts]
        self._places = [(module, name) for name in operator.extras(module)]
        self._places += [(weight._part(part), name) for part, name in places]
        used = [(owner, "valid" if name == "bitmap" else name) for owner, name in self._places]
        own = [(part, name) for part in weight._parts() for name in (*part.format.buffers, "valid")]
        derived = [place for place in used if place not in own and _is_derived(module, *place)]
        looked_at = [place for place in dict.fromkeys(used + own) if place not in derived]
        self._looked_at = [(holder, name) for holder, name, _ in self._owners] + _held(looked_at)
        self._derived = _held(derived)
        self._device: int | None = None  # of a GPU
        self._changed = kernel.changed()
        self._bound: tuple = (), None  # where what is looked at was found, with it, and what was made
        self._used: tuple = ()  # the same of arrays that are derived
        self._written: tuple = ()  # the arrays of the pattern, with the changes that were counted

    def make(self, tensors):
        """What a call needs, for these tensors: the operator's extras, then those at `places`."""
        raise NotImplementedError

    def found(self):
        """What was made for the tensors that the module has now, or None. Raises `KeyError` where one is missing."""
        known, made = self._bound
        if self._device is not None and _stream(self._device) and _captures():
            self._follows()  # a graph walks these arrays from now on
        found = self._changed(known, self._written)
        if not found and made is not None:
            return made
        return self._bind_again(made) if found == _WRITTEN else self._bind()

    def _bind(self):
        self.release()
        if any(holder[name] is not owner for holder, name, owner in self._owners) or not self._follows():
            return None
        made = self.make([getattr(owner, name) for owner, name in self._places])
        self._note(_found(self._looked_at), _found(self._derived), made)
        return made

    def _bind_again(self, made):
        """`_bind`, where others were written into arrays that lie where they lay: what is bound to these stays."""
        (known, _), used = self._bound, self._used
        self.release()
        if not self._follows():
            return None
        if any(holder[name] is not tensor for holder, name, tensor in known + used) or not self.serves(made):
            return self._bind()
        self._note(known, used, made)
        return made

    def serves(self, made) -> bool:
        """Is `made` what `make` would make of the same tensors now?"""
        return True

    def _note(self, known, used, made) -> None:
        weight = self._owners[0][2]
        parts, device = weight._parts(), weight.device
        self._device = device.index if device.type == "cuda" else None
        self._written = tuple(each for part in parts for each in part.written() if not each[0].is_inference())
        self._bound, self._used = (known, made), used

    def _follows(self) -> bool:
        """`SparseModule.follow`; False where the interpreter exits and has taken the module apart."""
        follow = self._follow()
        return follow is not None and follow()

    def release(self) -> None:
        """Let go of the tensors until the next call."""
        self._bound, self._used, self._written = ((), None), (), ()


class QuickCall(Watched):
    """Calls the kernel of one `SparseModule` on its input in inference, with all other tensors bound beforehand.

    A call answers None, and leaves it to the module's slower way, where nothing is bound, another mode looks at every
    operator, the kernel refuses the input, or the call must have copies of values of its own.
    """

    def __init__(self, module, operator, kernel, places):
        super().__init__(module, operator, kernel, places)
        weight = getattr(module, operator.attribute)
        self._copies = [(weight._part(part), name) for part, name in places if name in weight._part(part)._copies]
        self._kernel, self._key, self._packed_shape = kernel.bind, kernel.key, list(weight.packed_shape)
        self._run, self._shape = kernel.bound(), operator.shape_rule(module)
        self._otherwise = weakref.WeakMethod(module.general)

    def __call__(self, x):
        # The last two are `is_transformed`, without a call of Python.
        if _dispatch_modes() or _transforms() or forward_ad._current_level >= 0:
            return None
        for part, name in self._copies:
            if not part.refreshed(name):
                return None
        try:
            call = self.found()
            return None if call is None else self._run(x, call.number)
        except (AttributeError, KeyError, RuntimeError):
            return None

    def make(self, tensors):
        return self._kernel(tensors, self._key, self._packed_shape, *self._shape, otherwise=self._general)

    def _general(self, x):
        return self._otherwise()(x)


def _is_derived(module, owner, name) -> bool:
    """Does an array that is not the pattern's own follow from those alone?"""
    return owner is not module and name in owner._buffers and name not in owner._copies


def _held(places) -> list[tuple]:
    """Modules' tensors by the dictionaries that hold them; assignments to a module go there, too."""
    return [(own._parameters if name in own._parameters else own._buffers, name) for own, name in places]


def _found(places) -> tuple:
    return tuple((holder, name, holder[name]) for holder, name in places)
