# SPDX-License-Identifier: Apache-2.0
"""GELU: `x / 2 * (1 + erf(x / sqrt 2))`."""

import math

import torch.nn.functional as F

from .activation import Activation, activation

# log2 of the normal distribution's tail beyond x >= 0, to 2^-11.4 and 2^-18.2 up to 6; falls for ever
_LOG2_OF_TAIL = {
    "bf16": (-1.00053179, -1.14439976, -0.472785635, -0.0428327485, 0.00446760799, -0.000201684487),
    "f16": (
        *(-0.999995295, -1.15125104, -0.458464397, -0.0539600663),
        *(0.00850788970, -0.000930524569, 6.15982619e-05, -1.834981e-06),
    ),
}
_END_OF_TAIL = 16.0


@activation
class Gelu(Activation):
    """Where the result is rounded to a half type, `max(x, 0) - |x| * tail(|x|)`, which keeps small results."""

    name = "gelu"

    def eager(self, x):
        return F.gelu(x)

    def code(self, a, x):
        if a.half:
            size = a.op(f"arith.minimumf {a.op(f'math.absf {x}')}, {a.constant(_END_OF_TAIL)}")
            tail = a.function("exp2", a.polynomial(size, _LOG2_OF_TAIL[a.half]))
            return a.op(f"arith.subf {a.positive(x)}, {a.multiply(size, tail)}")
        error = a.function("erf", a.multiply(x, a.constant(math.sqrt(0.5))))
        return a.half_times(x, a.add(a.constant(1.0), error))
