# SPDX-License-Identifier: Apache-2.0
"""The report: what each sparse layer stores, and how long it takes beside the dense layer, measured in one run."""

from __future__ import annotations

import dataclasses
import io
import statistics
import time

import torch

from ..notebook import html
from ..operators import OPERATORS
from ..patterns.room import room_bytes
from .choice import path_of, predictions, why_of


@dataclasses.dataclass(frozen=True)
class Row:
    """One layer. `label` is the format as the schedule has it, `format` its text.

    `bytes` is what the weight stores, `derived_bytes` what kernels keep beside it (companions, work lists, copies of
    values, a dense copy). `path` is how it ran: `loops`, `tiles` (tensor cores), `few` (tokens), `dense` (which the
    schedule allowed) or `eager`. `ms` and `dense_ms` are medians on the layer's own input, `predicted_ms` and
    `dense_predicted_ms` what the cost model says; None when it was not called, or nothing like it was measured.
    `ms_spread` and `dense_ms_spread` are the distance in milliseconds that half of the measured times keep from the
    median. `why` says what the default schedule did not take, and why: `kernel.remarks`.
    """

    name: str
    operator: str
    label: str
    format: str
    density: float
    bytes: int
    derived_bytes: int
    dense_bytes: int
    padding: float
    path: str
    ms: float | None
    predicted_ms: float | None
    dense_ms: float | None
    dense_predicted_ms: float | None
    ms_spread: float | None = None
    dense_ms_spread: float | None = None
    why: str = ""

    @property
    def faster(self) -> str:
        if self.ms is None:
            return "-"
        if self.path == "dense":
            return "dense"
        return "sparse" if self.ms < self.dense_ms else "dense"


@dataclasses.dataclass(frozen=True)
class Report:
    """Rows and totals; prints as a table. `notes` are sentences on activations that no kernel ran on, and on room."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> Row:
        """Sums, of times where all layers that were called have them; density and padding are weighted by size."""
        timed = [row for row in self.rows if row.ms is not None]
        rows = self.rows
        dense = sum(r.dense_bytes for r in rows) or 1
        return Row(
            "total", "", "", "",
            sum(r.density * r.dense_bytes for r in rows) / dense,
            sum(r.bytes for r in rows),
            sum(r.derived_bytes for r in rows),
            sum(r.dense_bytes for r in rows),
            sum(r.padding * r.bytes for r in rows) / (sum(r.bytes for r in rows) or 1),
            "",
            _sum(r.ms for r in timed),
            _sum(r.predicted_ms for r in timed),
            _sum(r.dense_ms for r in timed),
            _sum(r.dense_predicted_ms for r in timed),
        )  # fmt: skip

    def to_dict(self) -> dict:
        """Rows, total and notes as plain data."""
        rows = [_plain(row) for row in self.rows]
        return {"rows": rows, "total": _plain(self.total), "notes": list(self.notes)}

    def plot(self, path=None):
        """Draw time, bytes and padding of each layer (needs matplotlib); the figure, saved to `path` if given."""
        from .plot import plot

        return plot(self, path)

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=io.StringIO(), width=1000, color_system=None)  # no name is broken into two lines
        console.print(self.__rich__())
        return console.file.getvalue()

    def _repr_html_(self) -> str:
        return html(self)

    def __rich__(self):
        from rich.console import Group
        from rich.table import Table

        table = Table(title="sparse layers")
        for column in ("name", "operator", "format"):
            table.add_column(column, overflow="fold")
        times = ("ms", "predicted", "dense ms", "dense predicted")
        for column in ("density", "stored", "derived", "dense", "padding", "path", *times, "faster"):
            table.add_column(column, justify="right")
        said = any(row.why for row in self.rows)
        if said:
            table.add_column("why", overflow="fold")
        for row in self.rows:
            table.add_row(*_cells(row), *([row.why] if said else []))
        table.add_section()
        table.add_row(*_cells(self.total))
        return Group(table, *self.notes)


def _sum(times) -> float | None:
    times = list(times)
    return sum(times) if times and None not in times else None


def _plain(row: Row) -> dict:
    return {**dataclasses.asdict(row), "faster": row.faster}


def _cells(row: Row) -> list[str]:
    time_of = lambda ms, spread=None: "-" if ms is None else f"{ms:.3f}" + (f" ±{spread:.3f}" if spread else "")
    return [
        row.name, row.operator, row.label, f"{row.density:.1%}", _size(row.bytes), _size(row.derived_bytes),
        _size(row.dense_bytes), f"{row.padding:.1%}", row.path, time_of(row.ms, row.ms_spread),
        time_of(row.predicted_ms), time_of(row.dense_ms, row.dense_ms_spread), time_of(row.dense_predicted_ms),
        row.faster,
    ]  # fmt: skip


def _size(count: int) -> str:
    return f"{count / 1024:.1f} KiB" if count < 2**20 else f"{count / 2**20:.2f} MiB"


def measure(model, built, edges, args: tuple, kwargs: dict) -> Report:
    """Run the model once, then each sparse layer and its dense twin on the inputs it saw; `edges` say what they saw."""
    inputs = _record(model, built, args, kwargs) if args or kwargs else {}
    rows = []
    for each in built:
        for owner, (_, sparse) in zip(each.captured.owners, each.modules):
            layers = sparse, *each.weight._products.layers(each.weight)  # the latter as in `x @ layer.weight.T`
            sparse = next((layer for layer in layers if id(layer) in inputs), sparse)
            rows.append(_row(owner.name, each.captured.site.label, sparse, inputs.get(id(sparse))))
    notes = [note for edge in edges for note in edge.notes()]
    return Report(tuple(rows), (*notes, *(note for each in built for note in _room(each))))


def _room(each) -> list[str]:
    """What a weight with room says of it."""
    packed = each.weight.packed()
    count = sum(room_bytes(part, packed.values_by_part[name]) for name, part in packed.pattern.parts.items())
    return [f"'{each.name}' has {_size(count)} of room, which s[\"{each.name}\"].fit() gives back"] if count else []


def _record(model, built, args, kwargs) -> dict[int, tuple]:
    seen: dict[int, tuple] = {}
    handles = []
    for each in built:
        for sparse in {*(layer for _, layer in each.modules), *each.weight._products.layers(each.weight)}:
            note = lambda m, given, named: seen.__setitem__(id(m), m._replaced.in_order(given, named))
            handles.append(sparse.register_forward_pre_hook(note, with_kwargs=True))
    try:
        with torch.no_grad():
            model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return {key: tuple(a.detach() for a in inputs) for key, inputs in seen.items()}


def _row(name: str, label: str, sparse, inputs) -> Row:
    packed = sparse.weight.packed()
    (ms, spread), (dense_ms, dense_spread) = (None, None), (None, None)
    path, predicted, why = "", (None, None), ""
    if inputs is not None:
        operator, dense = OPERATORS[sparse.operator], sparse.weight.to_dense().detach()
        with torch.no_grad():
            (ms, spread), (dense_ms, dense_spread) = _alternate(
                lambda: sparse.forward(*inputs), lambda: operator.eager(dense, sparse, *inputs), packed.device
            )
            tokens = operator.tokens(sparse, *inputs)
        path, predicted, why = path_of(sparse, tokens), predictions(sparse, tokens), why_of(sparse)
    size = packed.values if isinstance(packed.values, torch.Tensor) else next(iter(packed.values.values()))
    numel = max(packed.shape.numel(), 1)
    return Row(
        name, sparse.operator, label, str(packed.format), packed.nnz / numel, packed.nbytes, sparse.derived_bytes,
        packed.shape.numel() * size.element_size(), 1 - packed.nnz / packed.slots if packed.slots else 0.0,
        path, ms, predicted[0], dense_ms, predicted[1], spread, dense_spread, why,
    )  # fmt: skip


def _alternate(first, second, device, seconds: float = 0.1, most: int = 50) -> list[tuple[float, float]]:
    """Medians in milliseconds, and spreads, of two functions that take turns, so that both see the same machine."""
    times: tuple[list, list] = ([], [])
    for function in (first, second):
        function()
    end = time.perf_counter() + seconds
    while len(times[0]) < 5 or (time.perf_counter() < end and len(times[0]) < most):
        for function, taken in zip((first, second), times):
            _synchronize(device)
            start = time.perf_counter()
            function()
            _synchronize(device)
            taken.append((time.perf_counter() - start) * 1e3)
    return [_median_and_spread(taken) for taken in times]


def _median_and_spread(times) -> tuple[float, float]:
    """The median, and the median distance from it, which a few slow calls leave as it is.

    >>> _median_and_spread([3.0, 4.0, 5.0, 6.0, 900.0])
    (5.0, 1.0)
    """
    middle = statistics.median(times)
    return middle, statistics.median(abs(each - middle) for each in times)


def _synchronize(device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
