# SPDX-License-Identifier: Apache-2.0
"""Classes that scheduled modules have: subclasses of their own whose forward goes through a door."""

from __future__ import annotations

import types
from collections.abc import Callable


class _Quiet:
    """First among the bases, it is asked in place of the user's `__init_subclass__`."""

    def __init_subclass__(cls, **options) -> None:
        pass


def _subclass(name: str, bases: tuple, named: dict) -> type:
    """A class of which its bases are not told, as they may count or name their subclasses."""
    made = types.new_class(name, (_Quiet, *bases), {}, lambda space: space.update(named))
    made.__bases__ = bases
    return made


def attending(cls: type, refuse: Callable) -> type:
    """A subclass whose forward goes through `_lacis_door` of its object."""
    try:
        return _attending(cls)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        refuse(f"its class {cls.__name__} takes no subclass ({said}); schedule a module around it, or inside")


def _attending(cls: type) -> type:
    def forward(self, *args, **kwargs):
        return self._lacis_door.run(super(made, self).forward, args, kwargs)

    def reduce(self, protocol):
        return _of_class, (cls,), self.__dict__

    named = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    made = _subclass(cls.__name__, (cls,), {**named, "forward": forward, "__reduce_ex__": reduce})
    return made


def _of_class(cls: type):
    """What copies and files of a module begin with."""
    made = _attending(cls)
    return made.__new__(made)


def without(cls: type, made: type, refuse: Callable) -> type:
    """`cls`, which others may have put on top of `made`, with the class below `made` in its place."""
    if cls is made:
        return made.__bases__[0]
    if made not in cls.__mro__:
        return cls
    if any("__class__" in each.__code__.co_freevars for each in vars(cls).values() if hasattr(each, "__code__")):
        refuse(f"{cls.__name__} was put on top of it and calls super(), so it cannot be made anew; take it off first")
    named = {name: each for name, each in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    try:
        return _subclass(cls.__name__, tuple(without(base, made, refuse) for base in cls.__bases__), named)
    except TypeError as error:
        refuse(f"{cls.__name__} was put on top of it and cannot be made anew ({error}); take it off first")
