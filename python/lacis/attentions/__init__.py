# SPDX-License-Identifier: Apache-2.0
"""Attention on a pattern, statement by statement or as one kernel."""

from .attention import attention
from .block_masks import block_mask
from .merge import merge_attention
from .softmax import logsumexp, softmax

__all__ = ["attention", "block_mask", "logsumexp", "merge_attention", "softmax"]
