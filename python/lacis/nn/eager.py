# SPDX-License-Identifier: Apache-2.0
"""A layer in torch's own operators (`target="eager"`): the product of its entries, and of nothing else."""

from __future__ import annotations

import torch

from ..capture import parse_statement
from ..packing.stored_points import is_looked_into, stored_einsum


def run_eager(module, operator, args) -> torch.Tensor:
    """What the module answers; NaN and infinity in its input reach the outputs of entries alone."""
    if operator.statement is None:
        return operator.direct(module.weight, module, *args)
    weight = module.weight.packed()
    if is_looked_into(weight.device):
        return operator.eager(module.weight.to_dense(), module, *args)
    dense, _ = operator.inputs(module, *args)
    dense, bias = (dense[:-1], dense[-1]) if operator.has_bias(module) else (dense, None)
    terms, output = parse_statement(operator.statement)
    y = stored_einsum(terms, output, [weight.to_dense(), *dense], 0, weight.pattern)
    if bias is not None:
        y = y + bias.reshape([size if letter in operator.bias else 1 for letter, size in zip(output, y.shape)])
    return operator.answer(module, y, *args)
