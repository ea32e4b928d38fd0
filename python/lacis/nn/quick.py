# SPDX-License-Identifier: Apache-2.0
"""A layer's call in inference: what a call costs beside its kernel is a few look-ups."""

from __future__ import annotations


class _Attributes:
    """What a module computes, looked up like what it holds."""

    def __init__(self, module):
        self.module = module

    def __getitem__(self, name):
        return getattr(self.module, name)


def _holder(module, name):
    """The dictionary that holds a module's tensor; assignments to the module go there, too."""
    for holder in (module._parameters, module._buffers):
        if holder.get(name) is not None:
            return holder
    return _Attributes(module)


class QuickCall:
    """Calls the kernel of one `SparseModule` through the overload that records no gradients.

    It keeps where tensors are found, never a tensor, so new values and patterns are seen. A call answers None, and
    leaves it to the module's slower way, when the weight was replaced or the operator does not know the input.
    """

    __slots__ = ("operator", "run", "refusal", "key", "packed_shape", "owners", "places", "copies")

    def __init__(self, module, operator, kernel, key: str, places):
        weight = getattr(module, operator.attribute)
        self.operator = operator
        self.run = kernel.inference()
        self.refusal = kernel.refusal
        self.key = key
        self.packed_shape = list(weight.shape)
        parts = [(weight._modules, name, part) for name, part in weight._named_parts() if name]
        self.owners = [(module._modules, operator.attribute, weight), *parts]
        self.places = [(_holder(module, name), name) for name in operator.extras(module)]
        self.places += [(_holder(weight._part(part), name), name) for part, name in places]
        self.copies = [(weight._part(part), name) for part, name in places if name in weight._part(part)._copies]

    def __call__(self, module, *args):
        for holder, name, owner in self.owners:
            if holder.get(name) is not owner:
                return None
        sizes = self.operator.quick(module, *args)
        if sizes is None:
            return None
        sizes += self.packed_shape
        tensors = [args[0]]
        for part, name in self.copies:
            part.tensor(name)  # made again where the values have changed
        try:
            for holder, name in self.places:
                tensors.append(holder[name])
            return self.run(tensors, sizes, self.key)
        except KeyError:  # a parametrization computes it now
            return None
        except RuntimeError as error:
            module._check(tensors[: 1 + len(self.operator.extras(module))])
            raise self.refusal(error) from error
