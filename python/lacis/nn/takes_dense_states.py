# SPDX-License-Identifier: Apache-2.0
"""Loads state dicts of the dense model into a packed layer, whose pattern stays."""

from __future__ import annotations

import torch

from ..errors import DataError
from ..operators import OPERATORS


class TakesDenseStates:
    """Base of modules that have a packed `weight`: a dense one in a state dict gives the values at its entries."""

    def _load_from_state_dict(self, state_dict, prefix, metadata, strict, missing_keys, unexpected_keys, error_msgs):
        attribute = OPERATORS[self.operator].attribute
        dense = state_dict.pop(prefix + attribute, None)
        if isinstance(dense, torch.Tensor):
            try:
                self._from_dense(dense, state_dict, f"{prefix}{attribute}.")
            except DataError as error:
                error_msgs.append(f"while loading '{prefix}{attribute}': {error.message}")
                self._present(state_dict, f"{prefix}{attribute}.")
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def _from_dense(self, dense, state_dict, prefix) -> None:
        """Put a dense weight's entries in place of the packed arrays that the state dict lacks."""
        values = self.weight.dense_state(dense.detach().to(self.weight.device))
        self._present(state_dict, prefix)
        state_dict.update({prefix + name: tensor for name, tensor in values.items()})

    def _present(self, state_dict, prefix) -> None:
        state_dict.update({prefix + k: v.clone() for k, v in self.weight.state_dict().items()})
