# SPDX-License-Identifier: Apache-2.0
"""Every verb of the loops that is built has a page, and the Python on it runs; test/run_examples.py runs its MLIR."""

import pathlib
import re

import pytest
import torch

import lacis

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "steps"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md"))
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(page):
    torch.manual_seed(0)
    w = lacis.pack(torch.randn(24, 40).relu(), lacis.Csr)
    names = {"torch": torch, "lacis": lacis, "pytest": pytest, "w": w, "x": torch.randn(16, 40)}
    found = SNIPPET.findall((FOLDER / f"{page}.md").read_text())
    assert found
    for snippet in found:
        exec(compile(snippet, f"{page}.md", "exec"), names)


def test_every_verb_has_a_page_and_the_index_names_it():
    verbs = {verb for verb, step in lacis.steps.STEPS.items() if step.of_loops and step.ready}
    index = (FOLDER / "README.md").read_text()
    assert verbs | {"README"} == set(PAGES)
    assert all(f"[{verb}]({verb}.md)" in index for verb in verbs)
