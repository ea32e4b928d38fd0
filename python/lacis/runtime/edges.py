# SPDX-License-Identifier: Apache-2.0
"""Packs activations and gradients where they pass: hooks of the modules at whose edge they are."""

from __future__ import annotations

import math
import re
import warnings

import torch

from ..capture import Epilogue
from ..errors import DataError, ScheduleError
from ..packing import PackedTensor, pack
from ..patterns.build import for_tensor
from ..patterns.capturing import is_captured
from ..patterns.room import without_room
from ..patterns.scan import may_be_scanned, scan_pattern, scanned_values
from ..schedule.edges import check_edge
from .activation import PackedActivation
from .call import Call, run
from .compile import Kernel, load_kernels
from .example import run_example
from .reference import reference


_DEVICE = "cuda"  # whose host would wait for the number of entries
_MATRICES = "products with one matrix run on the entries, as 'linear', 'matmul' and 'addmm'"


class Edge:
    """One edge of a built model: packs what passes, and runs the products on it.

    Copies and files of the model hold it without its kernels, which they find again.
    """

    def __init__(self, site, target: str, strict: bool = False):
        self.name = site.name
        self.format = site.stages[-1].format()
        self.sparsifiers = [_sparsifier(stage) for stage in site.stages]
        self.steps = site.loop_steps
        self.location = site.location
        self.target = target
        self.strict = strict
        self.kernels: dict[str, Kernel] = {}
        self._counts: dict[torch.Size, int] = {}  # of stored blocks, where the shape says how many there are
        self.passed = False  # the module was called
        self.products = 0  # how many ran on the entries
        self.ran_dense: list[str] = []  # names of torch's products that ran on the dense tensor

    @property
    def is_gradient(self) -> bool:
        return self.name.endswith(".grad")

    def module(self, model):
        """The module at whose edge it is."""
        return model.get_submodule(self.name.partition(":")[0])

    def register(self, model):
        """Hook it in; answers the hook's handle."""
        module, end = self.module(model), self.name.partition(":")[2]
        if end.startswith("out"):
            return module.register_forward_hook(self._on_output)
        self.argument = int(re.match(r"in(\d+)", end)[1])
        return module.register_forward_pre_hook(self._on_input)

    def _on_output(self, module, args, output):
        return self._through(output)

    def _on_input(self, module, args):
        if self.argument >= len(args):
            self._refuse(f"the module was called with {len(args)} arguments by position")
        return (*args[: self.argument], self._through(args[self.argument]), *args[self.argument + 1 :])

    def _through(self, x):
        self.passed = True
        if not isinstance(x, torch.Tensor):
            self._refuse(f"a {type(x).__name__} passes there, which is no tensor")
        if not x.is_floating_point() or x.ndim == 0:
            self._refuse(f"a tensor of {x.dtype} with {x.ndim} axes passes there, which has no packed form")
        if torch.compiler.is_compiling():  # the same numbers, as plain operators
            return _MaskGradient.apply(x, self) if self.is_gradient else torch.where(self.mask(x), x, 0)
        if not self.is_gradient:
            return self.pack(x)
        if torch.is_grad_enabled() and x.requires_grad:
            x = x.view_as(x)  # another reader's gradient is not ours
            x.register_hook(self._on_gradient)
        return x

    def _on_gradient(self, grad):
        if grad.requires_grad:
            self._refuse("a packed gradient cannot be differentiated again; leave create_graph out")
        with torch.no_grad():
            return self.pack(grad)

    def _refuse(self, reason: str):
        raise ScheduleError(f"'{self.name}': {reason}", location=self.location)

    def mask(self, x: torch.Tensor) -> torch.Tensor:
        """bool of the shape of `x`: its entries."""
        rows = _rows(x.detach())
        first, *others = self.sparsifiers
        kept = rows != 0 if first is None else first(rows)
        for sparsifier in others:  # among what is kept
            kept = kept & sparsifier(torch.where(kept, rows, 0))
        return kept.reshape(x.shape)

    def pack(self, x: torch.Tensor) -> torch.Tensor:
        """The entries of a tensor, packed; differentiable in it."""
        rows = _rows(x.dense() if isinstance(x, PackedActivation) else x)
        recorded = rows if torch.is_grad_enabled() and x.requires_grad else rows.detach()
        mask = self.mask(rows)
        try:
            packed = self._packed(recorded, mask)
        except DataError as error:
            raise DataError(f"'{self.name}': {error.message}", location=self.location) from None
        return _Pack.apply(x, packed, mask, self)

    def _packed(self, rows: torch.Tensor, mask: torch.Tensor) -> PackedTensor:
        """The entries of a matrix; on a GPU with room for as many as there may be, so that the host need not wait."""
        format = for_tensor(self.format, rows.shape)
        if rows.device.type == _DEVICE and may_be_scanned(format):
            pattern, at = scan_pattern(mask, format, self._slots(mask, format))
            return PackedTensor(pattern, {"": scanned_values(rows, pattern, at)})
        packed = pack(rows.detach(), format, mask)
        return packed.with_values(packed.pattern.gather(rows)) if rows.requires_grad else packed

    def _slots(self, mask: torch.Tensor, format) -> int | None:
        """How many blocks any matrix of this shape has, asked of the first; None where the values say it."""
        only = self.sparsifiers[0] if len(self.sparsifiers) == 1 else None
        if only is None or not only.counts or (getattr(only, "block", None) or ()) != format.tile:
            return None
        if mask.shape not in self._counts and not is_captured(mask.device):
            self._counts[mask.shape] = without_room(scan_pattern(mask, format)[0].part()).slots
        return self._counts.get(mask.shape)

    def product(self, expression: str, packed: PackedTensor, *dense, bias=None) -> torch.Tensor:
        """An einsum with the packed tensor first; the kernels that ran are kept by expression."""
        self.products += 1
        steps = self.steps if dense else ()
        after = None if bias is None else Epilogue(bias, bias_axis=expression[-1])
        call = Call(expression, (packed, *dense), self.location, steps, epilogue=after, strict=self.strict)
        return run(call, self._compute)

    def _compute(self, call: Call):
        if self.target == "eager":
            return reference(call)
        kernels = load_kernels(call, self.target)
        self.kernels[call.expression] = next(iter(kernels.values()))
        return call.launch(kernels)

    def note_dense(self, operator: str) -> None:
        """A product runs on the dense tensor; the first of its kind warns, at the line of the schedule."""
        if operator in self.ran_dense:
            return
        self.ran_dense.append(operator)
        text = f"'{self.name}' is packed, but '{operator}' runs on the dense tensor: {_MATRICES}"
        file, line = self.location or ("<unknown>", 0)
        warnings.warn_explicit(text, UserWarning, file, line)

    def notes(self) -> list[str]:
        """What the report says of it."""
        if not self.passed:
            return [f"'{self.name}' is packed, but its module was not called"]
        ran_dense = "'{}' is packed, but '{}' ran on the dense tensor: {}"
        return [ran_dense.format(self.name, each, _MATRICES) for each in self.ran_dense]

    def __getstate__(self):
        return {**self.__dict__, "kernels": {}}


def _sparsifier(site):
    """That of a stage, which knows its blocks."""
    chosen = site.sparsifier
    return chosen if chosen is None or site.block_size is None else chosen.with_block(site.block_size)


def _rows(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


class _Pack(torch.autograd.Function):
    """From a tensor to its packed form. What no product reads takes its gradient this way."""

    @staticmethod
    def forward(ctx, x, packed, mask, edge):
        ctx.mask = mask
        ctx.set_materialize_grads(False)
        return PackedActivation(packed, x.shape, edge)

    @staticmethod
    def backward(ctx, grad):
        if grad is None:
            return None, None, None, None
        return torch.where(ctx.mask.reshape(grad.shape), grad, 0), None, None, None


class _MaskGradient(torch.autograd.Function):
    """The identity, whose gradient keeps its entries; for graphs that torch.compile traces."""

    @staticmethod
    def forward(ctx, x, edge):
        ctx.edge = edge
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return torch.where(ctx.edge.mask(grad), grad, 0), None


def make_edges(model, schedule) -> dict[str, Edge]:
    """Everything that can fail about the edges of a schedule; the model is not touched."""
    packed = {name for site in (*schedule.sites, *schedule.edges) for name in site.names}
    edges = {}
    for site in schedule.edges:
        check_edge(site, packed)
        edges[site.name] = Edge(site, schedule.target, schedule.strict)
    return dict(
        sorted(edges.items(), key=lambda item: not item[1].is_gradient)
    )  # a gradient is that of the dense tensor


def require_called(model, edges, args: tuple, kwargs: dict) -> None:
    """Run the model on an example, and raise `ScheduleError` for an edge whose module is not called."""
    called: set[int] = set()
    if not edges or not (args or kwargs):
        return
    note = lambda module, *_: called.add(id(module))
    run_example(model, {edge.module(model): note for edge in edges}, args, kwargs)
    for edge in edges:
        if id(edge.module(model)) not in called:
            raise ScheduleError(
                f"'{edge.name}': the model did not call this {type(edge.module(model)).__name__} on the example of "
                "build(), so nothing passes there; name the module that it calls in its place",
                location=edge.location,
            )
