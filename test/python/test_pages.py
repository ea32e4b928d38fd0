# SPDX-License-Identifier: Apache-2.0
"""The Python on the pages in docs/ answers what it says."""

import doctest
import pathlib

import pytest

PAGES = pathlib.Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    "page", ["activations.md", "cost-model.md", "expressions.md", "knobs.md", "operators.md", "training.md"]
)
def test_page(page):
    assert doctest.testfile(str(PAGES / page), module_relative=False).failed == 0
