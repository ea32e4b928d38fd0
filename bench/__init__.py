# SPDX-License-Identifier: Apache-2.0
"""Measurements beside torch, in the same run; `python -m bench --write docs/benchmarks.md`."""
