# SPDX-License-Identifier: Apache-2.0
"""Draws a report: time, bytes and padding of each layer."""

from __future__ import annotations


def plot(report, path=None):
    """Three bar charts beside each other; saved to `path` when given. Raises `ImportError` without matplotlib."""
    from matplotlib.figure import Figure

    rows = report.rows
    figure = Figure(figsize=(14, 2 + 0.22 * len(rows)), constrained_layout=True)
    time, size, padding = figure.subplots(1, 3, sharey=True)
    places = list(range(len(rows)))
    _pair(time, places, [r.ms or 0 for r in rows], [r.dense_ms or 0 for r in rows], "time of a call (ms)")
    kib = [(r.bytes / 1024, r.dense_bytes / 1024) for r in rows]
    _pair(size, places, [s for s, _ in kib], [d for _, d in kib], "stored (KiB)")
    padding.barh(places, [100 * r.padding for r in rows], color="tab:gray")
    padding.set_title("padding (% of slots)")
    time.set_yticks(places, [r.name for r in rows], fontsize=7)
    time.invert_yaxis()
    time.legend()
    if path is not None:
        figure.savefig(path)
    return figure


def _pair(axes, places, sparse, dense, title) -> None:
    axes.barh([p - 0.2 for p in places], sparse, height=0.4, label="sparse")
    axes.barh([p + 0.2 for p in places], dense, height=0.4, label="dense")
    axes.set_title(title)
