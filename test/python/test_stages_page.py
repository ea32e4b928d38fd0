# SPDX-License-Identifier: Apache-2.0
"""The stages that docs/stages.md shows are those that lacis-opt makes: each block becomes the next."""

import itertools
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

OPT = shutil.which("lacis-opt", path=pathlib.Path(sys.executable).parent) or shutil.which("lacis-opt")
pytestmark = pytest.mark.skipif(OPT is None, reason="lacis-opt is not built")
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "stages.md"
BLOCKS = re.findall(r"^```mlir\n// lacis-opt (\S+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def printed(text, *flags):
    return subprocess.run([OPT, *flags, "-"], input=text, capture_output=True, text=True, check=True).stdout


def test_each_block_becomes_the_next():
    assert [flag for flag, _ in BLOCKS] == ["-lacis-to-loops", "-lacis-to-buffers", "-lacis-to-target"]
    for (flag, block), (_, following) in itertools.pairwise(BLOCKS):
        assert printed(block, flag) == printed(following)


def test_the_last_becomes_one_function_a_launch():
    flag, block = BLOCKS[-1]
    assert "func.func @linear_0(" in printed(block, flag)
