# SPDX-License-Identifier: Apache-2.0
"""What a packed weight has not though a dense one has it: the message says what to take in its place."""

from __future__ import annotations

from ..errors import DataError

_INSTEAD = {
    "data": "weight.set_packed(lacis.pack(...)) takes others",
    "grad": "weight.values.grad is their gradient",
}


class NoTensor:
    """Base of packed weights. Reading such a name raises `AttributeError`, setting it `DataError`."""

    def __getattr__(self, name: str):
        if name in _INSTEAD:
            raise AttributeError(_message(name))
        return super().__getattr__(name)

    def __setattr__(self, name: str, value) -> None:
        if name in _INSTEAD:
            raise DataError(_message(name))
        super().__setattr__(name, value)


def _message(name: str) -> str:
    return (
        f"a packed weight has no '{name}': its numbers are weight.values, weight.to_dense() has the dense ones, "
        f"{_INSTEAD[name]}"
    )
