# SPDX-License-Identifier: Apache-2.0
"""Every environment variable that Lacis reads; nothing else reads one.

An attribute is read when asked for, so a change of the environment takes effect at once;
an assignment (`lacis.knobs.debug = True`) goes before the environment.

>>> from lacis import knobs
>>> isinstance(knobs.debug, bool)
True
"""

from __future__ import annotations

import dataclasses
import os
import sys
import types
import warnings
from typing import Any, Callable

from .nearest import nearest


@dataclasses.dataclass(frozen=True)
class Knob:
    """One variable: how its text is read, and what it is for (the table of docs/knobs.md)."""

    variable: str
    read: Callable[[str], Any]
    default: Callable[[], Any]
    meaning: str


def _flag(text: str) -> bool:
    return text.strip().lower() not in ("", "0", "false", "no", "off")


def _paths(text: str) -> tuple[str, ...]:
    return tuple(os.path.expanduser(p) for p in text.split(os.pathsep) if p)


def _default_cache() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "lacis")


def _none() -> None:
    return None


KNOBS: dict[str, Knob] = {
    "cache_dir": Knob("LACIS_CACHE_DIR", os.path.expanduser, _default_cache, "folder of compiled kernels"),
    "always_compile": Knob("LACIS_ALWAYS_COMPILE", _flag, bool, "do not take kernels from the cache"),
    "dump_dir": Knob("LACIS_DUMP_DIR", os.path.expanduser, _none, "write every stage of every kernel here"),
    "override_dir": Knob(
        "LACIS_OVERRIDE_DIR", os.path.expanduser, _none, "take stages found here instead of the compiler's"
    ),
    "kernel_path": Knob("LACIS_KERNEL_PATH", _paths, tuple, "files of saved kernels to load on demand"),
    "debug": Knob(
        "LACIS_DEBUG",
        _flag,
        bool,
        "checked kernels: no access outside of an array, operands looked through before each launch",
    ),
    "ptxas": Knob(
        "LACIS_PTXAS",
        os.path.expanduser,
        _none,
        "the ptxas to use; `off` leaves it to the driver, as does one that fails",
    ),
    "calibrate": Knob(
        "LACIS_CALIBRATE",
        _flag,
        lambda: True,
        "measure this CPU for the cost model when a prediction is first asked for; `0` takes the rates of a table",
    ),
    "log": Knob("LACIS_LOG", str, _none, "level of messages: debug, info, warning, error"),
}


def __getattr__(name: str):
    knob = KNOBS.get(name)
    if knob is None:
        raise AttributeError(_unknown(name))
    text = os.environ.get(knob.variable)
    return knob.default() if text is None or text == "" else knob.read(text)


def _unknown(name: str) -> str:
    return f"lacis.knobs has no '{name}'{nearest(name, KNOBS)}; it has {', '.join(KNOBS)}"


class _Knobs(types.ModuleType):
    """This module, which takes values for its knobs and for nothing else."""

    def __setattr__(self, name: str, value) -> None:
        if name not in KNOBS and name not in globals() and not name.startswith("__"):
            raise AttributeError(_unknown(name))
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Knobs


def unknown_variables() -> list[str]:
    """What the environment has that looks like a variable of Lacis and is none; those of its tests apart.

    >>> unknown_variables()
    []
    """
    known = {knob.variable for knob in KNOBS.values()}
    return [n for n in sorted(os.environ) if n.startswith("LACIS_") and n not in known and "_TEST_" not in n]


def warn_of_unknown_variables() -> None:
    """Say of each which variable is near; nothing reads it."""
    known = [knob.variable for knob in KNOBS.values()]
    for name in unknown_variables():
        warnings.warn(f"lacis reads no variable '{name}'{nearest(name, known)}; docs/knobs.md has all", stacklevel=3)


def is_given(name: str) -> bool:
    """Was it said at all, by an assignment or in the environment? Answers sooner than its value does."""
    return name in globals() or bool(os.environ.get(KNOBS[name].variable))


def __dir__() -> list[str]:
    return sorted(KNOBS)


def table() -> str:
    """The table of docs/knobs.md, as Markdown."""
    rows = ["| variable | `lacis.knobs` | meaning |", "|---|---|---|"]
    rows += [f"| `{k.variable}` | `{name}` | {k.meaning} |" for name, k in KNOBS.items()]
    return "\n".join(rows)
