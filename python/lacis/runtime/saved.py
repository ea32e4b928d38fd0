# SPDX-License-Identifier: Apache-2.0
"""Saves kernels for another process (`LACIS_KERNEL_PATH`)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

import torch

from ..errors import DataError
from ..nn import SparseModule
from .compile import EinsumKernel, Kernel
from .engine import Kernels
from .gradients import Family


def save_kernels(model, path: str | os.PathLike) -> None:
    """Write every kernel that the sparse layers of `model` run into the folder `path`: those of gradients where they
    are compiled, and those of the dtypes that autocast asked for; of modules that attend those of exported programs.

    `model` may also be what `lacis.compile` or `Schedule.compile_only` answers, or a list or mapping of such.

    >>> import lacis, tempfile, torch
    >>> w = lacis.pack(torch.eye(3), lacis.Csr)
    >>> kernel = lacis.compile("ij,bj->bi", w, torch.ones(2, 3))
    >>> folder = tempfile.mkdtemp()
    >>> save_kernels(kernel, folder)
    >>> f"{kernel.key}.lacis" in os.listdir(folder)
    True

    Raises `DataError` for what has no kernels.
    """
    from .kernels import save

    doors = [vars(m).get("_lacis_door") for m in model.modules()] if isinstance(model, torch.nn.Module) else []
    found = {key: kernel.loaded for door in doors if door is not None for key, kernel in door.exported.items()}
    save(found | {family.key: family.kernel.loaded for family in _families(model)}, path)


def _families(what) -> Iterator[Family]:
    if isinstance(what, torch.nn.Module):
        layers = (getattr(vars(m).get("forward"), "layer", m) for m in what.modules())
        modules = [m for m in layers if isinstance(m, SparseModule) and m.target != "eager"]
        weights = [m for m in what.modules() if getattr(m, "is_packed_weight", False) and m._products is not None]
        modules += [layer for weight in weights for layer in weight._products.used]
        yield from (family for module in modules for family in module.family().compiled())
    elif isinstance(what, EinsumKernel):
        yield from (family for part in what.parts.values() for family in part.family.compiled())
    elif isinstance(what, Kernel):
        yield from what.family.compiled()
    elif isinstance(what, Kernels):
        yield from what.compiled
    elif isinstance(what, Iterable) and not isinstance(what, str):
        for each in what.values() if isinstance(what, Mapping) else what:
            yield from _families(each)
    else:
        raise DataError(
            f"save_kernels: a {type(what).__name__} has no kernels; give a built model, or what lacis.compile or "
            "compile_only() of a schedule answers"
        )
