# SPDX-License-Identifier: Apache-2.0
"""The example of the README runs as it stands."""

import pathlib
import re

README = pathlib.Path(__file__).parents[2] / "README.md"


def test_example_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(README), "exec"), {})
    assert "Csr" in capsys.readouterr().out
