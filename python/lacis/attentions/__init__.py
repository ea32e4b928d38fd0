# SPDX-License-Identifier: Apache-2.0
"""Attention on a pattern, statement by statement."""

from .softmax import softmax

__all__ = ["softmax"]
