# SPDX-License-Identifier: Apache-2.0
"""The schema of derived arrays, as the compiler has it: parameters of the declarations, arrays of some kernels."""

import dataclasses
import json
import pathlib
import shutil
import subprocess

import torch

import lacis
from lacis import _core
from lacis.capture import capture_einsum
from lacis.capture.gradient import gradient_specs
from lacis.emit import emit

ROOT = pathlib.Path(__file__).resolve().parent.parent
LLVM = pathlib.Path("/usr/lib/llvm-22")
SHAPE = (520, 776)


def parameters() -> dict[str, dict[str, bool]]:
    """For each function its parameters, and whether each must be given."""
    installed = LLVM / "bin/llvm-tblgen"  # another on the path may be older
    tool = installed if installed.exists() else shutil.which("llvm-tblgen")
    file = ROOT / "include/lacis/Dialect/Lacis/IR/LacisAttrs.td"
    command = [tool, "--dump-json", "-I", ROOT / "include", "-I", LLVM / "include", file]
    records = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    found = {}
    for name in records["!instanceof"]["AttrDef"]:
        record = records[name]
        if "Lacis_Derived" in record["!superclasses"]:
            args = record["parameters"]["args"]
            found[record["mnemonic"]] = {argument: isinstance(kind, str) for kind, argument in args}
    return dict(sorted(found.items()))


def kernels() -> list[dict]:
    """What some default kernels take: the format of the operand, its dtype, and the steps with their arrays."""
    found = []
    for format, uneven, slots in (
        (lacis.Bsr(64, 64), (), ("", "1", "values")),
        (lacis.Bsr(64, 64), ("i",), ("",)),
        (lacis.Bsr(16, 16), (), ("", "1", "values")),
        (lacis.Bsr(128, 128), (), ("",)),
        (lacis.Csr(), (), ("1", "values")),
        (lacis.Csr(), ("i",), ("",)),
    ):
        packed = lacis.pack(torch.ones(SHAPE, dtype=torch.bfloat16), format)
        spec, _ = capture_einsum("ij,bj->bi", [packed, torch.zeros(300, SHAPE[1]).bfloat16()], None, kind="cuda")
        specs = {"": spec} | {str(slot): each for slot, each in gradient_specs(spec).items()}
        for slot in slots:
            text = emit(dataclasses.replace(specs[slot], uneven=uneven))
            compiled = _core.compile(text, "cuda:sm_90a", {"to": "ptx"})
            steps = _core.artifact_info(compiled.artifact).get("derived", [])
            if steps:
                found.append({"operand": str(format), "dtype": "bfloat16", "derived": steps})
    return found


def schema() -> str:
    """The text of `python/lacis/patterns/derived.json`."""
    return _indented({"functions": parameters(), "kernels": kernels()}) + "\n"


def _indented(value, depth: int = 0) -> str:
    """JSON with a line for each parameter and for each array."""
    if depth == 6 or not value or not isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True)
    names = [f"{json.dumps(name)}: " for name in sorted(value)] if isinstance(value, dict) else [""] * len(value)
    parts = [value[name] for name in sorted(value)] if isinstance(value, dict) else value
    lines = [f"{' ' * (depth + 1)}{name}{_indented(part, depth + 1)}" for name, part in zip(names, parts)]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return first + "\n" + ",\n".join(lines) + "\n" + " " * depth + last
