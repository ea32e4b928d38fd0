# SPDX-License-Identifier: Apache-2.0
"""The Python on the pages in docs/ answers what it says."""

import doctest
import pathlib

import pytest
from lacis.activations import ACTIVATIONS
from lacis.operators import OPERATORS

PAGES = pathlib.Path(__file__).parents[2] / "docs"


PAGES_RUN = [
    "activations.md", "add-a-sparsifier.md", "add-an-activation.md", "add-an-operator.md", "cost-model.md",
    "expressions.md", "knobs.md", "operators.md", "training.md",
]  # fmt: skip


@pytest.fixture
def registries():
    """What a page adds is gone after it."""
    before = [(known, dict(known)) for known in (ACTIVATIONS, OPERATORS)]
    yield
    for known, entries in before:
        known.clear()
        known.update(entries)


@pytest.mark.parametrize("page", PAGES_RUN)
def test_page(page, registries):
    assert doctest.testfile(str(PAGES / page), module_relative=False).failed == 0
