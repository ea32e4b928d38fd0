# SPDX-License-Identifier: Apache-2.0
"""Reads what the assembler made of a kernel: which loads from shared memory an arrive at a barrier may pass."""

from __future__ import annotations

import glob
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile

from lacis.runtime import ptxas

_LABEL = re.compile(r"^(\.L_x_\d+):")
_GUARD = r"(?:@!?(?P<guard>U?P\w+) +)?"
_LINE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+" + _GUARD + r"(?P<name>[A-Z]\w*(?:\.\w+)*)\s*(?P<operands>[^;]*);")
_REGISTER = re.compile(r"\bR(\d+)\b")
_LOADS, _NO_RESULT = ("LDSM", "LDS"), ("ST", "SYNCS", "RED", "BAR", "BRA", "WARPSYNC", "CCTL", "MEMBAR")
_BRANCHES, _LEAVES = ("BRA", "BRX", "JMP"), ("BRA", "BRX", "JMP", "EXIT", "RET")


def disassembler() -> str | None:
    """`nvdisasm` of the PATH, the CUDA toolkit, or its wheel."""
    spec = importlib.util.find_spec("nvidia")
    wheels = [os.path.join(root, "cu*/bin/nvdisasm") for root in (spec.submodule_search_locations if spec else ())]
    found = [shutil.which("nvdisasm"), "/usr/local/cuda/bin/nvdisasm", *(p for w in wheels for p in glob.glob(w))]
    return next((path for path in found if path and os.access(path, os.X_OK)), None)


def disassemble(ptx: str) -> str:
    """The instructions of all kernels of a text."""
    target = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)[1]
    with tempfile.TemporaryDirectory() as folder:
        text, code = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "kernel.cubin")
        with open(text, "w") as file:
            file.write(ptx)
        subprocess.run([ptxas.find(), "-O3", f"-arch={target}", text, "-o", code], check=True, capture_output=True)
        return subprocess.run([disassembler(), code], check=True, capture_output=True, text=True).stdout


class Instruction:
    """`name` with its suffixes; of a group of registers that it reads, the first; where it may go but on."""

    def __init__(self, found: re.Match):
        self.name, operands = found["name"], found["operands"].strip()
        self.text = f"{self.name} {operands}"
        self.kind = self.name.split(".")[0]
        self.targets = re.findall(r"\.L_x_\d+", found[0]) if self.kind in _BRANCHES else []
        is_plain = re.fullmatch(r"(`\(\.L_x_\d+\))?|R\d+ -?0x[0-9a-f]+.*", operands) is not None
        self.leaves = self.kind in _LEAVES and found["guard"] is None and is_plain
        first, _, others = operands.removeprefix("PT, " if self.kind == "SHFL" else "").partition(",")
        has_result = not self.kind.startswith(_NO_RESULT) and re.fullmatch(r"R\d+(\.\w+)*", first.strip())
        self.reads = set(map(int, _REGISTER.findall(others if has_result else operands)))
        self.writes: set[int] = set()
        if has_result:
            base, width = int(first[1:].split(".")[0]), self.name.rsplit(".", 1)[-1]
            count = int(width) if width.isdigit() else 1
            self.writes = set(range(base, base + (count if self.kind == "LDSM" else max(1, count // 32))))

    @property
    def is_load(self) -> bool:
        return self.kind in _LOADS

    @property
    def is_arrive(self) -> bool:
        """Of a thread at a barrier in shared memory: not of copies, and not of a warpgroup at its products."""
        return self.name.startswith(("SYNCS.ARRIVE", "ATOMS.ARRIVE"))


def _parse(section: str) -> tuple[list[Instruction], dict[str, int]]:
    code, labels = [], {}
    for line in section.splitlines():
        if label := _LABEL.match(line.strip()):
            labels[label[1]] = len(code)
        elif found := _LINE.search(line):
            code.append(Instruction(found))
    return code, labels


def passed_loads(text: str) -> list[str]:
    """Loads whose registers are read after an arrive, and never before it, on any path: `load -> arrive`."""
    return [each for section in text.split(".section\t.text.")[1:] for each in _passed(*_parse(section))]


def _passed(code: list[Instruction], labels: dict[str, int]) -> list[str]:
    """Follows every path with the loads that are under way, each with the arrive that has passed it, if any."""
    found, known, work = set(), {}, [(0, frozenset())]
    while work:
        at, pending = work.pop()
        while at < len(code) and not (at in known and pending <= known[at]):
            known[at] = pending = pending | known.get(at, frozenset())
            one = code[at]
            found.update((n, arrive) for n, arrive in pending if arrive is not None and code[n].writes & one.reads)
            pending = {(n, arrive) for n, arrive in pending if not code[n].writes & (one.reads | one.writes)}
            if one.is_arrive:
                pending = {(n, at if arrive is None else arrive) for n, arrive in pending}
            pending = frozenset(pending | {(at, None)} if one.is_load and one.writes else pending)
            work += [(labels[label], pending) for label in one.targets]
            if one.leaves:
                break
            at += 1
    return sorted(f"{code[n].text} -> {code[arrive].text}" for n, arrive in found)
