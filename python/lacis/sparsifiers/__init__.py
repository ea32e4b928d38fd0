# SPDX-License-Identifier: Apache-2.0
"""Sparsifiers: which entries of a tensor are kept; one file each."""

from .base import BlockSparsifier, Sparsifier, as_sparsifier
from .block_magnitude import BlockMagnitude
from .block_random import BlockRandom
from .given import Given
from .keep import Keep
from .magnitude import Magnitude
from .nm import NM
from .random import Random
from .threshold import Threshold

__all__ = [
    "BlockMagnitude", "BlockRandom", "BlockSparsifier", "Given", "Keep", "Magnitude", "NM", "Random", "Sparsifier",
    "Threshold", "as_sparsifier",
]  # fmt: skip
