# SPDX-License-Identifier: Apache-2.0
"""Compiles, caches, loads and launches kernels, and puts them into models."""
