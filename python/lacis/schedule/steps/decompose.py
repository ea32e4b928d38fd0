# SPDX-License-Identifier: Apache-2.0
"""The verb `decompose`."""

from __future__ import annotations

import dataclasses

from ...errors import ScheduleError, user_location
from ...formats import split_part, words_of
from .step import HERE, Step, primitive


@primitive
@dataclasses.dataclass(frozen=True, init=False)
class Decompose(Step):
    """Store the tensor as a sum of parts; each but the last takes the entries that fit, or those that its rule names.

    w   -->   w.ell + w.rest

    `decompose(ell=lacis.Ell(width=8), rest=lacis.Coo)`, or with rules
    `decompose(short=(lacis.Csr, lacis.nnz("i") < 256), long=lacis.Dcsr)`.
    """

    mnemonic = "decompose"
    parts: tuple
    rules: tuple = ()  # (part, text) of those that have a rule of their own
    ready = True
    of_loops = False

    def __init__(self, *, location=HERE, **parts):
        location = user_location() if location is HERE else location
        if len(parts) < 2:
            raise ScheduleError("a sum needs at least two parts", location=location)
        split = {name: split_part(part) for name, part in parts.items()}
        object.__setattr__(self, "parts", tuple((name, part) for name, (part, _) in split.items()))
        object.__setattr__(
            self, "rules", tuple((name, rule.text) for name, (_, rule) in split.items() if rule is not None)
        )
        object.__setattr__(self, "location", location)

    @classmethod
    def of_fields(cls, fields, location=None):
        return cls(**_with_rules(dict(fields["parts"]), fields.get("rules", ())), location=location)

    def check(self, earlier):
        for step in earlier:
            if isinstance(step, (Decompose,)) or step.mnemonic == "set_format":
                self.contradict(step, "the tensor has a format already")

    def with_rules(self, parts: dict) -> dict:
        """Formats by part, each with the rule that it has here, as `lacis.decompose` takes them."""
        return _with_rules(parts, self.rules)

    def describe(self):
        words = {name: words_of(part) for name, part in self.parts}
        words |= {name: f"({words[name]}, {text!r})" for name, text in self.rules}
        return f"decompose({', '.join(f'{name}={word}' for name, word in words.items())})"


def _with_rules(parts: dict, rules) -> dict:
    return {**parts, **{name: (parts[name], text) for name, text in rules}}
