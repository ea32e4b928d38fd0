# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: text and tables as HTML."""

from __future__ import annotations

import io

_FRAME = "<pre style=\"line-height:normal;font-family:Menlo,'DejaVu Sans Mono',consolas,monospace\">{code}</pre>"


def html(shown) -> str:
    """A text, or anything that rich prints, as HTML.

    >>> html("a < b").partition(">")[2]
    'a &lt; b\\n</pre>'
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, file=io.StringIO(), width=1000, force_jupyter=False)  # no line is broken into two
    console.print(Text(shown) if isinstance(shown, str) else shown)
    return console.export_html(inline_styles=True, code_format=_FRAME)
