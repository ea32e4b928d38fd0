# SPDX-License-Identifier: Apache-2.0
"""The verbs of handles: each registered step is a method that records it."""

from __future__ import annotations

import dataclasses
import functools
import re

from ..errors import Error, ScheduleError, user_location
from ..nearest import nearest
from .site import Site
from .steps import STEPS


class Verbs:
    """Every registered step as a method that records it and returns the handle."""

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        step = STEPS.get(name)
        if step is None:
            raise AttributeError(
                f"a handle has no verb '{name}'{nearest(name, STEPS)}; it has {', '.join(sorted(STEPS))}"
            )
        return functools.wraps(step)(functools.partial(self._record, step))

    def __dir__(self):
        return sorted({*super().__dir__(), *STEPS})

    def _record(self, cls, *args, **kwargs):
        if not cls.ready:
            raise NotImplementedError(f"'{cls.mnemonic}' is not built yet")
        location = user_location()
        try:
            step = cls(*args, **kwargs, location=location)
        except Error as error:
            said = error.message.removeprefix(f"{cls.mnemonic}: ")
            raise type(error)(f"{cls.mnemonic}: {said}", location=location) from None
        except TypeError as error:
            said = re.sub(r"^.*__init__\(\) ", "", str(error)).removeprefix(f"{cls.mnemonic}: ")
            names = ", ".join(field.name for field in dataclasses.fields(cls) if field.name != "location")
            raise ScheduleError(f"{cls.mnemonic}: {said}; it takes {names}", location=location) from None
        self._take(step)
        return self


class SiteVerbs(Verbs):
    """Verbs that are recorded at a site, `self.site` of the schedule `self._schedule`."""

    @property
    def steps(self) -> tuple:
        """The records, in order."""
        return tuple(self.site.steps)

    @property
    def format(self):
        """The format that the verbs say together."""
        return self.site.format()

    def _trial(self, step) -> None:
        self._schedule.require_open(step)
        if step.of_modules:
            raise ScheduleError(
                f"{step.mnemonic}: '{self.site.name}' is no module that attends, and {step.describe()} is said of one, "
                "as s['path']; a tensor takes a sparsifier like lacis.Magnitude(0.9)",
                location=step.location,
            )
        self._stage(step).trial(step)

    def _stage(self, step) -> Site:
        """The site, with the verbs that a step must not contradict."""
        return self.site

    def _take(self, step) -> None:
        self._trial(step)
        self.site.record(step)
