# SPDX-License-Identifier: Apache-2.0
"""The names of Hugging Face's pytorch_block_sparse: random blocks, a patcher, blocks that change places."""

from __future__ import annotations

import math
import re
import warnings

import torch

from ..errors import DataError, ScheduleError, user_location
from ..runtime.sparse_linear import SparseLinear
from ..runtime.swap import as_a_whole, put
from .blocks import block_matrix, check_block, grid_of
from .regrow import SparseOptimizer

__all__ = [
    "BlockSparseLinear",
    "BlockSparseModelPatcher",
    "PseudoBlockSparseLinear",
    "SparseOptimizer",
]


class BlockSparseLinear(SparseLinear):
    """A linear layer of `int(density * blocks)` blocks at random places; any sizes, on the CPU and on CUDA.

    With `torch_nn_linear` the sizes, dtype, device and bias are its, and the blocks hold its values there; else values
    are normal, and the bias is zero. Both are scaled by 1/sqrt(density), so that outputs keep their variance.
    Places and values are drawn from torch's generator. Raises `DataError` for a density that is no share, and for a
    block shape that is none.

    >>> _ = torch.manual_seed(0)
    >>> layer = BlockSparseLinear(128, 64, density=0.25, block_shape=(32, 32), target="eager")
    >>> layer.block_count, layer(torch.ones(3, 128)).shape
    (2, torch.Size([3, 64]))

    After pytorch_block_sparse (Lagunas, 2020).
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        density: float = 0.5,
        torch_nn_linear: torch.nn.Linear | None = None,
        verbose: bool = False,
        block_shape=(32, 32),
        target: str = "auto",
    ):
        block = check_block(block_shape)
        if not isinstance(density, (int, float)) or not 0 <= density <= 1:
            raise DataError(f"BlockSparseLinear: a density is a share from 0 to 1, not {density!r}")
        given = torch_nn_linear
        if given is not None:
            in_features, out_features, bias = given.in_features, given.out_features, given.bias is not None
        like = torch.empty(0) if given is None else given.weight.detach()
        shape = (out_features, in_features)
        grid = grid_of(shape, block)
        count = int(density * math.prod(grid))
        places = torch.randperm(math.prod(grid), device=like.device)[:count].sort().values
        if given is None:
            values = torch.randn(count, *block)
        else:
            values = _under(like, block, places)
        packed = block_matrix(shape, block, places, values / math.sqrt(density) if count else values)
        made = torch.nn.Parameter(torch.zeros(out_features, dtype=like.dtype, device=like.device)) if bias else None
        if given is not None and bias:
            with torch.no_grad():
                made.copy_(given.bias)
        self._hold(packed, made, target, user_location())
        self.block_count, self.block_shape = count, block
        if verbose:
            print(f"{self}: {count} of {math.prod(grid)} blocks {list(block)}")


def _under(dense: torch.Tensor, block, places: torch.Tensor) -> torch.Tensor:
    """The values of a dense matrix in blocks of its grid, zero beyond its edge."""
    columns = grid_of(dense.shape, block)[1]
    axes = [
        at[:, None] * b + torch.arange(b, device=dense.device)
        for at, b in zip((places // max(columns, 1), places % max(columns, 1)), block)
    ]
    inside = [axis < size for axis, size in zip(axes, dense.shape)]
    rows, cols = (axis.clamp(max=size - 1) for axis, size in zip(axes, dense.shape))
    return dense[rows[:, :, None], cols[:, None, :]] * (inside[0][:, :, None] & inside[1][:, None, :])


class PseudoBlockSparseLinear(torch.nn.Module):
    """The same numbers as a `BlockSparseLinear` by a dense weight times a mask: what to compare with."""

    def __init__(self, block_sparse_linear: BlockSparseLinear):
        super().__init__()
        weight = block_sparse_linear.weight
        self.in_features, self.out_features = block_sparse_linear.in_features, block_sparse_linear.out_features
        self.weight = torch.nn.Parameter(weight.to_dense().detach())
        self.bias = block_sparse_linear.bias
        self.register_buffer("mask", weight.packed().pattern.to_mask())
        self.density = float(self.mask.sum()) / max(self.mask.numel(), 1)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight * self.mask, self.bias)


class BlockSparseModelPatcher:
    """Puts `BlockSparseLinear` in place of the `nn.Linear` modules whose names begin with a pattern (`re.match`).

    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())
    >>> patcher = BlockSparseModelPatcher(target="eager")
    >>> patcher.add_pattern("0", {"density": 0.5})
    >>> patcher.patch_model(model)
    >>> type(model[0]).__name__
    'BlockSparseLinear'

    A pattern's information is `density`, and also `block_shape` and `pseudo_linear`. The first pattern that matches
    counts. Raises `ScheduleError` for a pattern that matches another kind of module, before anything is changed; one
    that matches nothing warns.
    """

    def __init__(self, target: str = "auto"):
        self.patterns: list[dict] = []
        self.target = target

    def is_patchable(self, module_name, module, raiseError: bool = False) -> bool:
        patchable = type(module) is torch.nn.Linear
        if raiseError and not patchable:
            raise ScheduleError(f"cannot patch '{module_name}': it is a {type(module).__name__}, not a Linear layer")
        return patchable

    def get_patchable_layers(self, model) -> list[dict]:
        """`{"regexp", "layer"}` of each module that can be patched."""
        named = model.named_modules()
        return [{"regexp": re.escape(k), "layer": m} for k, m in named if k and self.is_patchable(k, m)]

    def add_pattern(self, pattern: str, patch_info: dict) -> None:
        unknown = set(patch_info) - {"density", "block_shape", "pseudo_linear"}
        if "density" not in patch_info or unknown:
            raise ScheduleError(
                f"a pattern has a 'density', may have 'block_shape' and 'pseudo_linear'; not {sorted(patch_info)}"
            )
        self.patterns.append({"pattern": pattern, "patch_info": dict(patch_info)})

    def pattern_match(self, module_name) -> tuple[bool, dict | int]:
        for each in self.patterns:
            if re.match(each["pattern"], module_name):
                return True, each["patch_info"]
        return False, -1

    def new_child_module(self, child_module_name, child_module, patch_info) -> torch.nn.Module:
        """What takes the place of a module."""
        density, block = patch_info["density"], patch_info.get("block_shape", (32, 32))
        known = dict(density=density, torch_nn_linear=child_module, block_shape=block, target=self.target)
        made = BlockSparseLinear(0, 0, **known)
        return PseudoBlockSparseLinear(made) if patch_info.get("pseudo_linear") else made

    def patch_model(self, model) -> None:
        """Patch a model in place."""
        made, seen = {}, {}
        for name, module in model.named_modules(remove_duplicate=False):
            match, info = self.pattern_match(name)
            if name and match:
                self.is_patchable(name, module, raiseError=True)
                if id(module) not in seen:
                    seen[id(module)] = self.new_child_module(name, module, info)
                made[name] = seen[id(module)]
        if not made:
            warnings.warn("no module of the model matches a pattern; nothing was patched", stacklevel=2)

        def change(undo):
            for name, module in made.items():
                put(model, name, module, undo)

        as_a_whole(change)
