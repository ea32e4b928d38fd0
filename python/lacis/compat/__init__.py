# SPDX-License-Identifier: Apache-2.0
"""The names of other systems over Lacis, one file each: code written for them runs with another import line."""

import importlib

_MODULES = ("blocksparse", "pytorch_block_sparse", "sten", "torchao")

__all__ = [*_MODULES]


def __getattr__(name: str):
    if name not in _MODULES:
        raise AttributeError(f"module 'lacis.compat' has no attribute '{name}'; it has {', '.join(_MODULES)}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
