# SPDX-License-Identifier: Apache-2.0
"""`lacis.create_schedule` and `lacis.load_schedule`: a schedule with the engine that builds and changes it."""

from __future__ import annotations

import torch

from ..errors import ScheduleError, user_location
from ..schedule import Schedule, saved
from .engine import Engine


def create_schedule(
    model, target: str = "auto", deterministic: bool = True, allow_dense: bool = False, strict: bool = False
) -> Schedule:
    """A schedule for a model; nothing is traced, copied or changed before `build`.

    `target` is `"auto"` (where each parameter lies when built), `"cpu"`, `"cuda"`, `"cuda:sm_90a"` or `"eager"`
    (torch's own operators, no compiler).

    `deterministic`: no result depends on timing. `allow_dense`: a layer runs the dense product, on a dense copy of its
    weight, where the cost model predicts that this is faster for the tokens of `build(*example)` (1024 without one);
    the report names it. What the weight stores, trains and saves stays the same. `strict`: NaN and infinity
    reach outputs of kept entries alone, as in `lacis.einsum`, in gradients too; not together with `allow_dense`.

    >>> import torch, lacis
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 2))
    >>> s = create_schedule(model, target="eager")
    >>> s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    s["0.weight"].sparsify(Magnitude(sparsity=0.5)).set_format(Csr)
    >>> model = s.build()
    >>> model[0].weight.values.shape, s["0.weight"].packed.nnz
    (torch.Size([4]), 4)
    """
    if not isinstance(model, torch.nn.Module):
        raise ScheduleError(f"create_schedule: a torch.nn.Module is expected, not a {type(model).__name__}")
    return Schedule(model, Engine(model), target, deterministic, allow_dense, strict)


def load_schedule(path, model, classes=()) -> Schedule:
    """The schedule that `Schedule.save` wrote, on a model that has the same names; nothing is built.

    `classes` are your own formats and sparsifiers that the file may name, beside those of Lacis: the file alone makes
    no code run.

    >>> import lacis, os, tempfile, torch
    >>> make = lambda: torch.nn.Sequential(torch.nn.Linear(4, 2))
    >>> s = create_schedule(make(), target="eager")
    >>> _ = s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    >>> path = os.path.join(tempfile.mkdtemp(), "schedule.json")
    >>> s.save(path)
    >>> load_schedule(path, make())["0.weight"]
    s["0.weight"].sparsify(Magnitude(sparsity=0.5)).set_format(Csr)

    Raises `ScheduleError` for a file that is no saved schedule, for a name that the model lacks, and for a class that
    is neither of Lacis nor among `classes`.
    """
    content = saved.read(path)
    schedule = create_schedule(model, **saved.options(content))
    saved.replay(schedule, content, user_location(), classes)
    return schedule
