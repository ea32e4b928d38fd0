# SPDX-License-Identifier: Apache-2.0
"""The kernels of a call of attention, as `s["path"].kernels` shows them."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from .fused_kernels import APART, ROLES


class AttentionKernels(Mapping):
    """The kernels of a call by role: `forward`, and `grad_query`, `grad_key_value`, compiled when first looked at.

    Heads whose keys and values have a kernel each have `grad_key` and `grad_value`. Each has `.steps` and `.text`,
    `.asm` and `.remarks`, as those of `lacis.compile`.
    """

    def __init__(self, forward, kernels, layout, operands, steps):
        self._made = {"forward": forward}
        self._kernels, self._layout, self._steps = kernels, layout, steps
        self._like = [torch.empty_like(x, device="meta") for x in operands]
        apart = kernels.sums_apart(self._like[0], self._like[2])
        roles = {"rows": ROLES["rows"], **APART} if apart else ROLES
        self._walks = {role: what for what, role in roles.items()}

    def __getitem__(self, role: str):
        if role not in self._made:
            self._made[role] = self._gradient(self._walks[role])
        return self._made[role]

    def __iter__(self):
        return iter(("forward", *self._walks))

    def __len__(self) -> int:
        return 1 + len(self._walks)

    def __repr__(self) -> str:
        return f"AttentionKernels({', '.join(self)})"

    def _gradient(self, what: str):
        q, k, v, *operands = self._like
        rows = q.shape[:-1]
        wide = torch.promote_types(q.dtype, torch.float32)
        lse, delta = (torch.empty(rows, dtype=wide, device="meta") for _ in range(2))
        arrived = torch.empty(*rows, v.shape[-1], dtype=q.dtype, device="meta")
        pattern = self._layout.pattern(columns=what != "rows")
        function = self._kernels.gradient(what, (True, ()))
        given = *self._kernels.given(what, (q, k, v, lse, arrived, delta, pattern)), *operands
        steps, target = self._kernels.steps_of(what, self._steps), self._made["forward"].target
        return function.compile(*given, steps=steps, target=target)
