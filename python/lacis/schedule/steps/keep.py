# SPDX-License-Identifier: Apache-2.0
"""The verb `keep`."""

from __future__ import annotations

import dataclasses

from .step import Step, primitive


@primitive
@dataclasses.dataclass(frozen=True)
class Keep(Step):
    """Give a statement of a chain (`lacis.kernel`) a nest of its own, whose results are kept for those that read them.

    for i: y[i] = f(t[i])   -->   for t.i: w[i] = t[i];  for i: y[i] = f(w[i])

    `tensor` is the name of the statement, as the text of the kernel has it. What is kept is made by no loop of `roll`.
    """

    mnemonic = "keep"
    tensor: str
    ready = True
