# SPDX-License-Identifier: Apache-2.0
"""The code on docs/add-a-level.md and docs/add-a-pass.md is code of the tree, and named files exist."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = ("include", "lib", "python", "test/outside", "test/python")
SUFFIXES = (".td", ".h", ".cpp", ".py")


def squeezed(text: str) -> str:
    """Lines without indentation or empty ones, since a page indents what stands in a list."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def snippets(page: str) -> list[str]:
    """The pieces of a page's C++, tablegen and Python, cut where it leaves lines out (…)."""
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"^ *```(?:cpp|tablegen|python)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [squeezed(piece) for block in blocks for piece in re.split(r"^\s*…$", block, flags=re.MULTILINE)]


@pytest.fixture(scope="module")
def sources() -> list[str]:
    files = [path for folder in SOURCES for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return [squeezed(path.read_text()) for path in files]


@pytest.mark.parametrize("page", ["add-a-level.md", "add-a-pass.md"])
def test_code_on_the_page_is_code_of_the_tree(page, sources):
    found = snippets(page)
    assert len(found) >= 4
    for snippet in found:
        assert any(snippet in source for source in sources), f"{page}: in no file of the tree:\n{snippet}"


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("add-*.md")))
def test_files_named_on_the_page_exist(page):
    text = (ROOT / "docs" / page).read_text()
    named = set(re.findall(r"\b(?:include|lib|python|test)/[\w/.-]+\.\w+", text))
    assert named and all((ROOT / path).is_file() for path in named), sorted(p for p in named if not (ROOT / p).exists())
