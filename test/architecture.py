# SPDX-License-Identifier: Apache-2.0
"""Data flows one way: what each room may include or import, read from the sources."""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A room of the C++ tree -> the lacis rooms whose headers it may include besides its own.
CPP_ROOMS = {
    "Dialect/Lacis/IR": (),
    "Dialect/Lacis/Levels": ("Dialect/Lacis/IR",),
    "Dialect/Lacis/Steps": ("Dialect/Lacis/IR",),
    "Schedules": ("Dialect/Lacis/IR", "Dialect/Lacis/Steps"),
    "Conversion": ("Dialect/Lacis/IR",),
    "Transforms": ("Dialect/Lacis/IR",),
    "Target": ("Dialect/Lacis/IR", "Transforms"),
    "Runtime": ("Target",),
    "Compiler": ("Dialect/Lacis/IR", "Dialect/Lacis/Levels", "Dialect/Lacis/Steps", "Transforms", "Target"),
    "Tools": (
        "Dialect/Lacis/IR",
        "Dialect/Lacis/Levels",
        "Dialect/Lacis/Steps",
        "Conversion",
        "Transforms",
        "Target",
        "Compiler",
    ),
    "CAPI": ("Compiler", "Runtime", "Target", "Tools"),
}
# Room -> the only header it may take from a room that it may name.
CPP_ONLY = {("Runtime", "Target"): "lacis/Target/Artifact.h"}
# Rooms and folders -> headers from outside that they must not see.
CPP_FOREIGN = {
    "lib/Runtime": r"(mlir|torch|ATen|c10)/",
    "include/lacis/Runtime": r"(mlir|torch|ATen|c10)/",
    "include/lacis-c": r"(mlir|llvm|torch|ATen|c10|lacis)/",
    "include/lacis/Target/Artifact.h": r"(mlir|torch)/",
    "python/bindings": r"(mlir|llvm|torch|ATen|c10|lacis)/",
    "python/ops": r"(mlir|llvm|ATen|c10|lacis|pybind11)/",
    "python/node": r"(mlir|llvm|lacis|lacis-c|pybind11)/",
    "lib": r"(torch|ATen|c10|pybind11)/",
}

# The folders of Transforms in the order of the stages; each includes only what is left of it, and the last alone names
# NVVM.
STAGES = ["Algebra", "Loops", "Tiles", "Buffers", "Machine"]

# The Python rooms in the order of the data; each imports only what is left of it.
PYTHON_ORDER = [
    "errors",
    "knobs",
    "formats",
    "patterns",
    "sparsifiers",
    "packing",
    "schedule",
    "operators",
    "activations",
    "capture",
    "emit",
    "nn",
    "runtime",
    "training",
    "attentions",
    "compat",
    "hf",
]
# Imports inside a function that are let through, each with its reason; none is needed.
PYTHON_LAZY: set = set()


def includes(path):
    return re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', path.read_text(), re.MULTILINE)


def sources(root, *folders):
    for folder in folders:
        place = root / folder
        files = [place] if place.is_file() else sorted(place.rglob("*")) if place.exists() else []
        yield from (f for f in files if f.suffix in (".h", ".cpp", ".td", ".inc"))


def room_of(path):
    """The longest room that a path below include/lacis or lib lies in."""
    fits = [room for room in CPP_ROOMS if path == room or path.startswith(room + "/")]
    return max(fits, key=len, default=None)


def cpp_violations(root):
    found = []
    for base in ("include/lacis", "lib"):
        for path in sources(root, base):
            room = room_of(str(path.relative_to(root / base)))
            for header in includes(path):
                if header.startswith("lacis/"):
                    other = room_of(header[len("lacis/") :])
                    only = CPP_ONLY.get((room, other), header)
                    if room and other and other != room and (other not in CPP_ROOMS[room] or only != header):
                        found.append(f"{path.relative_to(root)}: {room} includes {header}")
    for folder, pattern in CPP_FOREIGN.items():
        for path in sources(root, folder):
            found += [f"{path.relative_to(root)}: includes {h}" for h in includes(path) if re.match(pattern, h)]
    return found


def stage_violations(root):
    """No stage knows of a later one, and one alone of a machine's instructions."""
    found, base = [], root / "lib/Transforms"
    for path in sources(root, "lib/Transforms"):
        stage = path.relative_to(base).parts[0]
        if stage not in STAGES:
            continue
        for header in includes(path):
            target = (path.parent / header).resolve()
            other = target.relative_to(base.resolve()).parts[0] if target.is_relative_to(base.resolve()) else stage
            if other in STAGES[STAGES.index(stage) + 1 :] or ("NVVM" in header and stage != STAGES[-1]):
                found.append(f"{path.relative_to(root)}: {stage} includes {header}")
    return found


def level_words(root):
    """The names of level kinds and of the arrays that they store."""
    levels = root / "include/lacis/Dialect/Lacis/Levels/Levels.td"
    kinds = r'def Lacis_\w+ : Lacis_(?:Extent|Coordinate|Kind)<"\w+", "(\w+)"'
    found = set(re.findall(kinds, levels.read_text())) if levels.exists() else set()
    for path in sources(root, "lib/Dialect/Lacis/Levels"):
        found.update(re.findall(r'(?:\{|load\()"(\w+)",', path.read_text()))
    return found


def literal_violations(root):
    """Passes ask the object: no string of theirs is the name of a level kind or of an array."""
    found, words = [], level_words(root)
    for path in sources(root, "include/lacis/Transforms", "lib/Transforms"):
        text = re.sub(r"//.*|#include.*", "", path.read_text())
        found += [f"{path.relative_to(root)}: says {m}" for m in re.findall(r'"(\w+)"', text) if m in words]
    return found


def name_violations(root):
    """Passes ask the object: they name no level kind and no step."""
    found = []
    kinds = "|".join(p.stem for p in sources(root, "lib/Dialect/Lacis/Levels", "lib/Dialect/Lacis/Steps"))
    for path in sources(root, "include/lacis/Transforms", "lib/Transforms"):
        text = re.sub(r'//.*|"(?:[^"\\]|\\.)*"', "", path.read_text())
        found += [
            f"{path.relative_to(root)}: names {m}" for m in re.findall(rf"\b(?:{kinds})(?:Attr|Step)\b", text) if kinds
        ]
    return found


def python_imports(path, top_level_only):
    """The rooms of lacis that a file imports: by name, relative to itself, or by a string (`import_module`)."""
    tree = ast.parse(path.read_text())
    for node in tree.body if top_level_only else ast.walk(tree):
        for name in imported(node, path):
            parts = name.split(".")
            if parts[0] == "lacis" and len(parts) > 1:
                yield parts[1]


def imported(node, path):
    """The full names of the modules that a statement or a call imports, and of what it takes from them."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        here = path.parts[len(path.parts) - path.parts[::-1].index("lacis") - 1 :]
        start = [".".join(here[: -node.level])] if node.level else []
        module = ".".join([*start, *([node.module] if node.module else [])])
        return [f"{module}.{alias.name}" for alias in node.names]
    called = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
    return [a.value for a in node.args if isinstance(a, ast.Constant)] if called == "import_module" else []


def python_violations(root):
    found = []
    package = root / "python/lacis"
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        if room not in PYTHON_ORDER:
            continue
        for other in python_imports(path, top_level_only=False):
            lazy = (room, other) in PYTHON_LAZY and other not in python_imports(path, top_level_only=True)
            known = other in PYTHON_ORDER or other.startswith("_")
            to_the_right = other in PYTHON_ORDER and PYTHON_ORDER.index(other) > PYTHON_ORDER.index(room)
            extension = other in ("_core", "_ops") and room != "runtime"
            if known and not lazy and (to_the_right or extension):
                found.append(f"{path.relative_to(root)}: {room} imports lacis.{other}")
    return found


@pytest.mark.parametrize(
    "check", [cpp_violations, stage_violations, name_violations, literal_violations, python_violations]
)
def test_direction_rules(check):
    assert check(ROOT) == []


PLANTED = {
    "lib/Dialect/Lacis/IR/A.cpp": ('#include "lacis/Transforms/Passes.h"', cpp_violations),
    "lib/Dialect/Lacis/Levels/A.cpp": ('#include "lacis/Dialect/Lacis/Steps/Steps.h"', cpp_violations),
    "lib/Dialect/Lacis/Steps/A.cpp": ('#include "lacis/Schedules/Rule.h"', cpp_violations),
    "lib/Transforms/Loops/B.cpp": ('#include "lacis/Schedules/Rule.h"', cpp_violations),
    "lib/Schedules/A.cpp": ('#include "lacis/Transforms/Passes.h"', cpp_violations),
    "lib/Transforms/A.cpp": ('#include "lacis/Dialect/Lacis/Levels/Var.h"', cpp_violations),
    "lib/Transforms/Loops/A.cpp": ('#include "../Buffers/Addressing.h"', stage_violations),
    "lib/Transforms/Buffers/A.cpp": ('#include "mlir/Dialect/LLVMIR/NVVMDialect.h"', stage_violations),
    "lib/Runtime/A.cpp": ('#include "mlir/IR/Builders.h"', cpp_violations),
    "lib/Runtime/B.cpp": ('#include "lacis/Target/Target.h"', cpp_violations),
    "python/bindings/a.cpp": ("#include <llvm/ADT/StringRef.h>", cpp_violations),
    "python/ops/a.cpp": ("#include <ATen/ATen.h>", cpp_violations),
    "python/node/a.cpp": ('#include "lacis-c/lacis.h"', cpp_violations),
    "lib/Transforms/B.cpp": ("auto kind = dyn_cast<VarAttr>(level);", name_violations),
    "lib/Transforms/C.cpp": ('Value lo = level.load("pos", parent); // and "pos" again', literal_violations),
    "python/lacis/schedule/a.py": ("from lacis.emit import module", python_violations),
    "python/lacis/formats/a.py": ("def f():\n    from lacis import packing", python_violations),
    "python/lacis/nn/a.py": ("import lacis._core", python_violations),
    "python/lacis/nn/b.py": ("from ..runtime.compile import load", python_violations),
    "python/lacis/nn/c.py": ("import_module('lacis.runtime.compile')", python_violations),
}


@pytest.mark.parametrize("file", PLANTED)
def test_fires_on_a_planted_violation(tmp_path, file):
    (tmp_path / "lib/Dialect/Lacis/Levels").mkdir(parents=True)
    (tmp_path / "lib/Dialect/Lacis/Levels/Var.cpp").write_text('return {{"pos", getPos()}};')
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    text, check = PLANTED[file]
    path.write_text(text + "\n")
    assert len(check(tmp_path)) == 1 and file in check(tmp_path)[0]


def test_words_of_levels_are_known():
    assert level_words(ROOT) >= {"var", "fixed", "crd", "bitmap", "link", "pos", "bits", "code", "lo", "hi"}


def test_import_is_quiet():
    """`import lacis` starts no thread, touches no CUDA and writes nothing."""
    script = """
import threading, sys, os
import torch
before = threading.active_count()
writes = []
sys.addaudithook(lambda event, a: writes.append(a[0]) if event == "open" and isinstance(a[1], str)
                 and set(a[1]) & set("wxa+") and "__pycache__" not in str(a[0]) else None)
import lacis
assert threading.active_count() == before, threading.enumerate()
assert not torch.cuda.is_initialized()
assert not writes, writes
assert "lacis._core" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, env=None)


def test_sizes():
    """The limits of the style: lines a file, characters a line of Python."""
    limits = {".cpp": 400, ".h": 400, ".py": 300, ".mlir": 120}
    folders = [ROOT / f for f in ("include", "lib", "python", "tools", "test", "examples", "bench")]
    files = [f for folder in folders for f in folder.rglob("*") if f.suffix in limits]
    long = [f"{f.relative_to(ROOT)}: {n}" for f in files if (n := len(f.read_text().splitlines())) > limits[f.suffix]]
    assert long == []
    wide = [
        f"{f.relative_to(ROOT)}:{n}"
        for f in files
        for n, line in enumerate(f.read_text().splitlines(), 1)
        if f.suffix == ".py" and len(line) > 120
    ]
    assert wide == []
