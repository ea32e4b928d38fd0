# SPDX-License-Identifier: Apache-2.0
"""SiLU: `x / (1 + exp(-x))`."""

import torch.nn.functional as F

from .activation import Activation, activation


@activation
class Silu(Activation):
    name = "silu"

    def eager(self, x):
        return F.silu(x)

    def code(self, a, x):
        return a.divided_by_one_plus_exp(x, a.op(f"arith.negf {x}"))
