# SPDX-License-Identifier: Apache-2.0
"""The examples in the docstrings of the language and the runtime run."""

import doctest
import importlib
import pkgutil

import pytest

import lacis

ROOMS = (
    "schedule", "formats", "sparsifiers", "packing", "patterns", "operators", "activations", "capture", "emit", "nn",
    "runtime", "training", "attentions", "compat", "hf",
)  # fmt: skip


def modules():
    for room in ROOMS:
        package = importlib.import_module(f"lacis.{room}")
        yield package.__name__
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield found.name


@pytest.mark.parametrize("name", list(modules()))
def test_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_public_name_is_there():
    assert all(getattr(lacis, name) is not None for name in lacis.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lacis.nothing
