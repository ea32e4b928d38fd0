# SPDX-License-Identifier: Apache-2.0
"""What is installed: sizes, dependencies, exported symbols, tools."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import lacis
import lacis_tools

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEM = {
    "libc.so.6",
    "libm.so.6",
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "libz.so.1",
    "libzstd.so.1",
    "libdl.so.2",
    "libpthread.so.0",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}


def installed(name):
    found = [path for folder in lacis.__path__ for path in pathlib.Path(folder).glob(name)]
    assert found, f"{name} is not in {list(lacis.__path__)}"
    return found[0]


def needed(path):
    text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))


def symbols(path, *options):
    text = subprocess.run(["nm", "-D", *options, path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in text.splitlines() if line}


@pytest.mark.parametrize(
    "name, allowed",
    [
        ("lib/liblacis_core.so", set()),
        ("_ops.so", {"liblacis_core.so", "libtorch_cpu.so"}),
        ("_core*.so", {"liblacis_core.so"}),
        ("bin/lacis-opt", {"liblacis_core.so"}),
        ("bin/lacis-compile", {"liblacis_core.so"}),
    ],
)
def test_needs_nothing_beyond_the_system(name, allowed):
    assert needed(installed(name)) <= SYSTEM | allowed


def test_sizes():
    assert installed("lib/liblacis_core.so").stat().st_size <= 80_000_000
    for tool in ("lacis-opt", "lacis-compile", "lacis-lsp-server"):
        assert installed(f"bin/{tool}").stat().st_size <= 1_000_000


def test_the_source_of_the_node_is_installed():
    assert "TORCH_LIBRARY_FRAGMENT(lacis" in installed("runtime/node_source.cpp").read_text()


def test_core_shows_only_its_c_functions():
    shown = symbols(installed("lib/liblacis_core.so"), "--defined-only")
    assert {"lacis_compile", "lacis_kernel_launch", "lacis_opt_main"} <= shown
    assert {name for name in shown if not name.startswith("lacis_")} == set()


def test_tools_start_without_torch():
    path = lacis_tools.find("lacis-opt")
    text = subprocess.run([path, "--help"], capture_output=True, text=True, check=True).stdout
    assert "--lacis-to-loops" in text
    script = "import sys, lacis_tools; lacis_tools.find('lacis-opt'); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
    with pytest.raises(FileNotFoundError, match="lacis-banana"):
        lacis_tools.find("lacis-banana")


def test_tool_command():
    command = pathlib.Path(sys.executable).parent / "lacis-compile"
    assert os.access(command, os.X_OK)
    done = subprocess.run([command, "--no-such-option"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr


def test_an_editable_installation_loads_what_ninja_makes(tmp_path):
    for name in ("site/lacis/lib/core.so", "site/lacis/_ops.so", "site/lacis/__init__.py", "build/lib/core.so"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before")
    for _ in range(2):
        subprocess.run([ROOT / ".ci" / "link-build", tmp_path / "build", tmp_path / "site"], check=True)
    (tmp_path / "build/lib/core.so").write_text("after")
    texts = {path.name: path.read_text() for path in tmp_path.glob("site/**/*") if path.is_file()}
    assert texts == {"core.so": "after", "_ops.so": "before", "__init__.py": "before"}


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("moved", [True, False])
def test_a_checkout_that_was_moved_builds_itself(tmp_path, moved):
    here = tmp_path / "before" if moved else tmp_path
    for name, text in {
        "build/CMakeCache.txt": f"CMAKE_HOME_DIRECTORY:INTERNAL={here}\n",
        ".venv/bin/pip": f"#!{here}/.venv/bin/python\n",
        **dict.fromkeys(["packages.txt", "pyproject.toml", "CMakeLists.txt"], ""),
        **dict.fromkeys([f".venv/.lacis/{stamp}" for stamp in ("system", "python", "installed")], ""),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    make = ["make", "-n", "-f", ROOT / "Makefile", "build"]
    said = subprocess.run(make, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    for word in (f"this build was made in {here}", f"this environment was made in {here}", "pip install", "link-build"):
        assert (word in said) == moved, said
