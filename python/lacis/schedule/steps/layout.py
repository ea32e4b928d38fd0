# SPDX-License-Identifier: Apache-2.0
"""Layouts of dense levels as fields of a step."""

from __future__ import annotations

from ...formats import Format

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


def short_layout(text: str) -> str:
    """The text without what stands around it."""
    return text[len(_HEAD) : -1]
