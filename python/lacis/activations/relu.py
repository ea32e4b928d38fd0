# SPDX-License-Identifier: Apache-2.0
"""The rectifier: `max(x, 0)`."""

import torch

from .activation import Activation, activation


@activation
class Relu(Activation):
    name = "relu"

    def eager(self, x):
        return torch.relu(x)

    def code(self, a, x):
        return a.positive(x)
