# SPDX-License-Identifier: Apache-2.0
"""The verb `sparsify`."""

from __future__ import annotations

import dataclasses

from ...sparsifiers import Sparsifier, as_sparsifier
from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Sparsify(Step):
    """Choose which entries exist.

    w[i, j]   -->   w[i, j] where mask[i, j]
    """

    mnemonic = "sparsify"
    sparsifier: object
    ready = True
    of_loops = False

    def __post_init__(self):
        object.__setattr__(self, "sparsifier", as_sparsifier(self.sparsifier))

    @property
    def of_modules(self) -> bool:
        """Is it a rule of attention?"""
        return not isinstance(self.sparsifier, Sparsifier)

    def check(self, earlier):
        for step in earlier:
            if isinstance(step, Sparsify):
                self.contradict(step, "the entries are chosen already")
