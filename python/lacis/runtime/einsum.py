# SPDX-License-Identifier: Apache-2.0
"""`lacis.einsum`: an einsum with one packed operand."""

from __future__ import annotations

import torch

from ..capture import capture_einsum
from ..errors import user_location
from ..packing import PackedTensor
from .compile import load_kernel


def einsum(
    expression: str,
    *operands,
    semiring: str = "plus_times",
    epilogue=None,
    deterministic: bool = True,
    target: str = "auto",
    steps=(),
) -> torch.Tensor:
    """Sum of products as `torch.einsum` writes it; one operand is packed, the others are dense.

    >>> import torch, lacis
    >>> w = lacis.pack(torch.tensor([[0.0, 2.0], [3.0, 0.0]]), lacis.Csr)
    >>> einsum("nk,bk->bn", w, torch.tensor([[1.0, 10.0]]), target="eager").tolist()
    [[20.0, 3.0]]

    Half types are summed in float32. Only entries take part, so NaN and infinity in a dense operand reach the outputs
    of kept entries alone. Raises `DataError` when operands do not fit the expression or each other.
    """
    if semiring != "plus_times":
        raise NotImplementedError(f"semiring '{semiring}' is not built yet; there is 'plus_times'")
    if epilogue is not None:
        raise NotImplementedError("epilogues of einsum are not built yet")
    if not any(isinstance(operand, PackedTensor) for operand in operands):
        return torch.einsum(expression, *operands)
    spec, sizes = capture_einsum(expression, operands, user_location(), steps)
    if target == "eager":
        dense = [o.to_dense() if isinstance(o, PackedTensor) else o for o in operands]
        return torch.einsum(expression, *dense)
    packed = operands[spec.packed]
    kernel = load_kernel(spec, target, packed.device)
    dense = [operand for n, operand in enumerate(operands) if n != spec.packed]
    shape = [sizes[letter] for letter in spec.output.indices]
    return kernel.run(dense, packed, shape)
