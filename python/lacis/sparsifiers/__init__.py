# SPDX-License-Identifier: Apache-2.0
"""Sparsifiers: which entries of a tensor are kept; one file each."""

from .attention import (
    BigBird,
    Causal,
    Dilated,
    Documents,
    Fixed,
    KMeans,
    LastQueries,
    Local,
    Longformer,
    PatternRule,
    Similarity,
    TopKBlocks,
    Variable,
)
from .base import BlockSparsifier, Sparsifier, as_sparsifier
from .block_magnitude import BlockMagnitude
from .block_random import BlockRandom
from .calibrated import Calibrated, Inputs
from .given import Given
from .keep import Keep
from .magnitude import Magnitude
from .movement import Movement
from .nm import NM
from .policy import Policy
from .quantile import Quantile
from .ramp import Ramp
from .random import Random
from .regrow import Regrow
from .sparse_gpt import SparseGPT
from .threshold import Threshold
from .view import Candidates, View
from .wanda import Wanda

__all__ = [
    "BigBird", "Causal", "Dilated", "Documents", "Fixed", "KMeans", "LastQueries", "Local", "Longformer",
    "PatternRule", "Similarity", "TopKBlocks", "Variable",
    "BlockMagnitude", "BlockRandom", "BlockSparsifier", "Calibrated", "Candidates", "Given", "Inputs", "Keep",
    "Magnitude", "Movement", "NM", "Policy", "Quantile", "Ramp", "Random", "Regrow", "SparseGPT", "Sparsifier",
    "Threshold", "View", "Wanda", "as_sparsifier",
]  # fmt: skip
