# SPDX-License-Identifier: Apache-2.0
"""Compiling through the cache: one object a kernel, keys, dumps, overrides, saved kernels, threads."""

import handmade
import pytest
import torch

from lacis import _core
from lacis.errors import CompileError
from lacis.runtime import kernels
from lacis.runtime.cache import Cache

TEXT = """
#w = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @linear(%w: tensor<?x?xf32, #w> {lacis.name = "w"}, %x: tensor<?x?xf32> {lacis.name = "x"})
    -> tensor<?x?xf32> attributes {lacis.kernel, lacis.steps = []} {
  %c0 = arith.constant 0 : index
  %B = tensor.dim %x, %c0 : tensor<?x?xf32>
  %M = tensor.dim %w, %c0 : tensor<?x?xf32, #w>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%B, %M) : tensor<?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, j)>,
                       affine_map<(b, i, j) -> (b, i)>],
      iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #w>, tensor<?x?xf32>) outs(%init : tensor<?x?xf32>) {
    ^bb0(%a: f32, %v: f32, %acc: f32):
      %m = arith.mulf %a, %v : f32
      %r = arith.addf %acc, %m : f32
      linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %s : tensor<?x?xf32>
}
"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """A cache of its own, and a process that knows no kernel."""
    monkeypatch.setenv("LACIS_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("ALWAYS_COMPILE", "DUMP_DIR", "OVERRIDE_DIR"):
        monkeypatch.delenv(f"LACIS_{name}", raising=False)
    monkeypatch.setattr(kernels, "_kernels", {})


def forget(monkeypatch):
    monkeypatch.setattr(kernels, "_kernels", {})


def run(kernel):
    storage, dense, x = handmade.csr_problem()
    named = dict(zip(("pos1", "crd1", "values"), storage))
    y = kernel([x], [named[name] for name in kernel.storage], [5, 37], [37, 29])
    torch.testing.assert_close(y, x @ dense.T)


def test_compiles_and_runs():
    kernel = kernels.compile_kernel(TEXT, "cpu")
    assert len(kernel.key) == 64 and not kernel.cached
    assert kernel.info["target"] == "cpu"
    assert set(kernel.storage) <= {"pos1", "crd1", "values"} and not kernel.derived
    run(kernel)


def test_layers_share_one_object(monkeypatch):
    first = kernels.compile_kernel(TEXT, "cpu")
    monkeypatch.setattr(_core, "compile", None)
    assert kernels.compile_kernel(TEXT + '\n#loc = loc("a.py":1:2)', "cpu") is first


def test_second_process_takes_it_from_the_cache(monkeypatch):
    first = kernels.compile_kernel(TEXT, "cpu")
    forget(monkeypatch)
    second = kernels.compile_kernel(TEXT, "cpu")
    assert second is not first and second.cached and second.key == first.key
    assert second.artifact == first.artifact
    run(second)
    assert {"lacis", "loops", "buffers", "target", "llvm", "asm"} <= set(second.stages)


def test_damaged_cache_compiles_again(monkeypatch, tmp_path):
    kernels.compile_kernel(TEXT, "cpu")
    (entry,) = (tmp_path / "cache").glob("*.kernel")
    entry.write_bytes(entry.read_bytes()[:-1] + b"?")
    forget(monkeypatch)
    assert not kernels.compile_kernel(TEXT, "cpu").cached


NESTED = b'{"args":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize("forged", [b"", b"x", handmade.sealed(NESTED, b"code")], ids=["empty", "short", "nested"])
def test_an_entry_that_is_no_artifact_compiles_again(monkeypatch, tmp_path, forged):
    kernels.compile_kernel(TEXT, "cpu")
    cache = Cache(tmp_path / "cache")
    (entry,) = cache.directory.glob("*.kernel")
    cache.put(entry.stem, forged)
    forget(monkeypatch)
    assert not kernels.compile_kernel(TEXT, "cpu").cached


def test_always_compile(monkeypatch):
    kernels.compile_kernel(TEXT, "cpu")
    forget(monkeypatch)
    monkeypatch.setenv("LACIS_ALWAYS_COMPILE", "1")
    assert not kernels.compile_kernel(TEXT, "cpu").cached


def test_unusable_cache_is_no_obstacle(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LACIS_CACHE_DIR", str(tmp_path / "file"))
    run(kernels.compile_kernel(TEXT, "cpu"))


def test_dump_and_override(monkeypatch, tmp_path):
    kernels.compile_kernel(TEXT, "cpu")
    forget(monkeypatch)
    monkeypatch.setenv("LACIS_DUMP_DIR", str(tmp_path / "dump"))
    kernel = kernels.compile_kernel(TEXT, "cpu")
    folder = tmp_path / "dump" / kernel.key[:16]
    stages = {path.name.partition(".")[2] for path in folder.iterdir()}
    assert {"lacis.mlir", "loops.mlir", "buffers.mlir", "target.mlir", "artifact.lacis"} <= stages, stages

    forget(monkeypatch)
    monkeypatch.delenv("LACIS_DUMP_DIR")
    for path in folder.iterdir():
        if not path.name.endswith("buffers.mlir"):
            path.unlink()
    monkeypatch.setenv("LACIS_OVERRIDE_DIR", str(tmp_path / "dump"))
    overridden = kernels.compile_kernel(TEXT, "cpu")
    assert not overridden.cached and overridden.key == kernel.key
    run(overridden)


def test_refused_text_names_the_line():
    text = TEXT.replace('["parallel", "parallel", "reduction"]', '["parallel", "reduction"]')
    text = text.replace("} -> tensor<?x?xf32>\n  return", '} -> tensor<?x?xf32> loc("train.py":12:0)\n  return')
    with pytest.raises(CompileError, match="train.py:12:0: error"):
        kernels.compile_kernel(text, "cpu")


def test_failure_is_not_remembered(monkeypatch):
    with pytest.raises(CompileError):
        kernels.compile_kernel("nonsense", "cpu")
    assert not kernels._kernels


def test_compile_many_keeps_the_order_and_compiles_once(monkeypatch):
    calls = []
    real = _core.compile
    monkeypatch.setattr(_core, "compile", lambda *a, **k: calls.append(1) or real(*a, **k))
    other = TEXT.replace("@linear", "@other")
    requests = [kernels.Request(t, "cpu") for t in (TEXT, other, TEXT, TEXT, other)]
    made = kernels.compile_many(requests)
    assert [k.key for k in made] == [r.key for r in requests]
    assert made[0] is made[2] is made[3] and made[1] is made[4]
    assert len(calls) == 2


def test_cuda_compiles_without_a_gpu():
    kernel = kernels.compile_kernel(TEXT, "cuda:sm_90a")
    assert kernel.info["kind"] in ("ptx", "cubin")
    assert ".entry" in kernel.stages["ptx"]
