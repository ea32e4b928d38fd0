# SPDX-License-Identifier: Apache-2.0
"""The level kinds, one file each; importing the folder registers every file in it."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
