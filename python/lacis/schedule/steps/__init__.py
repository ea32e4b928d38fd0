# SPDX-License-Identifier: Apache-2.0
"""The verbs of a schedule, one file each; importing the folder registers every file in it.

>>> Split("i", 32)
Split(loop='i', factor=32)
"""

import importlib
import pkgutil

from .step import STEPS, Step, primitive

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

globals().update({cls.__name__: cls for cls in STEPS.values()})

__all__ = ["STEPS", "Step", "primitive", *sorted(cls.__name__ for cls in STEPS.values())]
