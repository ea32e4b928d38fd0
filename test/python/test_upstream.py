# SPDX-License-Identifier: Apache-2.0
"""The arrays of exported formats, multiplied by the sparsifier of upstream MLIR, which shares no code with Lacis."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys

import lacis
import pytest
import torch
from lacis.packing import pack

OPT = shutil.which("lacis-opt", path=pathlib.Path(sys.executable).parent) or shutil.which("lacis-opt")
TOOLS = [shutil.which(f"{name}-22") or shutil.which(name) for name in ("mlir-opt", "mlir-runner")]
UTILITIES = next(pathlib.Path("/usr/lib/llvm-22/lib").glob("libmlir_c_runner_utils.so"), None)
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(OPT is None or UTILITIES is None or None in TOOLS, reason="upstream MLIR is not installed"),
]
FORMATS = {
    "rows": "(i, j) -> (i : dense, j : compressed)",
    "columns": "(i, j) -> (j : dense, i : compressed)",
    "rows that are listed": "(i, j) -> (i : compressed, j : compressed)",
    "coordinates": "(i, j) -> (i : compressed<unique=false>, j : singleton)",
    "wide": "(i, j) -> (i : dense, j : compressed<pos=i64, crd=i64>)",
    "narrow": "(i, j) -> (i : compressed<pos=i16, crd=i8>, j : compressed<pos=i16, crd=i8>)",
    "blocks": "(i, j) -> (i floordiv 3 : dense, j floordiv 5 : compressed, i mod 3 : dense, j mod 5 : dense)",
    "loose": "(i, j) -> (i : dense, j : var2*crd)",
    "two of four": "(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured<2>)",
}
# Coordinates of codes have no width in the encoding.
ELEMENTS = {
    torch.float64: "f64",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "index",
}
PROGRAM = """
#format = {encoding}
#trait = {{
  indexing_maps = [affine_map<({letters}) -> ({letters})>, affine_map<({letters}) -> (j)>,
                   affine_map<({letters}) -> ({rows})>],
  iterator_types = [{iterators}"reduction"]
}}
func.func @main() {{
{constants}
  %a = sparse_tensor.assemble ({names}), %values : ({types}), {values} to tensor<{shape}xf64, #format>
  %zero = arith.constant dense<0.0> : tensor<{sizes}xf64>
  %y = linalg.generic #trait ins(%a, %x : tensor<{shape}xf64, #format>, tensor<{columns}xf64>)
      outs(%zero : tensor<{sizes}xf64>) {{
  ^bb0(%w: f64, %b: f64, %sum: f64):
    %product = arith.mulf %w, %b : f64
    %more = arith.addf %sum, %product : f64
    linalg.yield %more : f64
  }} -> tensor<{sizes}xf64>
  %first = arith.constant 0 : index
  %padding = arith.constant 0.0 : f64
  %all = vector.transfer_read %y[{firsts}], %padding : tensor<{sizes}xf64>, vector<{sizes}xf64>
  vector.print %all : vector<{sizes}xf64>
  return
}}
"""


def output_of(*command, input: str) -> str:
    result = subprocess.run(command, input=input, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout


def encoding(packed) -> str:
    """Upstream's encoding of the format, from the pass that exports it."""
    text = f"func.func private @f(tensor<{'?x' * packed.ndim}f64, {packed.pattern.typed_text}>)"
    exported = output_of(OPT, "-lacis-export-sparse-tensor", "-", input=text)
    return re.search(r"#sparse_tensor\.encoding<\{.*?\}>", exported).group()


def arrays(packed) -> list[torch.Tensor]:
    """The arrays as upstream has them: both ends of a segment side by side, a coordinate for each code.

    Below a batch each matrix has arrays of its own there.
    """
    found, heads = [], packed.shape[: len(packed.format.batch)]
    for number, level in enumerate(packed.format.prefix):
        own = {name: packed.storage.get(f"{name}{number}") for name in level.buffers()}
        if "lo" in own:
            own = {"pos": torch.stack([own["lo"], own["hi"]], 1).reshape(-1), "crd": own["crd"]}
        if "code" in own:  # of two bits
            own = {
                "crd": torch.stack([own["code"] >> shift & 3 for shift in (0, 2, 4, 6)], 1).reshape(-1).to(torch.uint8)
            }
        found += [array.reshape(-1).expand(*heads, -1) for array in own.values()]
    return found


def constant(name: str, array: torch.Tensor) -> tuple[str, str]:
    """`%name` with these elements, and its type."""
    kind = f"tensor<{by(array.shape)}x{ELEMENTS[array.dtype]}>"
    return f"  %{name} = arith.constant dense<{array.tolist()}> : {kind}", kind


def by(sizes) -> str:
    return "x".join(map(str, sizes))


def multiplied(packed, x: torch.Tensor) -> torch.Tensor:
    made = [constant(f"a{n}", array) for n, array in enumerate(arrays(packed))]
    values, vector = constant("values", packed.values), constant("x", x)
    rows = ("h", "i")[-packed.ndim + 1 :]
    program = PROGRAM.format(
        encoding=encoding(packed),
        letters=", ".join([*rows, "j"]),
        rows=", ".join(rows),
        iterators='"parallel", ' * len(rows),
        constants="\n".join(text for text, _ in (*made, values, vector)),
        names=", ".join(f"%a{n}" for n in range(len(made))),
        types=", ".join(kind for _, kind in made),
        values=values[1],
        shape=by(packed.shape),
        sizes=by(packed.shape[:-1]),
        columns=packed.shape[-1],
        firsts=", ".join(["%first"] * len(rows)),
    )
    lowered = output_of(TOOLS[0], "--sparsifier=enable-runtime-library=false", "-", input=program)
    printed = output_of(
        TOOLS[1], "--entry-point-result=void", "-e", "main", f"--shared-libs={UTILITIES}", "-", input=lowered
    )
    return torch.tensor([float(each) for each in re.findall(r"-?\d+", printed)], dtype=torch.float64).reshape(
        packed.shape[:-1]
    )


@pytest.mark.parametrize("name", FORMATS)
def test_upstream_multiplies_the_same_arrays(name):
    generator = torch.Generator().manual_seed(0)
    mask = torch.rand(12, 20, generator=generator) < 0.3
    if name == "two of four":
        mask = torch.rand(12, 5, 4, generator=generator).argsort(-1).argsort(-1).reshape(12, 20) < 2
    w = torch.randint(1, 9, mask.shape, generator=generator) * mask.double()
    x = torch.randint(-9, 9, (20,), generator=generator).double()  # whole numbers are printed whole
    packed = pack(w, FORMATS[name], mask)
    assert torch.equal(multiplied(packed, x), w @ x)
    for target in ("eager", "cpu"):
        assert torch.equal(lacis.einsum("ij,j->i", packed, x, target=target), w @ x)


def test_upstream_multiplies_each_matrix_of_a_batch():
    generator = torch.Generator().manual_seed(0)
    mask = torch.rand(7, 9, generator=generator) < 0.3
    w = torch.randint(1, 9, (3, 7, 9), generator=generator) * mask.double()
    x = torch.randint(-9, 9, (9,), generator=generator).double()
    packed = pack(w, "(h, i, j) -> (h : batch, i : dense, j : compressed)", mask.expand(3, -1, -1))
    assert torch.equal(multiplied(packed, x), w @ x)
    for target in ("eager", "cpu"):
        assert torch.equal(lacis.einsum("hij,j->hi", packed, x, target=target), w @ x)
