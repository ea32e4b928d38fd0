# SPDX-License-Identifier: Apache-2.0
"""A packed tensor: a pattern and the values of its slots."""

from __future__ import annotations

import math

import torch

from ..errors import DataError
from ..formats import Format, Sum, is_format
from ..notebook import html
from ..patterns.build import for_tensor
from ..patterns.capturing import is_captured
from ..patterns.derivation import Derivation
from ..patterns.gather import scatter
from ..patterns.pattern import Pattern, part_name
from ..patterns.seen import Seen, runs_again
from .check_values import check_values
from .entries import Entries
from .products import dense_times, require_matrix, times_dense


class PackedTensor:
    """Made by `lacis.pack` or `from_storage`.

    `values` is [slots, trailing dense extents...], row-major inside blocks, after the sizes of a batch; of a sum, a
    dict of part name to tensor. It can be assigned, and takes part in autograd where it requires a gradient.

    >>> import torch
    >>> from lacis.packing import pack
    >>> packed = pack(torch.eye(3), "(i, j) -> (i : dense, j : compressed)")
    >>> packed
    PackedTensor([3, 3], #lacis.format<(i, j) -> (i : dense, j : compressed)>, nnz=3, float32, cpu)
    >>> packed.with_values(packed.values * 2).to_dense().diagonal().tolist()
    [2.0, 2.0, 2.0]
    """

    def __init__(self, pattern: Pattern, values: dict[str, torch.Tensor]):
        self.pattern = pattern
        self._values = values
        self._tiles: dict[tuple[str, str], tuple] = {}  # copies in execution layouts, after what they are copies of

    @classmethod
    def from_storage(cls, format, shape, storage, values=None) -> "PackedTensor":
        """From arrays by name, as `.storage` has them; see `lacis.packing.validate.from_storage`."""
        from .validate import from_storage

        return from_storage(format, shape, storage, values)

    @property
    def format(self) -> Format | Sum:
        return self.pattern.format

    @property
    def shape(self) -> torch.Size:
        return self.pattern.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> torch.dtype:
        return self._any().dtype

    @property
    def device(self) -> torch.device:
        return self._any().device

    def _any(self) -> torch.Tensor:
        return next(iter(self._values.values()))

    @property
    def values(self):
        return dict(self._values) if isinstance(self.format, Sum) else self._values[""]

    @property
    def values_by_part(self) -> dict[str, torch.Tensor]:
        """The values of each part; the name is "" where the format is no sum."""
        return dict(self._values)

    @values.setter
    def values(self, values) -> None:
        self._values = self._checked(values)

    def with_values(self, values) -> "PackedTensor":
        """The same pattern with other values, of the same shape and device; any dtype."""
        return PackedTensor(self.pattern, self._checked(values))

    def _checked(self, values) -> dict[str, torch.Tensor]:
        values = dict(values) if isinstance(self.format, Sum) else {"": values}
        if set(values) != set(self.pattern.parts):
            raise DataError(f"values of the parts {sorted(self.pattern.parts)} are needed, not of {sorted(values)}")
        for name, part in self.pattern.parts.items():
            check_values(part_name(name, "values"), values[name], part.values_shape, self.pattern.device)
        if len({t.dtype for t in values.values()}) > 1:
            raise DataError("the values of all parts must have one dtype")
        return {name: values[name] for name in self.pattern.parts}

    @property
    def storage(self) -> dict[str, torch.Tensor]:
        """Integer arrays by name, in kernel order: `pos1`, `crd1`, in a sum `ell.crd1`."""
        return self.pattern.storage

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """What kernels take: for each part its arrays, its validity bitmap, then its `values`, by name."""
        flat: dict[str, torch.Tensor] = {}
        for name, part in self.pattern.parts.items():
            flat.update({part_name(name, key): tensor for key, tensor in part.kernel_arrays.items()})
            flat[part_name(name, "values")] = self._values[name]
        return flat

    def derived(self, step: Derivation | str, part: str = "") -> dict[str, torch.Tensor]:
        """The arrays that a step makes, or a companion index by its format's text, kept on the pattern."""
        return self.pattern.derived(step, part)

    def array(self, part: str, step: Derivation | str, name: str) -> torch.Tensor:
        """One array that kernels take: of what a step makes, or the tensor's own where the step is empty."""
        if name == "values":
            return self._copied(part, step) if step else self._values[part]
        return self.pattern.array(part, step, name)

    def kept_copy(self, part: str, step: Derivation) -> torch.Tensor | None:
        """The values in the execution layout of a step, where a copy is kept that is not older than they are."""
        values = self._values[part]
        if torch.compiler.is_compiling() or values.is_inference() or runs_again(values):
            return None
        seen, changes, tiles = self._tiles.get((part, step), (None, None, None))
        kept = seen is not None and seen.still(values) and changes == self.pattern.changes
        return tiles if kept else None

    def _copied(self, part: str, step: Derivation) -> torch.Tensor:
        """The values in the execution layout of a step; kept until they change."""
        tiles, values = self.kept_copy(part, step), self._values[part]
        if tiles is None:
            tiles = self.pattern.layout(step, part).values(values.detach(), step.line)
            if not (torch.compiler.is_compiling() or values.is_inference() or is_captured(values.device)):
                self._tiles[part, step] = Seen(values), self.pattern.changes, tiles
        return tiles

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self.pattern.nnz

    @property
    def slots(self) -> int:
        """The number of stored values, padding included."""
        return sum(math.prod(part.values_shape) for part in self.pattern.parts.values())

    @property
    def nbytes(self) -> int:
        """Bytes of values, arrays and validity bitmaps."""
        return sum(t.numel() * t.element_size() for t in self.tensors.values())

    def to(self, *args, **kwargs) -> "PackedTensor":
        """Another format, or as `torch.Tensor.to`: another dtype of the values, or another device.

        `to(format)` takes a `Format`, a `Sum` or a class of formats, and stores the same entries in it, on the same
        device and without a dense tensor; explicit zeros stay, entries at one place are summed unless it keeps them.
        Differentiable in `values`. How values move is kept on the pattern: the second conversion, and one of other
        values, is one gather. In the format that it has, the tensor is its own answer.

        >>> import lacis, torch
        >>> packed = lacis.pack(torch.tensor([[1.0, 2.0], [3.0, 0.0]]), lacis.Csr)
        >>> packed.to(lacis.Csc).values.tolist(), packed.to(torch.float64).dtype
        ([1.0, 3.0, 2.0], torch.float64)

        Raises `FormatError` for a format of another rank or without code, `DataError` for a width that is too small.
        """
        if args and is_format(args[0]):
            if len(args) + len(kwargs) > 1:
                raise DataError("to: a format comes alone; .to(format).to(dtype) changes both")
            return self._in_format(for_tensor(args[0], self.shape))
        values = {name: t.to(*args, **kwargs) for name, t in self._values.items()}
        device = next(iter(values.values())).device
        return PackedTensor(self.pattern if device == self.device else self.pattern.to(device), values)

    def _in_format(self, format: Format | Sum) -> "PackedTensor":
        if format == self.format:
            return self
        conversion = self.pattern.conversion(format)
        flat = [values.reshape(-1) for values in self._values.values()]
        return PackedTensor(conversion.pattern, conversion.values(torch.cat(flat) if len(flat) > 1 else flat[0]))

    def of_part(self, name: str) -> "PackedTensor":
        """One part of a sum, over the same arrays and values."""
        return PackedTensor(self.pattern.of_part(name), {"": self._values[name]})

    def transpose(self, *permutation: int) -> "PackedTensor":
        """The transpose, over the same arrays and values."""
        return PackedTensor(self.pattern.transpose(*permutation), self._values)

    @property
    def T(self) -> "PackedTensor":
        """The transpose of a matrix, over the same arrays and values; `DataError` for other tensors."""
        require_matrix(self, "T")
        return self.transpose(1, 0)

    def __matmul__(self, x) -> torch.Tensor:
        """`packed @ x` for a dense `x` [j], [j, k] or [..., j, k]: [i], [i, k] or [..., i, k], as `lacis.einsum`.

        >>> import lacis, torch
        >>> lacis.pack(torch.tensor([[0.0, 2.0], [3.0, 0.0]]), lacis.Csr) @ torch.tensor([1.0, 10.0])
        tensor([20.,  3.])
        """
        return times_dense(self, x)

    def __rmatmul__(self, x) -> torch.Tensor:
        """`x @ packed` for a dense `x` [i] or [..., i]: [j] or [..., j], as `lacis.einsum`."""
        return dense_times(x, self)

    def entries(self) -> Entries:
        """Coordinates and values of the entries, part by part."""
        axes, values = [], []
        for name, part in self.pattern.parts.items():
            index, where = part.entry_axes()
            axes.append(where)
            own = self._values[name].reshape(-1)
            values.append(own if index is None else own[index])
        axes, values = [torch.cat(parts) for parts in zip(*axes)], torch.cat(values).detach()
        return Entries(tuple(self.shape), axes, values, unique=self.pattern.distinct)

    def to_dense(self) -> torch.Tensor:
        """The strided tensor; entries at one place are summed. Differentiable in `values`."""
        return scatter(self.pattern, self._values)

    def to_torch(self) -> torch.Tensor:
        """The torch tensor of the same layout; raises `FormatError` where torch has none."""
        from .torch_layouts import to_torch

        return to_torch(self)

    def to_scipy(self, layout: str | None = None):
        """The SciPy array in one of its layouts, on the CPU: "csr", "csc", "coo", "bsr", "dia", "lil" or "dok".

        By default it is that of the format (`Csr`, `Csc`, `Coo`, `Bsr`), whose values are the same memory on a CPU.
        Values are detached; duplicates are summed but in "coo". Raises `FormatError` where SciPy has no such layout,
        and `DataError` for half types and without SciPy.
        """
        from .scipy_matrices import to_scipy

        return to_scipy(self, layout)

    def to_blocked_ell(self) -> tuple[torch.Tensor, torch.Tensor]:
        """cuSPARSE's arrays of a `BlockedEll(b, b)`: int [rows / b, width], -1 for none, and values [rows, width * b].

        `lacis.from_blocked_ell` reads them. Raises `FormatError` for other formats, and blocks that do not divide.
        """
        from .blocked_ell import to_blocked_ell

        return to_blocked_ell(self)

    def to_sliced_ell(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """cuSPARSE's slice offsets, columns and values of a `Sell(c, 1)`; raises `FormatError` for other formats."""
        from .sliced_ell import to_sliced_ell

        return to_sliced_ell(self)

    def validate(self) -> "PackedTensor":
        """Raise `DataError`, with the array and the place, unless all arrays are well formed and padding is 0."""
        from .validate import validate

        validate(self)
        return self

    def map(self, function) -> "PackedTensor":
        """`function(values, *coordinates)` at every entry; padding stays 0.

        It gets one-dimensional tensors: the values of all slots, and their int64 coordinates, one tensor an axis. It
        returns as many values, of any dtype. Differentiable in what it reads.

        >>> import lacis
        >>> packed = lacis.pack(torch.tensor([[0.0, 2.0], [3.0, 4.0]]), lacis.Csr)
        >>> packed.map(lambda v, i, j: torch.where(j > i, -1.0, v * 10)).to_dense()
        tensor([[ 0., -1.],
                [30., 40.]])
        """
        from .mapped import mapped

        return mapped(self, function)

    def plot(self, axes=None):
        """Spy plot, entries per row, and padding (needs matplotlib); returns the figure."""
        from .plot import plot

        return plot(self, axes)

    def _repr_html_(self) -> str:
        what = f"{self.slots} stored values, {self.slots - self.nnz} of them padding; {self.nbytes} bytes"
        return html(f"{self!r}\n{what}")

    def __getstate__(self):
        return {**self.__dict__, "_tiles": {}}  # copies and files make their own

    def __repr__(self) -> str:
        what = f"nnz={self.nnz}, {str(self.dtype).removeprefix('torch.')}, {self.device}"
        return f"PackedTensor({list(self.shape)}, {self.format}, {what})"
