# SPDX-License-Identifier: Apache-2.0
"""The operators that can run on a sparse weight, one file each; importing the folder registers every file in it."""

import importlib
import pkgutil

from .operator import OPERATORS, Operator, candidates, find, operator

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["OPERATORS", "Operator", "candidates", "find", "operator"]
