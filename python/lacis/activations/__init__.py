# SPDX-License-Identifier: Apache-2.0
"""Activations that run in one kernel with a product, one file each; importing the folder registers every file in it."""

import importlib
import pkgutil

from .activation import ACTIVATIONS, Activation, activation, find_activation

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["ACTIVATIONS", "Activation", "activation", "find_activation"]
