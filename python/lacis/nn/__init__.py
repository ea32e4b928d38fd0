# SPDX-License-Identifier: Apache-2.0
"""Modules that take the place of dense layers: plain tensors, and a kernel's key."""

from .. import added
from . import init
from .dense import dense_module
from .kept_gradient import KeptGradient
from .master import Master, MasterForward
from .probe import Probe
from .ranks import require_equal_patterns
from .sparse_module import SparseModule
from .take_masks import take_masks
from .takes_dense_states import TakesDenseState
from .uses import Products, Recipe
from .weight import PackedPart, PackedSum, PackedWeight, weight_module

__all__ = [
    "KeptGradient",
    "Master",
    "MasterForward",
    "PackedPart",
    "PackedSum",
    "PackedWeight",
    "Probe",
    "Products",
    "Recipe",
    "SparseModule",
    "TakesDenseState",
    "dense_module",
    "init",
    "require_equal_patterns",
    "take_masks",
    "weight_module",
]


def __getattr__(name: str):
    return added("nn", name)
