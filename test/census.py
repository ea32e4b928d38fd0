# SPDX-License-Identifier: Apache-2.0
"""Code of about 700 default kernels, one line each, without a GPU: what a change of the compiler has changed.

    python test/census.py write NEW [--targets cpu cuda:sm_90a] [--only WORD] [--assemble]
    python test/census.py compare OLD NEW

`write` compiles each kernel for each target and writes a hash of the assembler's input. `--assemble` adds what ptxas
makes of it: registers, barriers, spilled bytes, and count and hash of the opcodes from the first product to the last.
`compare` lists the kernels that are not in both files alike, and fails where there are any.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import functools
import hashlib
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import torch

import lacis
from lacis import _core
from lacis.attentions.fused_kernels import Kernels
from lacis.attentions.walks import by_columns
from lacis.capture import capture_einsum
from lacis.capture.gradient import gradient_specs
from lacis.emit import emit, emit_chain
from lacis.runtime import ptxas
from lacis.runtime.chain import rolls_on

TARGETS = ("cuda:sm_90a", "cuda:sm_80", "cuda:sm_89")
ROWS, COLUMNS, TOKENS = 512, 768, 300
SQUARE = [(128, 128), (64, 64), (32, 32), (16, 16), (8, 8)]
BLOCKS = [*SQUARE, (128, 64), (64, 128), (64, 16), (16, 64), (32, 16), (16, 32), (16, 128)]
CHAINS = [(128, 128), (64, 64), (64, 16), (16, 16)]
UNEVEN = [(), ("i",), ("j",), ("i", "j")]
HALF, SINGLE = torch.bfloat16, torch.float32
FORMATS = {"Bsr": lacis.Bsr, "Bcsc": lacis.Bcsc, "BlockedEll": functools.partial(lacis.BlockedEll, width=3)}
PARTS = lacis.formats.decompose(ell=lacis.BlockedEll(64, 64, width=2), rest=lacis.Bsr(64, 64))
PLAIN = [lacis.Csr(), lacis.Csc(), lacis.Coo(), lacis.Dcsr(), lacis.Ell(64), lacis.Bsr(4, 4)]
AFTER = ("relu", "gelu", "silu", "scale", "bias")
ROLLS = "by its target"
HAND = pathlib.Path(__file__).parent / "Tiles"
PRODUCTS = (0x9F0, 0x23C)
"""The opcodes of HGMMA and HMMA. An instruction has 16 bytes; the lowest 12 bits of the first 8 are its opcode."""


def packed(format, block, dtype, kept, rows=ROWS, columns=COLUMNS) -> lacis.PackedTensor:
    """A weight with `kept` blocks in each row of blocks, the same ones in each run."""
    grid = -(-rows // block[0]), -(-columns // block[1])
    order = torch.rand(grid, generator=torch.Generator().manual_seed(0)).argsort(1)
    mask = (order < kept).repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:rows, :columns]
    return lacis.pack(mask.to(dtype), format, mask=mask)


def products(weight, **given) -> dict:
    """The specifications of a linear layer: the product, and where it has no epilogue its gradients."""
    x = torch.zeros(TOKENS, weight.shape[1], dtype=weight.dtype)
    spec, _ = capture_einsum("ij,bj->bi", [weight, x], None, kind="cuda", **given)
    spec = dataclasses.replace(spec, tf32=weight.dtype == SINGLE and bool(weight.format.tile))
    return {"forward": spec} | ({} if given else {f"d{slot}": each for slot, each in gradient_specs(spec).items()})


def epilogue(after: str) -> lacis.Epilogue:
    """A scale, or a bias and what follows it; behind SiLU a residual too."""
    if after == "scale":
        return lacis.Epilogue(scale=torch.zeros((), dtype=HALF))
    residual = torch.zeros(TOKENS, ROWS, dtype=HALF) if after == "silu" else None
    activation = None if after == "bias" else after
    return lacis.Epilogue(bias=torch.zeros(ROWS, dtype=HALF), bias_axis="i", activation=activation, residual=residual)


def of_blocks():
    """Names and specifications of kernels for stored blocks."""
    for block in BLOCKS:
        shape = f"{block[0]}x{block[1]}"
        for name, format in FORMATS.items():
            for dtype in (HALF, SINGLE)[: 1 + (name == "Bsr")]:
                for what, spec in products(packed(format(*block), block, dtype, 3)).items():
                    for uneven in UNEVEN[: None if name == "Bsr" else 1]:
                        label = f"{what} {name} {shape} {str(dtype)[6:]} uneven={''.join(uneven) or 'none'}"
                        yield label, dataclasses.replace(spec, uneven=uneven)
        for after in AFTER:
            spec = products(packed(lacis.Bsr(*block), block, HALF, 3), epilogue=epilogue(after))["forward"]
            for uneven in UNEVEN[:2]:
                label = f"forward {after} Bsr {shape} uneven={''.join(uneven) or 'none'}"
                yield label, dataclasses.replace(spec, uneven=uneven)
        for kept, size in ((1, (520, 2408)), (99, (512, 768)), (3, (500, 700))):
            for what, spec in products(packed(lacis.Bsr(*block), block, HALF, kept, *size)).items():
                yield f"{what} Bsr {shape} {size[0]}x{size[1]} kept={kept}", spec


def others():
    """Half types, dense matrices, sums, kernels without tensor cores."""
    for block in SQUARE:
        for what, spec in products(packed(lacis.Bsr(*block), block, torch.float16, 3)).items():
            yield f"{what} Bsr {block[0]}x{block[1]} float16", spec
    for what, spec in products(packed(lacis.Dense(), (64, 64), HALF, 99)).items():
        yield f"{what} Dense", spec
    weight = packed(PARTS, (64, 64), HALF, 4)
    yield "forward of a sum", capture_einsum("ij,bj->bi", [weight, torch.zeros(TOKENS, COLUMNS).to(HALF)], None)[0]
    for format in PLAIN:
        for dtype in (SINGLE, HALF):
            for what, spec in products(packed(format, (1, 1), dtype, 40)).items():
                yield f"{what} {type(format).__name__} {str(dtype)[6:]}", dataclasses.replace(spec, tf32=False)


def of_chains():
    """Names and texts of attention over stored blocks and of its gradients, a kernel each, as statements of tiles."""
    kernels = Kernels("h", "h", 0.125, ("read", 0), ())
    gradients = [kernels.gradient(what, (True, ())) for what in ("rows", "columns")]
    for block in CHAINS:
        mask = torch.ones(512, 512, dtype=torch.bool)
        pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(*block))
        rows, columns = (each.batched((2,), "h") for each in (pattern, by_columns(pattern)))
        for depth in (64, 128):
            x, numbers = torch.zeros(2, 512, depth, dtype=HALF), torch.zeros(2, 512)
            given = [(x, x, x, rows), *((x, x, x, numbers, x, numbers, side) for side in (rows, columns))]
            for what, chain, own in zip(("attention", "dq", "dk, dv"), (kernels.attention, *gradients), given):
                spec = dataclasses.replace(chain._traced(own, (), "cuda")[0], rolls=ROLLS)
                yield f"{what} Bsr {block[0]}x{block[1]} heads of {depth}", emit_chain(spec)


def texts() -> dict[str, str]:
    """What is compiled, by name: default kernels, and those of `test/Tiles`, which are written by hand."""
    found = {name: emit(spec) for make in (of_blocks, others) for name, spec in make()}
    found |= {f"{path.stem} by hand": path.read_text() for path in sorted(HAND.glob("*.mlir"))}
    return found | dict(of_chains())


def code_of(cubin: bytes) -> dict[str, bytes]:
    """The functions of an ELF file by the names of their sections."""
    table, size, count, names = (*struct.unpack_from("<Q", cubin, 40), *struct.unpack_from("<HHH", cubin, 58))
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + n * size) for n in range(count)]
    start = sections[names][4]
    found = {}
    for name, _, _, _, offset, length in sections:
        label = cubin[start + name : cubin.index(b"\0", start + name)].decode()
        if label.startswith(".text."):
            found[label] = cubin[offset : offset + length]
    return found


def opcodes(cubin: bytes) -> tuple[int, str]:
    """How many opcodes there are from the first to the last product of each function, of all where it has none."""
    digest, total = hashlib.sha256(), 0
    for _, code in sorted(code_of(cubin).items()):
        words = [word & 0xFFF for word, _ in struct.iter_unpack("<QQ", code)]
        at = [n for n, word in enumerate(words) if word in PRODUCTS] or [0, len(words) - 1]
        digest.update(repr(words[at[0] : at[-1] + 1]).encode())
        total += at[-1] + 1 - at[0]
    return total, digest.hexdigest()[:12]


def assembled(ptx: bytes, target: str) -> str:
    """What ptxas says of a kernel, the most of its functions, and its opcodes."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = pathlib.Path(folder, "a.ptx"), pathlib.Path(folder, "a.cubin")
        source.write_bytes(ptx)
        command = [ptxas.find(), f"-arch={target.partition(':')[2]}", "-v", str(source), "-o", str(cubin)]
        log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        count, found = opcodes(cubin.read_bytes())
    most = lambda pattern: max(map(int, re.findall(pattern, log)), default=0)
    words = {"registers": r"Used (\d+) registers", "barriers": r"used (\d+) barriers", "spilled": r"(\d+) bytes spill"}
    return " ".join(f"{name}={most(pattern)}" for name, pattern in words.items()) + f" opcodes={count}:{found}"


def line(name: str, text: str, target: str, assemble: bool) -> str:
    """The entry of one kernel, or why there is none."""
    try:
        code = _core.artifact_code(_core.compile(text, target, {"to": "asm" if target == "cpu" else "ptx"}).artifact)
    except lacis.CompileError:
        return f"{target}\t{name}\trefused"
    found = f"{target}\t{name}\tcode={hashlib.sha256(code).hexdigest()[:12]}"
    return f"{found} {assembled(code, target)}" if assemble and target != "cpu" else found


def write(path: str, targets, only: str, assemble: bool, part: range | None = None) -> None:
    """The entries of the kernels whose names hold `only`, or of those whose numbers are in `part`."""
    found = {name: text for name, text in texts().items() if only in name}
    kernels = [
        (name, text.replace(ROLLS, rolls_on(target)), target) for name, text in found.items() for target in targets
    ]
    kernels = kernels if part is None else [kernels[n % len(kernels)] for n in part]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        lines = list(pool.map(lambda each: line(*each, assemble), kernels))
    head = f"# {len(lines)} kernels" + (f", {ptxas.version(ptxas.find())}" if assemble else "")
    pathlib.Path(path).write_text("\n".join([head, *lines]) + "\n")


def read(path: str) -> dict[str, dict[str, str]]:
    """Target and name to what the entry says."""
    entries = [each.split("\t") for each in pathlib.Path(path).read_text().splitlines() if not each.startswith("#")]
    return {
        f"{target} {name}": dict(word.partition("=")[::2] for word in words.split()) for target, name, words in entries
    }


def compare(old: str, new: str) -> int:
    """Prints kernels that differ, and how many agree in what; how many do not."""
    one, other = read(old), read(new)
    both = [name for name in one if name in other]
    differing = [name for name in both if one[name] != other[name]]
    missing = sorted(one.keys() ^ other.keys())
    for name in differing:
        said = [key for key in one[name] | other[name] if one[name].get(key) != other[name].get(key)]
        print(name + ":", ", ".join(f"{key} {one[name].get(key)} -> {other[name].get(key)}" for key in said))
    for name in missing:
        print(f"{name}: only in {old if name in one else new}")
    for key in ("code", "opcodes", "registers", "barriers", "spilled"):
        known = [name for name in both if key in one[name] and key in other[name]]
        print(f"{key}: {sum(one[name][key] == other[name][key] for name in known)} of {len(known)} equal")
    return len(differing) + len(missing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writer = commands.add_parser("write", help="compile, and write one line a kernel")
    writer.add_argument("path")
    writer.add_argument("--targets", nargs="+", default=TARGETS)
    writer.add_argument("--only", default="", help="kernels whose names hold this")
    writer.add_argument("--assemble", action="store_true", help="with ptxas")
    comparer = commands.add_parser("compare", help="two files")
    comparer.add_argument("old")
    comparer.add_argument("new")
    given = parser.parse_args()
    if given.command == "compare":
        sys.exit(compare(given.old, given.new) != 0)
    write(given.path, given.targets, given.only, given.assemble)


if __name__ == "__main__":
    main()
