# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices of SciPy, which is imported where one is asked for."""

from __future__ import annotations

import torch

from ..errors import DataError, FormatError
from ..formats import Coo, Csc, Csr
from .torch_layouts import to_torch


_FORMATS = {"csr": Csr, "csc": Csc, "coo": Coo}
_LAYOUTS = (*_FORMATS, "bsr", "dia", "lil", "dok")
_ARRAYS = {torch.sparse_csr: "csr_array", torch.sparse_csc: "csc_array", torch.sparse_bsr: "bsr_array"}


def is_scipy(tensor) -> bool:
    """Is this a sparse matrix or array of SciPy? Nothing is imported for the answer."""
    return any(cls.__module__.startswith("scipy.sparse") for cls in type(tensor).__mro__)


def from_scipy(matrix) -> torch.Tensor:
    """The entries of a sparse matrix as a COO tensor of torch, on the CPU; duplicates and explicit zeros stay.

    Raises `DataError` for a dtype that torch lacks.
    """
    entries = matrix.tocoo()
    try:
        values = torch.from_numpy(entries.data)
    except TypeError:
        dtype = entries.data.dtype
        raise DataError(f"pack: torch has no dtype for the SciPy matrix's {dtype}; cast it first") from None
    coordinates = getattr(entries, "coords", None) or (entries.row, entries.col)
    indices = torch.stack([torch.from_numpy(each).long() for each in coordinates])
    return torch.sparse_coo_tensor(indices, values, entries.shape, check_invariants=False)


def to_scipy(packed, layout: str | None = None):
    """The SciPy array in a layout, on the CPU; see `PackedTensor.to_scipy`."""
    try:
        import scipy.sparse
    except ImportError:
        raise DataError("to_scipy: SciPy is not installed; 'pip install scipy' brings it") from None
    if packed.dtype in (torch.float16, torch.bfloat16):
        raise DataError(f"to_scipy: SciPy has no sparse arrays of {packed.dtype}; call .to(torch.float32) first")
    own = _own_array(packed, scipy.sparse)
    if layout is None and own is None:
        raise FormatError(
            f"SciPy has no layout for '{packed.format}'; it has Csr, Csc, Coo, and Bsr with blocks that divide the "
            'shape; .to_scipy("csr") has the same entries'
        )
    if layout is None or (own is not None and own.format == layout):
        return own
    if layout not in _LAYOUTS:
        raise FormatError(f"SciPy has no layout {layout!r}; it has {', '.join(_LAYOUTS)}")
    if len(packed.shape) != 2 and layout != "coo":
        raise FormatError(f"SciPy's {layout} has 2 axes, the tensor has {len(packed.shape)}; coo takes any number")
    return _own_array(packed.to(_FORMATS.get(layout, Csr)), scipy.sparse).asformat(layout)


def _own_array(packed, sparse):
    """The array of the same layout over the same memory; None where SciPy has none."""
    try:
        tensor = to_torch(packed).detach().cpu()
    except FormatError:
        return None
    if tensor.layout not in (torch.sparse_coo, *_ARRAYS):
        return None
    shape = tuple(tensor.shape)
    if tensor.is_sparse:
        return sparse.coo_array((tensor._values().numpy(), tuple(tensor._indices().numpy())), shape)
    if tensor.layout == torch.sparse_csc:
        arrays = tensor.values(), tensor.row_indices(), tensor.ccol_indices()
    else:
        arrays = tensor.values(), tensor.col_indices(), tensor.crow_indices()
    return getattr(sparse, _ARRAYS[tensor.layout])(tuple(array.numpy() for array in arrays), shape)
