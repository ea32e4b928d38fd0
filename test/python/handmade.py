# SPDX-License-Identifier: Apache-2.0
"""Artifacts without the compiler: C code and a hand-written header, for tests of the runtime alone."""

import functools
import hashlib
import json
import pathlib
import shutil
import struct
import subprocess
import tempfile

CSR_LINEAR = r"""
typedef long i64;
void linear_0(const int *pos, const int *crd, const float *values, const float *x, float *y, i64 batch, i64 rows,
              i64 stride0, i64 stride1, i64 lo, i64 hi) {
  for (i64 i = lo; i < hi; i++)
    for (i64 b = 0; b < batch; b++) {
      float sum = 0;
      for (int p = pos[i]; p < pos[i + 1]; p++)
        sum += values[p] * x[b * stride0 + crd[p] * stride1];
      y[b * rows + i] = sum;
    }
}
"""


@functools.cache
def compile_c(source: str) -> bytes:
    """The object file of some C code that needs no library."""
    compiler = shutil.which("clang-22") or shutil.which("cc")
    flags = ["-O1", "-fPIC", "-ffreestanding", "-fno-stack-protector", "-fcf-protection=none"]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "k.c").write_text(source)
        subprocess.run([compiler, *flags, "-c", path / "k.c", "-o", path / "k.o"], check=True)
        return (path / "k.o").read_bytes()


def serialise(header: dict, code: bytes) -> bytes:
    """The bytes of an artifact."""
    return sealed(json.dumps(header).encode(), code)


def sealed(text: bytes, code: bytes) -> bytes:
    """The bytes of an artifact whose header is any text."""
    content = b"LACISART" + struct.pack("<Q", len(text)) + text + code
    return content + hashlib.sha256(content).digest()


def dim(arg: int) -> dict:
    return {"arg": arg}


def csr_header(**changes) -> dict:
    """The header of CSR_LINEAR: y[b, i] = sum over j of w[i, j] x[b, j]."""
    header = {
        "format_version": 5,
        "target": "cpu",
        "kind": "object",
        "args": [
            {"kind": "storage", "operand": 0, "name": "pos1"},
            {"kind": "storage", "operand": 0, "name": "crd1"},
            {"kind": "storage", "operand": 0, "name": "values"},
            {"kind": "operand", "operand": 1},
            {"kind": "output"},
            {"kind": "dim", "operand": 1, "dim": 0},
            {"kind": "dim", "operand": 0, "dim": 0},
            {"kind": "stride", "operand": 1, "dim": 0},
            {"kind": "stride", "operand": 1, "dim": 1},
        ],
        "sizes": [{"name": "b"}, {"name": "i"}, {"name": "j"}, {"name": ""}],
        "tensors": [
            {"operand": 0, "dims": [dim(1), dim(2)]},
            {"operand": 0, "name": "pos1", "dtype": "i32", "dims": [{"sum": [dim(1), 1]}]},
            {"operand": 0, "name": "crd1", "dtype": "i32", "dims": [dim(3)]},
            {"operand": 0, "name": "values", "dtype": "f32", "dims": [dim(3)]},
            {"operand": 1, "dtype": "f32", "dims": [dim(0), dim(2)]},
            {"operand": -1, "dtype": "f32", "dims": [dim(0), dim(1)]},
        ],
        "output": {"dtype": "f32", "shape": [dim(5), dim(6)]},
        "workspace": [],
        "launches": [{"entry": "linear_0", "units": dim(6)}],
        "index_bits": 32,
    }
    return {**header, **changes}


def csr_linear(**changes) -> bytes:
    return serialise(csr_header(**changes), compile_c(CSR_LINEAR))


def key_of(artifact: bytes) -> str:
    return hashlib.sha256(artifact).hexdigest()


def load(artifact: bytes) -> str:
    """Registers an artifact on the CPU; its key."""
    from lacis import _core
    from lacis.runtime import library

    library.register()
    key = key_of(artifact)
    _core.load(key, artifact)
    return key


def csr_problem(rows=37, columns=29, batch=5, density=0.2, seed=0):
    """Storage of a random CSR matrix, its dense form, and an input."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    dense = torch.randn(rows, columns, generator=generator)
    dense *= torch.rand(rows, columns, generator=generator) < density
    entries = dense.nonzero()
    pos = torch.zeros(rows + 1, dtype=torch.int32)
    pos[1:] = torch.bincount(entries[:, 0], minlength=rows).cumsum(0)
    storage = [pos, entries[:, 1].to(torch.int32), dense[entries[:, 0], entries[:, 1]]]
    return storage, dense, torch.randn(batch, columns, generator=generator)
