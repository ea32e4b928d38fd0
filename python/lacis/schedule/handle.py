# SPDX-License-Identifier: Apache-2.0
"""Handles: what `s["path.weight"]` and `s.match(...)` answer; the verbs are the files of `steps/`."""

from __future__ import annotations

import warnings

from ..errors import ScheduleError, user_location
from ..sparsifiers import Calibrated
from .site import Site
from .verbs import SiteVerbs, Verbs


class Handle(SiteVerbs):
    """One parameter. Verbs return the handle, and raise at once when they contradict an earlier one."""

    def __init__(self, schedule, site: Site):
        self._schedule = schedule
        self.site = site

    @property
    def name(self) -> str:
        return self.site.name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.site.shape

    @property
    def grad(self) -> GradientHandle:
        """The gradient of the values, which is a kernel with steps of its own."""
        return GradientHandle(self._schedule, self.site, "values", f"{self.name}.grad")

    def part(self, name: str) -> Part:
        """A part of a sum, whose loops take steps of their own; raises `ScheduleError` for a name that is no part.

        s["w"].part("ell").unroll("j", 8)   -->   s["w"].unroll("ell.j", 8)
        """
        format = self.site.format()
        parts = getattr(format, "parts", None)
        if parts is None or name not in parts:
            known = f"its parts are {', '.join(parts)}" if parts else "it is not a sum, see decompose()"
            raise ScheduleError(f"'{self.name}' has no part '{name}'; {known}")
        return Part(self, name)

    @property
    def kernel(self):
        """The compiled forward kernel, after `build`."""
        return self.kernels["forward"]

    @property
    def kernels(self) -> dict:
        """The compiled kernels by role, after `build`."""
        return self._schedule.engine.kernels(self.site)

    @property
    def packed(self):
        """The packed tensor over the arrays of the built model."""
        return self._schedule.engine.packed(self.site)

    def resparsify(self, sparsifier) -> Handle:
        """Choose the entries of the built weight anew, once and now; what `attach` was given follows by entry.

        Raises what the sparsifier and the format raise, and `ScheduleError` before `build`; nothing has changed then.

        >>> import lacis, torch
        >>> s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(4, 2)), target="eager")
        >>> handle = s["0.weight"].sparsify(lacis.Magnitude(0.25)).set_format(lacis.Csr)
        >>> _ = s.build()
        >>> handle.resparsify(lacis.Magnitude(0.75)).packed.nnz
        2
        """
        self._schedule.engine.resparsify(self.site, sparsifier)
        return self

    def fit(self) -> Handle:
        """Give the room back that `attach(..., resize=False)` left in the built weight and in what follows it.

        The Parameter is resized; raises `DataError` where that cannot be (DistributedDataParallel, FSDP2, a captured
        CUDA graph).

        >>> import lacis, torch
        >>> s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(4, 2)), target="eager")
        >>> ramp = lacis.Ramp(0.0, 0.75, range(0, 2))
        >>> handle = s["0.weight"].sparsify(lacis.Magnitude(ramp)).set_format(lacis.Csr)
        >>> model = s.build()
        >>> s.attach(torch.optim.SGD(model.parameters(), lr=0.1), resize=False).step()
        True
        >>> handle.packed.nnz, len(model[0].weight.values), len(handle.fit().packed.values)
        (2, 8, 2)
        """
        self._schedule.engine.fit(self.site)
        return self

    def _share_of_zeros(self) -> float:
        if self._schedule.engine.built:
            raise ScheduleError(f"where: '{self.name}' is packed already; call restore() first")
        parameter = self._schedule.model.get_parameter(self.name)
        if parameter.is_meta:
            raise ScheduleError(f"where: '{self.name}' is on the meta device, so nobody knows its zeros; load it first")
        return 1 - int(parameter.count_nonzero()) / parameter.numel() if parameter.numel() else -1.0

    def __repr__(self) -> str:
        verbs = "".join(f".{step.describe()}" for step in self.site.steps)
        return f's["{self.name}"]{verbs}'


class Part(Verbs):
    """A part of a sum; its verbs are recorded at the parameter, with the names of the part's own loops.

    The loops over rows and columns, which all parts share, belong to the parameter.
    """

    def __init__(self, handle: Handle, part: str):
        self._handle = handle
        self._part = part
        self.name = f"{handle.name}, part {part}"

    @property
    def steps(self) -> tuple:
        """The records of this part, in order, as the parameter has them."""
        return tuple(step for step in self._handle.steps if self._part in step.parts_named())

    def _trial(self, step) -> None:
        self._handle._trial(step.of_part(self._part))

    def _take(self, step) -> None:
        self._handle._take(step.of_part(self._part))

    def __repr__(self) -> str:
        return f's["{self._handle.name}"].part("{self._part}")'


class GradientHandle(Verbs):
    """The gradient of a parameter's values, or of a layer's input; its verbs are the steps of loops.

    for i: for j: dx[b, j] += dy[b, i] * w[i, j]   -->   its own order, units and copies

    The gradient of values takes `sparsify` besides: entries that it drops get gradient 0, and storage stays. The
    sparsifier sees the gradient as a tensor of the weight's shape, 0 where nothing is stored. That of a table that
    stays dense, as of `nn.Embedding`, takes `set_format` of rows: torch makes it as with `sparse=True`.

    >>> import lacis, torch
    >>> s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Embedding(9, 4)), target="eager")
    >>> _ = s["0.weight"].grad.set_format(lacis.Format.parse("(i, j) -> (i : compressed, j : dense)"))
    >>> model = s.build()
    >>> model(torch.tensor([2, 5, 2])).sum().backward()
    >>> model[0].weight.grad.coalesce().indices().tolist()
    [[2, 5]]
    """

    def __init__(self, schedule, site: Site, key: str, name: str):
        self._schedule = schedule
        self._site = site
        self._key = key
        self.name = name

    @property
    def steps(self) -> tuple:
        """The records, in order."""
        return tuple(self._site.gradients.get(self._key, ()))

    @property
    def kernel(self):
        """The compiled kernel, after `build`; of a sum's values that of its first part."""
        kernels = self._schedule.engine.kernels(self._site)
        return next(
            kernels[role] for role in kernels if role.endswith("grad_values" if self._key == "values" else "grad_input")
        )

    def _trial(self, step) -> None:
        self._schedule.require_open(step)
        if step.mnemonic == "sparsify" and self._key == "values":
            check_gradient_sparsifier(self.name, step)
        elif not step.of_loops and not (step.mnemonic == "set_format" and self._of_table()):
            raise ScheduleError(
                f"{step.mnemonic}: '{self.name}' is no operand of a product, and has the entries of its weight; the "
                f"gradient that arrives at a layer is s['path:out'].grad",
                location=step.location,
            )
        step.check(self._site.gradients.get(self._key, []))

    def _of_table(self) -> bool:
        """Does an embedding read the parameter, whose gradient may be a list of rows?"""
        modules = [self._schedule.model.get_submodule(name.rpartition(".")[0]) for name in self._site.names]
        return self._key == "values" and any(hasattr(module, "embedding_dim") for module in modules)

    def _take(self, step) -> None:
        self._trial(step)
        self._site.gradients.setdefault(self._key, []).append(step)

    def __repr__(self) -> str:
        return f's["{self.name}"]' + "".join(f".{step.describe()}" for step in self.steps)


def check_gradient_sparsifier(name: str, step) -> None:
    """Raise `ScheduleError` for one that cannot choose in each backward pass by itself."""
    sparsifier = step.sparsifier
    alone = step.master is None and not step.of_modules and sparsifier.due() is None and sparsifier.is_settled
    if not alone or isinstance(sparsifier, Calibrated):
        raise ScheduleError(
            f"{step.mnemonic}: '{name}' is chosen anew in each backward pass, by its own values; take Magnitude, "
            "Random, Threshold or NM, and no master=",
            location=step.location,
        )


class Group(Verbs):
    """All handles of a `match`; a verb is recorded for each of them, or for none when one refuses."""

    def __init__(self, handles):
        self._handles = list(handles)

    def __len__(self) -> int:
        return len(self._handles)

    def __iter__(self):
        return iter(self._handles)

    def __getitem__(self, index):
        return self._handles[index]

    def where(self, zeros: float) -> Group:
        """The parameters of which at least the share `zeros` of the elements, from 0 to 1, is 0 now.

        Modules and parameters without elements are left out; where nothing is left it warns, verbs of the empty group
        do nothing, and `build` leaves the model as it is. Raises `ScheduleError` for what is no share, for a parameter
        on the meta device, and after `build`. As TVM's `sparsity_threshold` chooses.

        >>> import lacis, torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
        >>> _ = model[1].weight.data[:, 1:].zero_()
        >>> s = lacis.create_schedule(model, target="eager")
        >>> s.match(r".*weight").where(zeros=0.7).set_format(lacis.Csr)
        Group(1.weight)
        """
        if isinstance(zeros, bool) or not isinstance(zeros, (int, float)) or not 0 <= zeros <= 1:
            raise ScheduleError(f"where: zeros is a share from 0 to 1, not {zeros!r}")
        found = [each for each in self._handles if isinstance(each, Handle) and each._share_of_zeros() >= zeros]
        if not found:
            text = f"where: in no parameter of the group at least {zeros:.0%} of the elements is 0"
            warnings.warn_explicit(text, UserWarning, *(user_location() or ("lacis", 1)))
            for each in self._handles:
                each._schedule.may_be_empty = True
        return Group(found)

    def _trial(self, step) -> None:
        for handle in self._handles:
            handle._trial(step)

    def _take(self, step) -> None:
        self._trial(step)
        for handle in self._handles:
            handle._take(step)

    def __repr__(self) -> str:
        return f"Group({', '.join(handle.name for handle in self._handles)})"
