# SPDX-License-Identifier: Apache-2.0
"""Stages of kernels as text, and mutations of them: what a tool meets when somebody edits what it has printed."""

from __future__ import annotations

import functools
import pathlib
import re
import shutil
import subprocess
import sys

import torch
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.formats import decompose

import lacis

OPT = shutil.which("lacis-opt", path=pathlib.Path(sys.executable).parent) or shutil.which("lacis-opt")
TESTS = pathlib.Path(__file__).resolve().parents[1]
SECONDS = 60  # for one text on a busy machine; the slowest takes one second
STAGES = ("lacis", "loops", "tiles", "buffers", "target")
TARGETS = ("target=cpu", "target=cuda arch=sm_90a", "target=cuda arch=sm_80")

# A number, a name with its sigil, text, a word with dots, or one character.
TOKEN = re.compile(r'-?\d+(?:\.\d+)?|[%#!@^][\w.]+|"[^"\n]*"|[A-Za-z_][\w.]*|[^\s\w]')
NUMBERS = ("0", "1", "-1", "2", "3", "7", "33", "1000", "5984", "2147483648", "4294967296", "9223372036854775807")


def run(text, *passes):
    """What lacis-opt makes of a text; more than `SECONDS` raise."""
    command = [OPT, "-", "-allow-unregistered-dialect", *passes]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS, errors="replace")


@functools.cache
def _kernels():
    """Algebra of products of several families."""
    w, x = torch.zeros(128, 128), torch.zeros(64, 128)
    half = {"dtype": torch.bfloat16}
    two = lacis.pack(w, decompose(ell=lacis.Ell(width=2), rest=lacis.Coo))
    operands = [
        ("ij,bj->bi", [lacis.pack(w, lacis.Csr), x]),
        ("ij,bj->bi", [lacis.pack(w.to(**half), lacis.Bsr(64, 64)), x.to(**half)]),
        ("ij,jk->ik", [lacis.pack(w, lacis.Coo), torch.zeros(128, 32)]),
        ("ij,jk->ik", [two, torch.zeros(128, 32)]),
        ("ij,bi->bj", [lacis.pack(w.to(**half), lacis.Bsr(32, 32)), x.to(**half)]),
        ("ij,ik,jk->ij", [lacis.pack(w, lacis.Csc).pattern, torch.zeros(128, 32), torch.zeros(128, 32)]),
    ]
    return [emit(capture_einsum(expression, tensors)[0]) for expression, tensors in operands]


@functools.cache
def _printed(kernel, target, stage):
    """A stage of a kernel as lacis-opt prints it, and the pass that takes it on; None where there is no such stage."""
    after = STAGES[STAGES.index(stage) + 1] if stage != STAGES[-1] else stage
    made = run(_kernels()[kernel], *([f"-lacis-to-{stage}={target}"] if stage != STAGES[0] else []))
    return (made.stdout, (f"-lacis-to-{after}={target}",)) if made.returncode == 0 else None


@functools.cache
def _written():
    """The texts of the lit tests with the passes that they name."""
    texts = []
    for path in sorted(TESTS.glob("[A-Z]*/*.mlir")):
        text = path.read_text()
        found = re.search(r"RUN: lacis-opt %s( [^|\n]*)", text)
        if found:
            passes = tuple(part.replace('"', "") for part in re.findall(r'-lacis-[^ "]*(?:"[^"]*")?', found[1]))
            texts += [(re.sub(r"^ *//.*\n", "", chunk, flags=re.M), passes) for chunk in text.split("// -----")]
    return texts


@functools.cache
def _is_taken(text, passes):
    return run(text, *passes).returncode == 0


def draw(random):
    """A text and passes that take it; a change of what is refused already says less."""
    while True:
        if random.randrange(2):
            found = _printed(random.randrange(len(_kernels())), random.choice(TARGETS), random.choice(STAGES))
        else:
            found = random.choice(_written())
        if found and _is_taken(*found):
            return found


def _other(token, tokens, random):
    """A token of the same kind: another number, or a name that stands elsewhere."""
    if re.match(r"-?\d", token):
        return random.choice(NUMBERS)
    kind = token[0] if token[0] in '%#!@^"' else "."
    same = [other for other in tokens if other[0] == kind or (kind == "." and other[0].isalpha() == token[0].isalpha())]
    return random.choice(same or tokens)


def _change_line(text, random):
    lines = text.splitlines()
    first, second = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(3)
    if kind == 0:
        del lines[first]
    elif kind == 1:
        lines.insert(second, lines[first])
    else:
        lines[first], lines[second] = lines[second], lines[first]
    return "\n".join(lines)


def _change_token(text, random):
    places = list(TOKEN.finditer(text))
    if not places:
        return text
    place, kind = random.choice(places), random.randrange(8)
    token = place[0]
    new = {0: "", 1: f"{token} {token}"}.get(kind) if kind < 2 else _other(token, [p[0] for p in places], random)
    return text[: place.start()] + new + text[place.end() :]


def mutate(text, random):
    """One to three changes: of a token in most cases, else of a line."""
    for _ in range(random.choice((1, 1, 2, 3))):
        text = (_change_line if text.strip() and random.randrange(6) == 0 else _change_token)(text, random)
    return text
