# SPDX-License-Identifier: Apache-2.0
"""Convolutions: a product with the windows of the input, `y[n, i, p] = sum_j w[i, j] * windows[n, j, p] + bias[i]`."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from .operator import Operator, operator

_CONVOLUTIONS = {1: torch.nn.Conv1d, 2: torch.nn.Conv2d, 3: torch.nn.Conv3d}
_DENSE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TAPS = {1: "r", 2: "rs", 3: "rst"}


class _Convolution(Operator):
    """A convolution over `rank` axes; windows are views of the input (`torch.Tensor.unfold`) that one copy lays out."""

    bias = "i"
    over: int

    def matches(self, module):
        cls = _CONVOLUTIONS[self.over]
        return isinstance(module, cls) and type(module).forward is cls.forward

    def refusal(self, module):
        if module.groups == 1:
            return None
        kind = "depthwise" if module.groups == module.in_channels else "grouped"
        return (
            f"is a {kind} convolution ({module.groups} groups), of which each group is a matrix of its own: split it "
            "into one convolution a group, or leave it dense"
        )

    def has_bias(self, module):
        return module.bias is not None

    def windows(self, module, x):
        """The input as [n, channels, taps..., places...]; a view where a window is one place."""
        if x.ndim not in (self.over + 1, self.over + 2) or x.shape[-self.over - 1] != module.in_channels:
            layer = getattr(module, "_title", self.name)
            sizes = ", ".join(["n", str(module.in_channels), *["size"] * self.over])
            raise RuntimeError(f"{layer}: the input has shape {list(x.shape)}, it must be [{sizes}], or that without n")
        x = _padded(module, x if x.ndim == self.over + 2 else x[None])
        for axis, (size, stride, step) in enumerate(zip(module.kernel_size, module.stride, module.dilation), 2):
            x = x.unfold(axis, (size - 1) * step + 1, stride)[..., ::step]
        return x.movedim(tuple(range(2, 2 + self.over)), tuple(range(-self.over, 0)))

    def inputs(self, module, x):
        windows = self.windows(module, x)
        flat = windows.reshape(*self.axes(windows), math.prod(windows.shape[-self.over :]))
        dense = [flat] if module.bias is None else [flat, module.bias]
        return dense, (flat.shape[0], module.out_channels, flat.shape[-1])

    def axes(self, windows) -> tuple[int, ...]:
        """The sizes of the kernel's operand before that of the places."""
        raise NotImplementedError

    def answer(self, module, y, x):
        padding, sizes = module._reversed_padding_repeated_twice, []
        for n in range(self.over):
            before, after = padding[2 * (self.over - 1 - n) : 2 * (self.over - n)]
            reach = (module.kernel_size[n] - 1) * module.dilation[n]
            sizes.append((x.shape[n - self.over] + before + after - reach - 1) // module.stride[n] + 1)
        y = y.reshape(*y.shape[:2], *sizes)
        return y if x.ndim == self.over + 2 else y[0]

    def eager(self, weight, module, x):
        given = module.bias, module.stride, 0, module.dilation
        y = _DENSE[self.over](_padded(module, x if x.ndim == self.over + 2 else x[None]), weight, *given)
        return y if x.ndim == self.over + 2 else y[0]


def _padded(module, x):
    if not any(module._reversed_padding_repeated_twice):
        return x
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    return F.pad(x, module._reversed_padding_repeated_twice, mode=mode)


class _OfMatrix(_Convolution):
    """With the weight as the matrix [out, in * taps], which two axes of a format mean."""

    statement = "ij,njp->nip"
    operands = ("w", "x")

    def axes(self, windows):
        return windows.shape[0], math.prod(windows.shape[1 : -self.over])


class _OfTaps(_Convolution):
    """With an axis of the format for each axis of the weight."""

    operands = ("w", "x")

    def axes(self, windows):
        return windows.shape[: -self.over]


for _over, _taps in _TAPS.items():
    _names = {"name": f"conv{_over}d", "over": _over, "__doc__": f"`torch.nn.Conv{_over}d` with a matrix for a weight."}
    operator(type(f"Conv{_over}d", (_OfMatrix,), _names))
    _names = {"name": f"conv{_over}d_taps", "over": _over, "statement": f"ic{_taps},nc{_taps}p->nip"}
    operator(type(f"Conv{_over}dTaps", (_OfTaps,), {**_names, "__doc__": f"`torch.nn.Conv{_over}d`, axis by axis."}))
