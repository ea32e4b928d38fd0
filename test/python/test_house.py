# SPDX-License-Identifier: Apache-2.0
"""The suite and the build keep their own rules: lint, the limit of kernels, all of `make test`, torch's headers."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, env=None, **options):
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})}, **options)


@pytest.mark.parametrize("command", [["check"], ["format", "--check", "--diff"]], ids=lambda command: command[0])
def test_ruff(command):
    done = run(sys.executable, "-m", "ruff", *command, "--no-cache", ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("workers", ["0", "1"])
def test_kernels_beyond_the_limit_are_a_failed_test(tmp_path, workers):
    (tmp_path / "test_many.py").write_text("import conftest\ndef test(): [conftest._count(str(n)) for n in range(501)]")
    options = ["-p", "conftest", "-p", "no:cacheprovider", "-n", workers, f"--junitxml={tmp_path / 'report.xml'}"]
    env = {"PYTHONPATH": str(ROOT / "test"), "LACIS_TEST_LONG": "", "CUDA_VISIBLE_DEVICES": "", "PYTEST_ADDOPTS": ""}
    done = run(sys.executable, "-m", "pytest", *options, "test_many.py", env=env, cwd=tmp_path)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "501 distinct kernels, make test compiles at most 500; asked for first by\n  501 test_many.py" in done.stdout
    assert "FAILED test/conftest.py::kernels" in done.stdout and "1 failed, 1 passed" in done.stdout
    assert "501 test_many.py" in (tmp_path / "report.xml").read_text()


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize("target, long", [("test", ""), ("test-all", "1")])
@pytest.mark.parametrize("failing", ["python", "lit", "ctest", None])
def test_make_runs_all_suites(tmp_path, target, long, failing):
    """Each tool is a script that writes down its call; Python runs that of lit."""
    (tmp_path / "bin").mkdir()
    for tool in ("python", "lit", "ctest"):
        script = tmp_path / "bin" / tool
        runs = f'case "$1" in {tmp_path}/*) exec sh "$@";; esac\n' if tool == "python" else ""
        noted = f'echo "{tool} $LACIS_TEST_LONG $*" >>{tmp_path}/calls\nexit {int(tool == failing)}\n'
        script.write_text(f"#!/bin/sh\n{runs}{noted}")
        script.chmod(0o755)
    env = {"VIRTUAL_ENV": str(tmp_path), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "LACIS_TEST_LONG": ""}
    done = run("make", "-C", ROOT, "-o", "build", target, "JOBS=2", env=env)
    calls = [line.split() for line in (tmp_path / "calls").read_text().splitlines()]
    assert (done.returncode != 0) == (failing is not None), done.stdout + done.stderr
    assert [call[0] for call in calls] == ["python", "lit", "ctest"]
    assert ("not long" in " ".join(calls[0])) == (not long) and (calls[0][1] == "1") == bool(long)


def find_torch(tmp_path, python, **env):
    script = tmp_path / "find.cmake"
    script.write_text(
        f'include({ROOT}/cmake/LacisTorch.cmake)\nlacis_find_torch(root {python})\nmessage("<${{root}}>")\n'
    )
    return run("cmake", "-P", script, env=env)


@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake")
def test_torch_is_found_from_an_isolated_build(tmp_path):
    """As pip isolates: a sitecustomize module hides what is installed."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]"
    )
    for env in ({}, {"PYTHONPATH": str(tmp_path)}):
        done = find_torch(tmp_path, sys.executable, **env)
        assert done.returncode == 0 and "torch>" in done.stderr, done.stderr


@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake")
def test_a_build_without_torch_says_what_to_do(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    done = find_torch(tmp_path, tmp_path / "bare/bin/python", PYTHONPATH="")
    said = " ".join(done.stderr.split())
    assert done.returncode != 0 and "with the headers of an installed torch" in said
    assert "Install torch 2.10 or later first" in said and "LACIS_TORCH_ROOT" in said
