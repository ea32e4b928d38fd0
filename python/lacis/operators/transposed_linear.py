# SPDX-License-Identifier: Apache-2.0
"""The linear layer whose weight is stored the other way: `y[b, i] = sum_j w[j, i] * x[b, j] + bias[i]`."""

from __future__ import annotations

import math

from .operator import Operator, operator


@operator
class TransposedLinear(Operator):
    """`Conv1D` of Hugging Face's transformers, the layer of GPT-2, which is known by name: nothing is imported."""

    name = "transposed_linear"
    statement = "ji,bj->bi"
    operands = ("w", "x")
    bias = "i"
    quick = True

    def matches(self, module):
        forward = type(module).forward
        return (forward.__module__, forward.__qualname__) == ("transformers.pytorch_utils", "Conv1D.forward")

    def has_bias(self, module):
        return module.bias is not None

    def inputs(self, module, x):
        rows, columns = module.weight.shape
        if x.shape[-1:] != (rows,):
            layer = getattr(module, "_title", self.name)
            raise RuntimeError(f"{layer}: the input has shape {list(x.shape)}, its last axis must be {rows}")
        flat = x.reshape(math.prod(x.shape[:-1]), rows)
        return ([flat] if module.bias is None else [flat, module.bias]), (flat.shape[0], columns)

    def shape_rule(self, module):
        return 1, [module.weight.shape[1]]

    def output(self, y, x):
        return y.reshape(*x.shape[:-1], y.shape[-1])

    def eager(self, weight, module, x):
        y = x @ weight
        return y if module.bias is None else y + module.bias
