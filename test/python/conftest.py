# SPDX-License-Identifier: Apache-2.0
"""Makes the shared strategies importable from every test, and fixtures of copies of values."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.fixture
def kernels_in_torch(monkeypatch):
    """The operator runs the kernels of `tile_kernels`."""
    import tile_kernels
    from lacis.runtime import library

    monkeypatch.setattr(library, "inference", lambda: tile_kernels.run)


@pytest.fixture
def captured(monkeypatch):
    """A list of one: is a CUDA graph captured? What the calls of such a test launch does run, on the CPU."""
    from lacis.nn import bound_step, copied, step, weight
    from lacis.packing import packed
    from lacis.patterns import seen

    now = [False]
    for module in (seen, weight, step, bound_step, copied, packed):
        monkeypatch.setattr(module, "is_captured", lambda device: now[0])
    return now


@pytest.fixture
def copies(monkeypatch):
    """Every copy of values that is made, in the order of time: True where it was filled again."""
    from lacis.nn.copied import BoundCopy
    from lacis.patterns.copies import Refill
    from lacis.patterns.tile_copy import TileCopy

    made = []
    refills = (TileCopy, "again", True), (Refill, "__call__", True), (BoundCopy, "filled", True)
    for owner, name, again in ((TileCopy, "__call__", False), *refills):
        run = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a, run=run, again=again: made.append(again) or run(*a))
    return made
