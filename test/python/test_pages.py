# SPDX-License-Identifier: Apache-2.0
"""The Python on the pages in docs/ answers what it says."""

import doctest
import importlib.util
import pathlib
import re

import pytest
from lacis.activations import ACTIVATIONS
from lacis.formats.own import BINDINGS, KINDS
from lacis.operators import OPERATORS

import lacis

PAGES = pathlib.Path(__file__).parents[2] / "docs"
RUN = (
    *("activations", "add-a-sparsifier", "add-an-activation", "add-an-operator", "cost-model", "expressions", "knobs"),
    *("attention", "changing-patterns", "layers", "migrate"),
    *("operators", "schedules", "sparsifiers", "training", "troubleshooting", "tutorial", "user-kinds"),
)


@pytest.fixture
def registries():
    """What a page adds is gone after it."""
    before = [(known, dict(known)) for known in (ACTIVATIONS, OPERATORS, KINDS, BINDINGS)]
    yield
    for known, entries in before:
        known.clear()
        known.update(entries)


@pytest.mark.parametrize("page", RUN)
def test_page(page, registries):
    found = doctest.testfile(str(PAGES / f"{page}.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.failed == 0 and found.attempted > 0


@pytest.mark.parametrize("page", sorted(PAGES.rglob("*.md")), ids=lambda page: str(page.relative_to(PAGES)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:]+\.md)\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_reference_is_made_from_the_docstrings_as_they_are():
    spec = importlib.util.spec_from_file_location("reference", PAGES / "reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    assert (PAGES / "api.md").read_text() == reference.page(), "run docs/generate.py"
    named = {member for members in reference.SECTIONS.values() for member in members}
    public = {
        getattr(lacis, name) for name in lacis.__all__ if name not in ("knobs", "steps", "nn", "errors", "compat")
    }
    assert public <= named
