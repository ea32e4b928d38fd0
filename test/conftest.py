# SPDX-License-Identifier: Apache-2.0
"""Counts the kernels that the suite compiles, at most 500 distinct ones in `make test`, and the cases that it draws.

A kernel is its text at the first stage: the same text for another target is the same kernel, and so is a later stage
that goes back in. One that a warm cache holds counts too.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import os
import re

import pytest
import tally

LIMIT = 500
_made: dict[str, str] = {}  # digest of the text -> the test module that asked first


def _count(text: str) -> None:
    from lacis.runtime.keys import without_locations

    if 'lacis.stage = "' in text or text.startswith("; ModuleID"):
        return
    digest = hashlib.sha256(without_locations(text).encode()).hexdigest()
    _made.setdefault(digest, os.environ.get("PYTEST_CURRENT_TEST", "?").partition("::")[0])


_ACCESS = re.compile(rb"\t(ld|st|atom|red|cp|prefetch)\S*\.global")


def _check_waits(artifact: bytes) -> None:
    """A kernel that may be started early touches no memory before it has waited."""
    for entry in artifact.split(b".visible .entry ")[1:]:
        wait, access = entry.find(b"griddepcontrol.wait"), _ACCESS.search(entry)
        assert (wait >= 0) == (b'"waits":true' in artifact), "the kernel and its record do not say the same"
        assert wait < 0 or not access or wait < access.start(), "a kernel reads before it waits"


def _counted(function, text_of, artifact_of):
    @functools.wraps(function)
    def run(first, *args, **kwargs):
        made = function(first, *args, **kwargs)
        _count(text_of(first))  # what is refused is no kernel
        _check_waits(artifact_of(made))
        return made

    return run


@pytest.fixture
def tf32():
    """Torch lets products of float32 take TF32."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    yield
    torch.backends.cuda.matmul.allow_tf32 = False


def pytest_configure(config):
    os.environ.setdefault("LACIS_CALIBRATE", "0")  # predictions of a CPU are the same on every machine
    try:
        from lacis import _core
        from lacis.runtime import kernels
    except ImportError:  # nothing is built, so nothing is compiled
        return
    _core.compile = _counted(_core.compile, lambda text: text, lambda made: made.artifact)
    kernels._make = _counted(kernels._make, lambda request: request.text, lambda made: made.artifact)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """A worker of pytest-xdist hands over what it counted."""
    output = getattr(node, "workeroutput", {})
    for digest, module in output.get("kernels", {}).items():
        _made.setdefault(digest, module)
    tally.counts.update(output.get("drawn", {}))


def _limited() -> bool:
    import torch

    return not os.environ.get("LACIS_TEST_LONG") and not torch.cuda.is_available()


def _too_many() -> pytest.TestReport:
    """A failed test that lists how many kernels each module asked for first."""
    modules = "\n".join(f"{count:5} {module}" for module, count in collections.Counter(_made.values()).most_common())
    text = f"{len(_made)} distinct kernels, make test compiles at most {LIMIT}; asked for first by\n{modules}"
    name = "test/conftest.py::kernels"
    return pytest.TestReport(name, ("test/conftest.py", None, "kernels"), {}, "failed", text, "call")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["kernels"], output["drawn"] = dict(_made), dict(tally.counts)
    elif len(_made) > LIMIT and _limited():
        session.config.hook.pytest_runtest_logreport(report=_too_many())
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(tally.line())
    terminalreporter.write_line(f"{len(_made)} distinct kernels (make test: at most {LIMIT})")
    if os.environ.get("LACIS_TEST_KERNELS"):
        for module, count in collections.Counter(_made.values()).most_common():
            terminalreporter.write_line(f"{count:5} {module}")
