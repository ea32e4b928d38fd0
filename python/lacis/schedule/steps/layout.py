# SPDX-License-Identifier: Apache-2.0
"""Layouts as fields of a step."""

from __future__ import annotations

from ...formats import Format
from .step import Step

_HEAD = "#lacis.format<"


def layout_text(layout: Format | str | None) -> str | None:
    """The dialect's text of a layout that is a format, or its text with or without what stands around it.

    >>> layout_text("(b, i) -> (i : dense, b : dense)")
    '#lacis.format<(b, i) -> (i : dense, b : dense)>'
    """
    if layout is None:
        return None
    if not isinstance(layout, str):
        return str(layout)
    Format.parse(layout)  # refuses what is no format
    return layout if layout.startswith(_HEAD) else f"{_HEAD}{layout}>"


class LayoutStep(Step):
    """A step with a `layout`, a format or its text; one that is None is said by nobody."""

    def __post_init__(self):
        object.__setattr__(self, "layout", layout_text(self.layout))
        super().__post_init__()

    def words(self) -> dict:
        words = super().words()
        return words | {"layout": words["layout"][len(_HEAD) : -1]} if "layout" in words else words
