# SPDX-License-Identifier: Apache-2.0
"""Costs for tests of work lists: those of the compiler's table at the time of writing."""

from lacis.patterns.derivation import Cost

COST = Cost(bytes=70_000, products=2048, clock=1500, panel=600, start=4000, part=1000, move=80, segment=8, kept=16)
