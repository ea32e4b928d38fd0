# SPDX-License-Identifier: Apache-2.0
"""The schedule language: handles and verbs as plain data; it changes no model and knows no compiler."""

from .handle import Group, Handle
from .schedule import Schedule
from .site import Site

__all__ = ["Group", "Handle", "Schedule", "Site"]
