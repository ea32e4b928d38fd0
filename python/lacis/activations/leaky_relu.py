# SPDX-License-Identifier: Apache-2.0
"""The leaky rectifier: `max(x, 0) + slope * min(x, 0)`."""

import torch.nn.functional as F

from .activation import Activation, activation


@activation
class LeakyRelu(Activation):
    name = "leaky_relu"
    parameters = {"slope": 0.01}

    def eager(self, x, slope):
        return F.leaky_relu(x, slope)

    def code(self, a, x, slope):
        below = a.op(f"arith.minimumf {x}, {a.constant(0.0)}")
        return a.add(a.positive(x), a.multiply(a.constant(slope), below))
