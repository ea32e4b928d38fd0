# SPDX-License-Identifier: Apache-2.0
"""The bilinear layer: `y[b, i] = sum_jk w[i, j, k] * x1[b, j] * x2[b, k] + bias[i]`."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from .operator import Operator, operator


@operator
class Bilinear(Operator):
    """`torch.nn.Bilinear`; all leading dimensions of the inputs are one loop `b`."""

    name = "bilinear"
    statement = "ijk,bj,bk->bi"
    operands = ("w", "x", "x2")
    bias = "i"

    def matches(self, module):
        return isinstance(module, torch.nn.Bilinear) and type(module).forward is torch.nn.Bilinear.forward

    def has_bias(self, module):
        return module.bias is not None

    def inputs(self, module, x1, x2):
        sizes = (module.in1_features, module.in2_features)
        if x1.shape[:-1] != x2.shape[:-1] or (*x1.shape[-1:], *x2.shape[-1:]) != sizes:
            layer, shapes = getattr(module, "_title", self.name), f"{list(x1.shape)} and {list(x2.shape)}"
            raise RuntimeError(
                f"{layer}: the inputs have shapes {shapes}, their last axes must be {sizes[0]} and {sizes[1]}, and all "
                "others the same"
            )
        count = math.prod(x1.shape[:-1])
        dense = self.factors(x1.reshape(count, sizes[0]), x2.reshape(count, sizes[1]))
        return dense if module.bias is None else [*dense, module.bias], (count, module.out_features)

    def factors(self, x1, x2) -> list[torch.Tensor]:
        """The dense operands of the product."""
        return [x1, x2]

    def output(self, y, x1, x2):
        return y.reshape(*x1.shape[:-1], y.shape[-1])

    def eager(self, weight, module, x1, x2):
        return F.bilinear(x1, x2, weight, module.bias)


@operator
class BilinearMatrix(Bilinear):
    """`torch.nn.Bilinear` with the matrix [out, in1 * in2] for a weight, which two axes of a format mean."""

    name = "bilinear_matrix"
    statement = "ij,bj->bi"
    operands = ("w", "x")

    def factors(self, x1, x2):
        return [(x1[:, :, None] * x2[:, None, :]).reshape(len(x1), x1.shape[1] * x2.shape[1])]
