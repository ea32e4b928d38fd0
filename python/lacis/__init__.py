# SPDX-License-Identifier: Apache-2.0
"""Lacis: a sparse tensor compiler for PyTorch."""

from __future__ import annotations

import importlib

from . import knobs
from .nearest import nearest as _nearest

__version__ = "0.1.0"

# Public names and the rooms they live in; a room is imported when one of its names is asked for.
_ROOMS = {
    "errors": ["CompileError", "DataError", "Error", "FormatError", "ScheduleError"],
    "formats": [
        "Bcsc", "Bitmap", "BlockedEll", "Bsr", "Coo", "CooTensor", "Csb", "Csc", "CscTensor", "Csf", "Csr", "CsrTensor",
        "Dcsr", "Dense", "Dia", "Ell", "EllpackTensor", "Format", "GroupCoo", "Hyb", "LevelKind", "NMFormat", "Placed",
        "Rule", "Sell", "SparseTensor", "SrBcrs", "Sum", "TwoFour", "array", "binding", "ctz", "decompose", "diagonal",
        "digit", "fori", "fuse", "iter", "kind", "load", "nnz", "popcount", "rank", "slot", "where", "whilei",
    ],
    "packing": [
        "PackedTensor", "from_blocked_ell", "from_semi_structured", "from_sliced_ell", "pack", "to_semi_structured",
    ],
    "patterns": ["Pattern"],
    "activations": ["Activation", "activation"],
    "operators": ["Operator", "operator"],
    "capture": ["Epilogue"],
    "sparsifiers": [
        "BigBird", "Causal", "Dilated", "Documents", "Fixed", "KMeans", "LastQueries", "Local", "Longformer",
        "PatternRule", "Similarity", "TopKBlocks", "Variable",
        "BlockMagnitude", "BlockRandom", "Given", "Keep", "Magnitude", "Movement", "NM", "Policy", "Ramp", "Random",
        "Quantile", "Regrow", "SparseGPT", "Sparsifier", "Threshold", "Wanda",
    ],
    "schedule": ["Schedule"],
    "nn": ["require_equal_patterns", "take_masks"],
    "runtime.densify": ["densify"],
    "runtime.chain": ["ChainKernel", "kernel"],
    "runtime.check_kind": ["check_kind"],
    "runtime.compile": ["Kernel", "compile"],
    "runtime.compile_many": ["compile_many"],
    "runtime.einsum": ["einsum"],
    "runtime.saved": ["save_kernels"],
    "training": ["Updates", "create_schedule", "load_schedule"],
    "attentions": ["attention", "block_mask", "logsumexp", "merge_attention", "softmax"],
}  # fmt: skip
_HOME = {name: room for room, names in _ROOMS.items() for name in names}
_ADDED = {"nn": {"SparseLinear": "runtime.sparse_linear"}}  # names in a room that one to its right makes
_MODULES = {"knobs": "knobs", "steps": "schedule.steps", "nn": "nn", "errors": "errors", "compat": "compat"}

__all__ = [*sorted(_HOME), *sorted(_MODULES)]


def __getattr__(name: str):
    if name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    else:
        raise AttributeError(f"module 'lacis' has no attribute '{name}'{_nearest(name, __all__)}")
    globals()[name] = value
    return value


def added(room: str, name: str):
    """A public name of a room that a room to its right makes. Raises `AttributeError`."""
    home = _ADDED[room].get(name)
    if home is None:
        raise AttributeError(f"module 'lacis.{room}' has no attribute '{name}'")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


knobs.warn_of_unknown_variables()
if knobs.kernel_path:  # graphs with kernels in them are loaded here: torch must know the operators
    importlib.import_module(f"{__name__}.runtime.library").register()
