# SPDX-License-Identifier: Apache-2.0
"""Sparsifiers: which entries of a tensor are kept; one file each."""

from .attention import (
    BigBird,
    Causal,
    Dilated,
    Documents,
    Fixed,
    KMeans,
    Local,
    Longformer,
    PatternRule,
    TopKBlocks,
    Variable,
)
from .base import BlockSparsifier, Sparsifier, as_sparsifier
from .block_magnitude import BlockMagnitude
from .block_random import BlockRandom
from .given import Given
from .keep import Keep
from .magnitude import Magnitude
from .movement import Movement
from .nm import NM
from .policy import Policy
from .ramp import Ramp
from .random import Random
from .regrow import Regrow
from .threshold import Threshold
from .view import Candidates, View

__all__ = [
    "BigBird", "Causal", "Dilated", "Documents", "Fixed", "KMeans", "Local", "Longformer", "PatternRule", "TopKBlocks",
    "Variable",
    "BlockMagnitude", "BlockRandom", "BlockSparsifier", "Candidates", "Given", "Keep", "Magnitude", "Movement", "NM",
    "Policy", "Ramp", "Random", "Regrow", "Sparsifier", "Threshold", "View", "as_sparsifier",
]  # fmt: skip
