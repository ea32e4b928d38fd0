# SPDX-License-Identifier: Apache-2.0
"""The linear layer: `y[b, i] = sum_j w[i, j] * x[b, j] + bias[i]`."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from .operator import Operator, operator


@operator
class Linear(Operator):
    """`torch.nn.Linear`; all leading dimensions of the input are one loop `b`."""

    name = "linear"
    statement = "ij,bj->bi"
    operands = ("w", "x")
    bias = "i"
    quick = True

    def matches(self, module):
        return isinstance(module, torch.nn.Linear) and type(module).forward is torch.nn.Linear.forward

    def has_bias(self, module):
        return module.bias is not None

    def inputs(self, module, x):
        if x.shape[-1:] != (module.in_features,):
            layer = getattr(module, "_title", self.name)
            raise RuntimeError(
                f"{layer}: the input has shape {list(x.shape)}, its last axis must be {module.in_features}"
            )
        flat = x.reshape(math.prod(x.shape[:-1]), module.in_features)
        dense = [flat] if module.bias is None else [flat, module.bias]
        return dense, (flat.shape[0], module.out_features)

    def tokens(self, module, x):
        return math.prod(x.shape[:-1])

    def shape_rule(self, module):
        return 1, [module.out_features]

    def output(self, y, x):
        return y.reshape(*x.shape[:-1], y.shape[-1])

    def eager(self, weight, module, x):
        return F.linear(x, weight, module.bias)
