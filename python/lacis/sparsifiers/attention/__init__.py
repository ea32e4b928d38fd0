# SPDX-License-Identifier: Apache-2.0
"""Patterns of attention: one file each."""

from .big_bird import BigBird
from .causal import Causal
from .dilated import Dilated
from .documents import Documents
from .fixed import Fixed
from .k_means import KMeans
from .last_queries import LastQueries
from .local import Local
from .longformer import Longformer
from .rule import PatternRule
from .similarity import Similarity
from .top_k_blocks import TopKBlocks
from .variable import Variable

__all__ = [
    "BigBird",
    "Causal",
    "Dilated",
    "Documents",
    "Fixed",
    "KMeans",
    "LastQueries",
    "Local",
    "Longformer",
    "PatternRule",
    "Similarity",
    "TopKBlocks",
    "Variable",
]
