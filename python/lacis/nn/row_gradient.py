# SPDX-License-Identifier: Apache-2.0
"""Tables that stay dense, and whose gradient is a list of rows: torch's own sparse gradients."""

from __future__ import annotations

import torch

from ..errors import ScheduleError
from ..formats import Format

ROWS = Format.parse("(i, j) -> (i : compressed, j : dense)")
"""The rows that were read, each whole."""

_TABLES = (torch.nn.Embedding, torch.nn.EmbeddingBag)


class RowGradient:
    """The modules of one table, which give its gradient in rows while the schedule is built."""

    def __init__(self, model, site):
        self.name, self._location = f"{site.name}.grad", site.gradients["values"][0].location
        owners = [name.rpartition(".")[0] for name in site.names]
        self._modules = {owner: model.get_submodule(owner) for owner in owners}
        self._before: dict[str, bool] = {}
        if site.steps:
            self._refuse(f"its weight is packed ({site.steps[0].describe()}), and so has a gradient of its entries")
        if site.gradient_format != ROWS:
            self._refuse(f"a table has its gradient in rows, each whole: take '{ROWS}', not '{site.gradient_format}'")
        for step in site.gradients["values"]:
            if step.mnemonic != "set_format":
                self._refuse(f"rows that torch makes have no {step.mnemonic}; leave it out")
        for owner, module in self._modules.items():
            if not isinstance(module, _TABLES):
                kind = type(module).__name__
                self._refuse(f"'{owner}' ({kind}) reads the table too, and its gradient has all rows; untie the two")
            if module.scale_grad_by_freq:
                self._refuse(f"'{owner}' has scale_grad_by_freq=True, which torch has for dense gradients alone")

    def _refuse(self, reason: str):
        raise ScheduleError(f"set_format: '{self.name}': {reason}", location=self._location)

    def put_in(self, undo) -> None:
        """Have torch make gradients in rows."""
        self._before = {owner: module.sparse for owner, module in self._modules.items()}
        self._set(undo, dict.fromkeys(self._modules, True))

    def take_out(self, undo) -> None:
        """As the modules were."""
        self._set(undo, self._before)

    def _set(self, undo, sparse: dict[str, bool]) -> None:
        for owner, module in self._modules.items():
            undo.will_assign(module, "sparse")
            module.sparse = sparse[owner]

    def notes(self) -> list[str]:
        """What the report says of it."""
        return [f"'{self.name}' is a list of rows, for optimizers that take sparse gradients: SparseAdam, SGD, Adagrad"]


def make_row_gradients(model, schedule) -> list[RowGradient]:
    """Everything that can fail about them; the model is not touched."""
    return [RowGradient(model, site) for site in schedule.sites if site.gradient_format is not None]
