# SPDX-License-Identifier: Apache-2.0
"""A layer's call in inference: what a call costs beside its kernel is a few look-ups."""

from __future__ import annotations

import weakref

import torch

_dispatch_modes = torch._C._len_torch_dispatch_stack


class QuickCall:
    """Calls the kernel of one `SparseModule` on its input, with all other tensors bound beforehand.

    It looks where these are found in each call, so that new values and patterns are seen, and binds again where one is
    another tensor. A call answers None, and leaves it to the module's slower way, where the weight was replaced, a
    tensor is computed (a parametrization), another mode looks at every operator, or the kernel refuses the input.
    """

    def __init__(self, module, operator, kernel, places):
        weight = getattr(module, operator.attribute)
        parts = [(weight._modules, name, weight._part(name)) for name, _ in weight._named_parts() if name]
        self._owners = [(module._modules, operator.attribute, weight), *parts]
        self._places = [(module, name) for name in operator.extras(module)]
        self._places += [(weight._part(part), name) for part, name in places]
        self._copies = [(weight._part(part), name) for part, name in places if name in weight._part(part)._copies]
        self._looked_at = [(holder, name) for holder, name, _ in self._owners]
        for owner, name in self._places:
            self._looked_at.append((_holder(owner, name), "valid" if name == "bitmap" else name))
        self._kernel, self._key, self._packed_shape = kernel.bind, kernel.key, list(weight.shape)
        self._run, self._shape = kernel.bound(), operator.shape_rule(module)
        self._otherwise = weakref.WeakMethod(module.general)
        self._bound: tuple = (), None  # where its tensors were found, with them, and the call

    def __call__(self, x):
        if _dispatch_modes():
            return None
        for part, name in self._copies:
            part.tensor(name)  # made again where the values have changed
        known, call = self._bound
        try:
            for holder, name, tensor in known:
                if holder[name] is not tensor:
                    call = None
            if call is None:
                call = self._bind()
            return None if call is None else self._run(x, call.number)
        except (KeyError, RuntimeError):
            return None

    def _bind(self):
        """The call on the tensors that the module has now; None where the weight was replaced."""
        self.release()
        if any(holder[name] is not owner for holder, name, owner in self._owners):
            return None
        known = tuple((holder, name, holder[name]) for holder, name in self._looked_at)
        tensors = [getattr(owner, name) for owner, name in self._places]
        call = self._kernel(tensors, self._key, self._packed_shape, *self._shape, otherwise=self._general)
        self._bound = known, call
        return call

    def _general(self, x):
        return self._otherwise()(x)

    def release(self) -> None:
        """Let go of the tensors until the next call."""
        self._bound = (), None


def _holder(module, name):
    """The dictionary that holds a module's tensor; assignments to the module go there, too."""
    return module._parameters if name in module._parameters else module._buffers
