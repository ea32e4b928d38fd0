# SPDX-License-Identifier: Apache-2.0
"""The verbs of a schedule, one file each; importing the folder registers every file in it.

>>> Split("i", 32)
Split(loop='i', factor=32)
>>> parse(Split("i", 32).text()) == Split(factor=32, loop="i")
True
"""

import importlib
import pkgutil

from ...nearest import nearest
from .step import STEPS, Step, primitive

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

from .parse import in_words, parse  # noqa: E402  (after the verbs; the function, not the module)
from .sequence import Steps  # noqa: E402

globals().update({cls.__name__: cls for cls in STEPS.values()})


def __getattr__(name: str):
    known = [cls.__name__ for cls in STEPS.values()]
    raise AttributeError(f"lacis.steps has no '{name}'{nearest(name, known)}; it has {', '.join(sorted(known))}")


__all__ = ["STEPS", "Step", "Steps", "in_words", "parse", "primitive", *sorted(cls.__name__ for cls in STEPS.values())]
