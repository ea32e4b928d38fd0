# SPDX-License-Identifier: Apache-2.0
"""What follows the sum of an einsum, in one kernel with it."""

from __future__ import annotations

import dataclasses

import torch

from ..activations import find_activation
from ..errors import DataError
from .spec import Operand


@dataclasses.dataclass(frozen=True, eq=False)
class Epilogue:
    """`activation(scale * sum + bias) + residual`, computed in float32 (float64) before the result is rounded.

    `bias`: a tensor with one axis for each letter of `bias_axis`; by default one axis, along the last letter of the
    output that the packed operand has, else along the output's last letter. `activation`: `"relu"`,
    `"leaky_relu(0.01)"`, `"gelu"`, `"gelu_tanh"` or `"silu"`, as torch defines them, or one that you add. `scale`: a
    Python number, which is compiled in; or a tensor, read at every call, without axes or with those of the bias.
    `residual`: a tensor of the output's shape. All default to None: nothing is done.
    Tensors have the dtype and device of the operands.

    >>> import torch, lacis
    >>> w, x = lacis.pack(torch.tensor([[0.0, 2.0], [-3.0, 0.0]]), lacis.Csr), torch.ones(1, 2)
    >>> after = Epilogue(bias=torch.tensor([0.5, 1.0]), activation="relu", scale=2.0)
    >>> lacis.einsum("ij,bj->bi", w, x, epilogue=after).tolist()
    [[4.5, 0.0]]

    Raises `DataError` for an activation of another name; `einsum` raises it for tensors that do not fit.
    """

    bias: torch.Tensor | None = None
    activation: str | None = None
    scale: float | torch.Tensor | None = None
    residual: torch.Tensor | None = None
    bias_axis: str | None = None

    def __post_init__(self):
        if self.activation is not None:
            if not isinstance(self.activation, str):
                raise DataError(f"epilogue: activation must be text, not {type(self.activation).__name__}")
            try:
                find_activation(self.activation)
            except DataError as error:
                raise DataError(f"epilogue: {error.message}") from None
        for name in ("bias", "residual"):
            if not isinstance(getattr(self, name), torch.Tensor | None):
                raise DataError(f"epilogue: {name} must be a tensor, not {type(getattr(self, name)).__name__}")
        if not isinstance(self.scale, torch.Tensor | float | int | None):
            raise DataError(f"epilogue: scale must be a number or a tensor, not {type(self.scale).__name__}")

    def axes(self, output, packed) -> tuple[str, ...]:
        """The letters of the bias, where the output and the packed operand have these letters."""
        if self.bias_axis is None:
            shared = [letter for letter in output if letter in packed]
            return tuple((shared or list(output))[-1:])
        unknown = [letter for letter in self.bias_axis if letter not in output]
        if unknown or len(set(self.bias_axis)) != len(self.bias_axis):
            raise DataError(
                f"epilogue: bias_axis is '{self.bias_axis}', the output has the letters '{''.join(output)}'"
            )
        return tuple(self.bias_axis)

    def operands(self, output, packed, sizes, dtype, device) -> dict:
        """Scale, bias, activation and residual for a `KernelSpec`. Raises `DataError` for tensors that do not fit."""
        axes = self.axes(output, packed)
        known = {"bias": (self.bias, axes), "residual": (self.residual, tuple(output))}
        if isinstance(self.scale, torch.Tensor):
            known["scale"] = (self.scale, axes if self.scale.ndim else ())
        found = {"activation": None if self.activation is None else find_activation(self.activation).text}
        if isinstance(self.scale, (int, float)):
            found["scale"] = float(self.scale)
        for name, (tensor, letters) in known.items():
            if tensor is not None:
                _check(name, tensor, [sizes[letter] for letter in letters], dtype, device)
                found[name] = Operand(name, letters, tensor.dtype)
        return found

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors of a call, in the order of the kernel's arguments."""
        return [t for t in (self.scale, self.bias, self.residual) if isinstance(t, torch.Tensor)]

    def to(self, dtype: torch.dtype) -> Epilogue:
        """The same with tensors of another dtype."""
        found = {name: getattr(self, name) for name in ("scale", "bias", "residual")}
        cast = {name: tensor.to(dtype) for name, tensor in found.items() if isinstance(tensor, torch.Tensor)}
        return dataclasses.replace(self, **cast)

    @property
    def only_bias(self) -> bool:
        """Is it one bias along one axis, or nothing?"""
        plain = self.activation is None and self.scale is None and self.residual is None
        return plain and (self.bias is None or self.bias.ndim == 1)

    def apply(self, total: torch.Tensor, output, packed) -> torch.Tensor:
        """The same in torch's own operators, on a tensor with the letters `output`."""
        if self.scale is not None:
            total = total * self._spread(self.scale, output, packed)
        if self.bias is not None:
            total = total + self._spread(self.bias, output, packed)
        if self.activation is not None:
            total = find_activation(self.activation).eager(total)
        return total if self.residual is None else total + self.residual

    def _spread(self, value, output, packed):
        """A bias or scale with one axis for each letter of the output."""
        if not isinstance(value, torch.Tensor) or value.ndim == 0:
            return value
        axes = self.axes(output, packed)
        place = sorted(range(len(axes)), key=lambda n: output.index(axes[n]))
        shape = [value.shape[axes.index(letter)] if letter in axes else 1 for letter in output]
        return value.permute(place).reshape(shape)


def _check(name: str, tensor: torch.Tensor, shape: list[int], dtype, device) -> None:
    if list(tensor.shape) != shape:
        raise DataError(f"epilogue: {name} must have shape {shape}, not {list(tensor.shape)}")
    if tensor.dtype != dtype or tensor.device != device:
        have, want = f"{tensor.dtype} on {tensor.device}", f"{dtype} on {device}"
        raise DataError(f"epilogue: {name} is {have}, the operands {want}; cast or move it")
