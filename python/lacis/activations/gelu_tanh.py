# SPDX-License-Identifier: Apache-2.0
"""GELU by the hyperbolic tangent: `x / 2 * (1 + tanh(y))`, which is `x / (1 + exp(-2 y))`."""

import math

import torch.nn.functional as F

from .activation import Activation, activation


@activation
class GeluTanh(Activation):
    name = "gelu_tanh"

    def eager(self, x):
        return F.gelu(x, approximate="tanh")

    def code(self, a, x):
        cube = a.multiply(a.multiply(x, x), x)
        inner = a.add(x, a.multiply(a.constant(0.044715), cube))
        if a.half:
            return a.divided_by_one_plus_exp(x, a.multiply(a.constant(-2 * math.sqrt(2 / math.pi)), inner))
        hyperbolic = a.function("tanh", a.multiply(a.constant(math.sqrt(2 / math.pi)), inner))
        return a.half_times(x, a.add(a.constant(1.0), hyperbolic))
