# SPDX-License-Identifier: Apache-2.0
"""Draws a packed matrix: where its entries are, how many each row has, and what is padding."""

from __future__ import annotations

import torch

from ..errors import DataError


def plot(packed, axes=None):
    """Three drawings of a packed matrix; `axes` are three matplotlib axes, or None for a new figure.

    Returns the figure. Raises `DataError` for a tensor that is not a matrix, `ImportError` without matplotlib.
    """
    if packed.ndim != 2:
        raise DataError(f"only matrices are drawn, the tensor has {packed.ndim} axes")
    if axes is None:
        import matplotlib.pyplot as plt

        _, axes = plt.subplots(1, 3, figsize=(12, 4), constrained_layout=True)
    mask = packed.pattern.to_mask().cpu()
    _spy(axes[0], mask)
    _rows(axes[1], mask.sum(1))
    _padding(axes[2], packed)
    return axes[0].figure


def _spy(ax, mask) -> None:
    ax.spy(mask.numpy(), markersize=max(0.3, 200 / max(mask.shape, default=1)) if max(mask.shape) > 256 else None)
    ax.set_title("entries")


def _rows(ax, counts) -> None:
    ax.hist(counts.numpy(), bins=min(50, max(1, int(counts.max()) + 1) if counts.numel() else 1))
    ax.set_title("entries per row")
    ax.set_xlabel("entries")
    ax.set_ylabel("rows")


def _padding(ax, packed) -> None:
    names, kept, padded = [], [], []
    for name, part in packed.pattern.parts.items():
        slots = int(torch.tensor(part.values_shape).prod())
        names.append(name or "values")
        kept.append(part.nnz)
        padded.append(slots - part.nnz)
    ax.bar(names, kept, label="entries")
    ax.bar(names, padded, bottom=kept, label="padding")
    ax.set_title("stored values")
    ax.legend()
