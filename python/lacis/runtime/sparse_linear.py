# SPDX-License-Identifier: Apache-2.0
"""`lacis.nn.SparseLinear`: a sparse layer that never was a dense one."""

from __future__ import annotations

import torch

from ..errors import DataError, user_location
from ..formats import Format, as_format
from ..formats.widths import weight_format
from ..nn import Products, Recipe, SparseModule, weight_module
from ..nn.init import kaiming_uniform_, uniform_bias_
from ..packing import PackedTensor, pack
from ..patterns import Pattern
from ..sparsifiers import BlockRandom, Given, Random, Sparsifier
from .compile import load_kernel
from .einsum import einsum
from .targets import resolve_target


class SparseLinear(SparseModule):
    """A linear layer with a packed weight [out, in], made without a dense one. `lacis.nn.SparseLinear` is its name.

    `pattern` says the entries: a `lacis.Pattern` in this format, a sparse tensor of torch (its indices), a bool mask
    [out, in], or `lacis.Random(...)` and `lacis.BlockRandom(...)`, whose blocks are the format's. A pattern and a
    sparse tensor take no memory beside the entries, the others a byte an element while the layer is made.
    The first values are those of `torch.nn.Linear` with the fan-in of each row's own entries
    (`lacis.nn.init.kaiming_uniform_`). `bias`: True; `device`: that of the pattern, or torch's default; `dtype`:
    torch's default; `target`: as in `create_schedule`.
    What a built layer does it does too: state dicts, `set_packed`, `torch.compile`, `lacis.densify`.

    >>> import lacis
    >>> layer = lacis.nn.SparseLinear(64, 32, lacis.Bsr(8, 8), lacis.BlockRandom(0.75), target="eager")
    >>> layer(torch.randn(5, 64)).shape, layer.weight.values.shape
    (torch.Size([5, 32]), torch.Size([8, 8, 8]))

    Raises `DataError` where the pattern is not [out, in] or in another format, for a sparsifier that chooses by value,
    and for a dtype without kernels; `FormatError` for a format that does not fit; `ScheduleError` for the target.
    """

    def __init__(
        self, in_features: int, out_features: int, format, pattern, bias=True, device=None, dtype=None, target="auto"
    ):
        location = user_location()
        dtype = dtype or torch.get_default_dtype()
        packed = _packed(pattern, (out_features, in_features), as_format(format), device, dtype)
        zeros = torch.zeros(out_features, device=packed.device, dtype=dtype) if bias else None
        self._hold(packed, None if zeros is None else torch.nn.Parameter(zeros), target, location)
        self.reset_parameters()

    def _hold(self, packed: PackedTensor, bias, target: str, location) -> None:
        """Become a layer on this weight."""
        resolve_target(target, packed.device, type(self).__name__, location)
        dense = torch.nn.Linear(1, 1, bias=False, device="meta", dtype=packed.dtype)
        (dense.out_features, dense.in_features), dense.bias = packed.shape, bias
        weight = weight_module(packed)
        weight._products = Products(Recipe(SparseModule, target, load_kernel, ((), location), einsum))
        SparseModule.__init__(self, dense, "linear", weight, target, load_kernel, location=location)

    def _get_name(self) -> str:
        return type(self).__name__

    def reset_parameters(self) -> None:
        """First values again, as in a new layer."""
        kaiming_uniform_(self.weight, a=5**0.5)
        if self.bias is not None:
            uniform_bias_(self.bias, self.weight)


def _packed(pattern, shape, format, device, dtype) -> PackedTensor:
    """Zeros at the entries."""
    if isinstance(pattern, Pattern):
        if pattern.format != format.for_rank(2):
            raise DataError(f"SparseLinear: the pattern is in '{pattern.format}', the format is '{format}'")
    elif isinstance(pattern, torch.Tensor) and pattern.layout != torch.strided:
        _require_shape(pattern.shape, shape)
        pattern = pack(pattern, weight_format(format.for_rank(2), shape)).pattern
    else:
        mask = pattern if isinstance(pattern, torch.Tensor) else _mask(pattern, shape, format, device)
        _require_shape(mask.shape, shape)
        pattern = Pattern.from_mask(mask, weight_format(format.for_rank(2), shape))
    _require_shape(pattern.shape, shape)
    pattern = pattern if device is None else pattern.to(torch.device(device))
    parts = pattern.parts.items()
    values = {name: torch.zeros(part.values_shape, dtype=dtype, device=pattern.device) for name, part in parts}
    return PackedTensor(pattern, values)


def _mask(sparsifier, shape, format, device) -> torch.Tensor:
    if not isinstance(sparsifier, Random | BlockRandom | Given):
        said = repr(sparsifier) if isinstance(sparsifier, Sparsifier) else type(sparsifier).__name__
        raise DataError(
            f"SparseLinear: the pattern is {said}, and there are no values to choose by; give a lacis.Pattern, a "
            "sparse tensor, a bool mask, lacis.Random or lacis.BlockRandom"
        )
    tile = format.tile if isinstance(format, Format) else ()
    bound = sparsifier.with_block(tile) if len(tile) == 2 else sparsifier
    return bound(torch.zeros(shape, dtype=torch.uint8, device=device))


def _require_shape(found, shape) -> None:
    if tuple(found) != tuple(shape):
        raise DataError(f"SparseLinear: the pattern is {list(found)}, the weight [out, in] is {list(shape)}")
