# SPDX-License-Identifier: Apache-2.0
"""The names of STen: a builder that marks tensors of a model, operators with sparse outputs, sparsifiers."""

from __future__ import annotations

import copy
import itertools

import torch

from ..errors import ScheduleError
from ..formats import Coo as CooTensor
from ..formats import Csc as CscTensor
from ..formats import Csr as CsrTensor
from ..formats import Dense as DenseTensor
from ..runtime.edges import Edge
from ..training import create_schedule
from ..schedule.edges import check_edge
from ..schedule.site import Site
from ..schedule.steps.set_format import SetFormat
from ..schedule.steps.sparsify import Sparsify
from ..sparsifiers import Keep, Magnitude, Sparsifier, as_sparsifier
from ..sparsifiers.choose import check_sparsity, keep_count
from .grouped_nm import GroupedNMSparsifier

__all__ = [
    "CooTensor",
    "CscTensor",
    "CsrTensor",
    "DenseTensor",
    "GroupedNMSparsifier",
    "KeepAll",
    "RandomFractionSparsifier",
    "SameFormatSparsifier",
    "ScalarFractionSparsifier",
    "SparsityBuilder",
    "sparsified_op",
]


class KeepAll(Sparsifier):
    """Keep everything; of a weight what is not zero.

    >>> KeepAll()(torch.zeros(2)).tolist()
    [True, True]
    """

    counts = True

    def mask(self, tensor):
        return torch.ones_like(tensor, dtype=torch.bool)


class ScalarFractionSparsifier(Magnitude):
    """Drop the share `fraction` of smallest magnitude."""

    def __init__(self, fraction: float):
        super().__init__(fraction)
        self.fraction = self.sparsity


class RandomFractionSparsifier(Sparsifier):
    """Drop the share `fraction`, drawn anew by torch's generator at each call."""

    counts = True

    def __init__(self, fraction: float):
        self.fraction = check_sparsity(fraction)

    def mask(self, tensor):
        kept = torch.randperm(tensor.numel(), device=tensor.device)[: keep_count(tensor.numel(), self.fraction)]
        mask = torch.zeros(tensor.numel(), dtype=torch.bool, device=tensor.device)
        return mask.index_fill_(0, kept, True).reshape(tensor.shape)


class SameFormatSparsifier(KeepAll):
    """What an update of a weight keeps: the entries that it has, which packed weights do by themselves."""


class _InTurn(Sparsifier):
    """An inline sparsifier, and an external one on what it keeps."""

    def __init__(self, inline, external):
        self.inline, self.external = inline, external
        self.counts = inline.counts and (isinstance(external, KeepAll) or not external.needs_block)

    def mask(self, tensor):
        first = self.inline(tensor)
        return first & self.external(torch.where(first, tensor, 0))


def _is_dense(format) -> bool:
    return format in (None, torch.Tensor, DenseTensor) or isinstance(format, DenseTensor)


def _edge_steps(what: str, inline, tmp_format, external, out_format) -> list:
    """The steps of an edge; none where everything is kept dense. The temporary format holds the same numbers."""
    inline, external = _sparsifier(what, inline), _sparsifier(what, external)
    all_kept = isinstance(inline, KeepAll) and isinstance(external, KeepAll)
    if all_kept and _is_dense(out_format):
        return []
    both = inline if isinstance(external, KeepAll) else external if isinstance(inline, KeepAll) else None
    sparsifier = _InTurn(inline, external) if both is None else both
    return [Sparsify(sparsifier), SetFormat(DenseTensor if _is_dense(out_format) else out_format)]


def _sparsifier(what: str, given) -> Sparsifier:
    try:
        return as_sparsifier(given)
    except ScheduleError as error:
        raise ScheduleError(f"{what}: {error.message}") from None


def sparsified_op(orig_op, out_fmt, grad_out_fmt, target: str = "auto"):
    """An operator whose outputs, and the gradients that arrive at them, are sparsified and packed.

    Each output has its four parts (inline sparsifier, temporary format, external sparsifier, format) in `out_fmt`, and
    so its gradient in `grad_out_fmt`; None leaves one as it is. Products with one matrix run on the entries of a packed
    output (docs/activations.md), all else sees it with zeros. Formats whose size depends on values raise `FormatError`.

    >>> part = (ScalarFractionSparsifier(0.5), torch.Tensor, KeepAll(), CsrTensor)
    >>> add = sparsified_op(torch.add, [part], [None], target="eager")
    >>> (add(torch.tensor([[1.0, 4.0]]), 1) @ torch.ones(2, 1)).item()
    5.0
    """
    said = [_of_output(n, *pair, target) for n, pair in enumerate(itertools.zip_longest(out_fmt, grad_out_fmt))]

    def run(*args, **kwargs):
        result = orig_op(*args, **kwargs)
        outputs = result if isinstance(result, tuple) else (result,)
        if len(outputs) != len(said):
            raise ScheduleError(f"the operator has {len(outputs)} outputs, formats are given for {len(said)}")
        passed = tuple(_through(output, edges) for output, edges in zip(outputs, said))
        return passed if isinstance(result, tuple) else passed[0]

    return run


def _through(output, edges):
    for edge in edges:
        output = edge._through(output)
    return output


def _of_output(n: int, out, grad, target: str) -> list[Edge]:
    """The edges of an output, that of the gradient first."""
    edges = []
    for name, parts in ((f"output {n}:out.grad", grad), (f"output {n}:out", out)):
        steps = _edge_steps(name, *parts) if parts is not None else []
        if steps:
            site = Site((name,), (None, None), steps)
            check_edge(site, ())
            edges.append(Edge(site, target))
    return edges


class SparsityBuilder:
    """Marks tensors of a model, and makes the model in which they are sparse.

    Both forms of STen: `SparsityBuilder(model)` with `get_sparse_model()`, and `SparsityBuilder()` with
    `get_sparse_model(model)`; that is a deep copy, `sparsify_model_inplace(model)` changes the model itself.
    Formats are those of this module or of Lacis.

    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    >>> builder = SparsityBuilder(model, target="eager")
    >>> builder.set_weight("0.weight", initial_sparsifier=ScalarFractionSparsifier(0.75), out_format=CsrTensor)
    >>> builder.set_interm("1", external_sparsifier=ScalarFractionSparsifier(0.5), out_format=CsrTensor)
    >>> sparse = builder.get_sparse_model()
    >>> sparse[0].weight.values.numel(), sparse(torch.ones(3, 8)).shape
    (8, torch.Size([3, 2]))

    Of a weight the initial sparsifier chooses the entries, which stay: other sparsifiers than `KeepAll` and
    `SameFormatSparsifier` for its updates and its gradient raise `NotImplementedError`.
    """

    def __init__(self, model: torch.nn.Module | None = None, target: str = "auto"):
        self._model, self._target = model, target
        self._weights: dict[str, tuple] = {}
        self._edges: dict[str, list] = {}

    def set_weight(
        self,
        name: str,
        initial_sparsifier=KeepAll(),
        inline_sparsifier=KeepAll(),
        tmp_format=torch.Tensor,
        external_sparsifier=KeepAll(),
        out_format=DenseTensor,
    ) -> None:
        """A weight by its path."""
        _refuse_updates(name, inline_sparsifier, external_sparsifier)
        self._weights[name] = _sparsifier(name, initial_sparsifier), out_format

    def set_weight_grad(
        self,
        name: str,
        inline_sparsifier=KeepAll(),
        tmp_format=torch.Tensor,
        external_sparsifier=KeepAll(),
        out_format=DenseTensor,
    ) -> None:
        """The gradient of a weight, which has the weight's entries in every case."""
        _refuse_updates(f"{name}.grad", inline_sparsifier, external_sparsifier)

    def set_interm(
        self,
        name: str,
        inline_sparsifier=KeepAll(),
        tmp_format=torch.Tensor,
        external_sparsifier=KeepAll(),
        out_format=DenseTensor,
    ) -> None:
        """What a module answers, by its path, or a node of its parent's torch.fx graph: `intermediate.gelu`."""
        self._edges[f"{name}:out"] = _edge_steps(name, inline_sparsifier, tmp_format, external_sparsifier, out_format)

    def set_interm_grad(
        self,
        name: str,
        inline_sparsifier=KeepAll(),
        tmp_format=torch.Tensor,
        external_sparsifier=KeepAll(),
        out_format=DenseTensor,
    ) -> None:
        """The gradient that arrives there."""
        parts = (inline_sparsifier, tmp_format, external_sparsifier, out_format)
        self._edges[f"{name}:out.grad"] = _edge_steps(f"{name}.grad", *parts)

    def get_sparse_model(self, model: torch.nn.Module | None = None) -> torch.nn.Module:
        """A sparse copy of the model."""
        model = self._model if model is None else model
        if model is None:
            raise ScheduleError("SparsityBuilder: no model was given, neither here nor there")
        return self.sparsify_model_inplace(copy.deepcopy(model))

    def sparsify_model_inplace(self, model: torch.nn.Module) -> torch.nn.Module:
        """The model with its marked tensors sparse; where nodes of graphs are marked, parents become traced ones."""
        model = _with_nodes(model, [name.partition(":")[0] for name, steps in self._edges.items() if steps])
        schedule = create_schedule(model, target=self._target)
        for name, (sparsifier, format) in self._weights.items():
            if not _is_dense(format) or not isinstance(sparsifier, KeepAll):
                kept = Keep() if isinstance(sparsifier, KeepAll) else sparsifier
                schedule[name].sparsify(kept).set_format(DenseTensor if _is_dense(format) else format)
        for name, steps in self._edges.items():
            edge, _, grad = name.partition(".grad") if name.endswith(".grad") else (name, "", None)
            handle = schedule[edge] if grad is None else schedule[edge].grad
            for step in steps:
                handle._take(step)
        return schedule.build() if schedule.sites or schedule.edges else model

    def sparsify_model_and_optimizer_inplace(self, model, optimizer):
        """Not there yet: an optimizer cannot follow a build."""
        raise NotImplementedError(
            "an optimizer that was made before cannot follow yet; call sparsify_model_inplace(model), then make it"
        )


def _refuse_updates(name: str, *sparsifiers) -> None:
    for given in sparsifiers:
        if not isinstance(_sparsifier(name, given), KeepAll):
            raise NotImplementedError(
                f"'{name}': the entries of a weight stay as the initial sparsifier chooses them; "
                f"'{type(given).__name__}' has no place there yet"
            )


def _with_nodes(model: torch.nn.Module, names) -> torch.nn.Module:
    """The model with a module of each name, an identity after the node of a graph where there is none."""
    nodes: dict[str, list[str]] = {}
    modules = dict(model.named_modules(remove_duplicate=False))
    for name in dict.fromkeys(names):
        if name not in modules:
            path, _, node = name.rpartition(".")
            if path not in modules:
                raise ScheduleError(f"'{name}': the model has no module '{path}'")
            nodes.setdefault(path, []).append(node)
    for path, wanted in nodes.items():
        traced = torch.fx.symbolic_trace(modules[path])
        known = {node.name: node for node in traced.graph.nodes}
        for name in wanted:
            if name not in known:
                raise ScheduleError(f"'{path}' has no node '{name}'; it has {', '.join(known)}")
            traced.add_submodule(name, torch.nn.Identity())
            with traced.graph.inserting_after(known[name]):
                after = traced.graph.call_module(name)
            known[name].replace_all_uses_with(after)
            after.args = (known[name],)
        traced.recompile()
        traced.train(modules[path].training)
        if not path:
            return traced
        model.set_submodule(path, traced)
    return model
