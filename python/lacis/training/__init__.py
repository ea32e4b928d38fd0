# SPDX-License-Identifier: Apache-2.0
"""The life of a built model: patterns that change while it trains, and what follows them."""

from .create import create_schedule, load_schedule
from .updates import Updates

__all__ = ["Updates", "create_schedule", "load_schedule"]
