# SPDX-License-Identifier: Apache-2.0
"""The blocked part of a sum as tiles, which begin with what the other parts were summed up to; against float64."""

import dataclasses
import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from bench.sums_of_tiles import hybrid, scattered  # noqa: E402

import lacis
from lacis import _core, steps
from lacis.capture import Epilogue, capture_einsum
from lacis.emit import emit
from lacis.runtime import ptxas

GPUS = ("cuda:sm_90a", "cuda:sm_80", "cuda:sm_89")
BLOCK = {size: f"{lacis.Bsr(size, size)} when nnz(i floordiv {size}, j floordiv {size}) ge" for size in (16, 32, 64)}
FORMATS = {
    "64": hybrid(64),
    "32": hybrid(32),
    "16": hybrid(16),
    "64, Coo": hybrid(64, lacis.Coo),
    "64, Dcsr": hybrid(64, lacis.Dcsr),
    "64, Csc": hybrid(64, lacis.Csc),
    "64, Ell": hybrid(64, lacis.Ell),
    "some of 64": lacis.formats.decompose(blocks=lacis.BlockedEll(64, 64, width=1), rest=lacis.Csr),
    "64 twice": lacis.formats.decompose(ell=lacis.BlockedEll(64, 64, width=1), rest=lacis.Bsr(64, 64)),
    "64 and 16": f"#lacis.sum<large = {BLOCK[64]} 1000, small = {BLOCK[16]} 20, rest = {lacis.Csr()}>",
    "16 and 64": f"#lacis.sum<small = {BLOCK[16]} 250, large = {lacis.Bsr(64, 64)}>",
    "32 and 16": f"#lacis.sum<large = {BLOCK[32]} 900, rest = {lacis.Bsr(16, 16)}>",
}
FORWARD, INPUT = "ij,bj->bi", "ij,bi->bj"
TURNS = [(case, target, expression) for case in FORMATS for target in GPUS for expression in (FORWARD, INPUT)]


def problem(case, rows=200, columns=328, tokens=300, expression=FORWARD, dtype=torch.bfloat16):
    """A weight, what it is multiplied by, and the product."""
    torch.manual_seed(0)
    weight = scattered(rows, columns, 64, 0.5, 0.02, dtype, "cpu")
    format = FORMATS[case]
    packed = lacis.pack(weight, lacis.Format.parse(format) if isinstance(format, str) else format)
    x = torch.randn(tokens, columns if expression == FORWARD else rows).to(dtype)
    return packed, x, x.double() @ (weight.double().T if expression == FORWARD else weight.double())


def compiled(expression, packed, x, target, **options):
    """The kernel on a GPU, assembled: no C75xx and no spill."""
    text = emit(capture_einsum(expression, [packed, x], None, **options)[0])
    return _core.compile(text, target, {"ptxas": ptxas.find(), "check_ptxas": bool(ptxas.find()), "stages": True})


def chosen(kernel):
    """The steps of a compiled kernel."""
    return [steps.parse(text) for text in _core.artifact_info(kernel.artifact)["steps"]]


def tiled(expression, packed, x, target, **options):
    """The product on a CPU by the steps that it has on a GPU; the nests before the tiles have no warps there."""
    kept = [step for step in chosen(compiled(expression, packed, x, target, **options)) if not on_warps(step)]
    kernel = lacis.compile(expression, packed, x, steps=kept, target="cpu", **options)
    assert "lacis.load_acc" in kernel.asm["tiles"]
    return kernel(packed, x)


def on_warps(step):
    return isinstance(step, steps.Bind) and step.unit in ("warp", "lane") and "." in step.loop


def check(got, want):
    scale = 2.0**-8 if got.dtype == torch.bfloat16 else 2.0**-11
    assert (got.double() - want).norm() <= scale * want.norm(), (got.double() - want).norm() / want.norm()


@pytest.mark.long
@pytest.mark.parametrize("case, target, expression", TURNS)
def test_product(case, target, expression):
    """With tails of rows, columns and tokens, and one token."""
    packed, x, want = problem(case, expression=expression)
    check(tiled(expression, packed, x, target), want)
    check(tiled(expression, packed, x[:1], target), want[:1])


@pytest.mark.long
@pytest.mark.parametrize("target", GPUS)
def test_no_entry_elsewhere_and_no_block(target):
    _, x, _ = problem("64")
    for sparsity, share in ((0.5, 0.0), (1.0, 0.02), (1.0, 0.0)):
        packed = lacis.pack(scattered(200, 328, 64, sparsity, share, device="cpu"), hybrid(64))
        check(tiled(FORWARD, packed, x, target), x.double() @ packed.to_dense().double().T)


@pytest.mark.long
@pytest.mark.parametrize("target", GPUS)
@pytest.mark.parametrize("case, adds", [("64", True), ("32", False), ("16", False), ("64 and 16", True)])
def test_what_follows_the_sum_is_done_once(target, case, adds):
    packed, x, want = problem(case)
    bias, residual = torch.randn(200).bfloat16(), torch.randn(300, 200).bfloat16()
    after = Epilogue(bias=bias, activation="gelu", residual=residual if adds else None)
    want = torch.nn.functional.gelu(want + bias.double()) + (residual.double() if adds else 0)
    check(tiled(FORWARD, packed, x, target, epilogue=after), want)


@pytest.mark.long
@pytest.mark.parametrize("target", GPUS)
def test_tf32(target):
    packed, x, want = problem("64", dtype=torch.float32)
    text = emit(dataclasses.replace(capture_einsum(FORWARD, [packed, x], None)[0], tf32=True))
    kernel = _core.compile(text, target, {"ptxas": ptxas.find(), "check_ptxas": bool(ptxas.find()), "stages": True})
    assert "lacis.load_acc" in kernel.stages["tiles"] and "in tf32" in kernel.stages["tiles"]
    kept = [step for step in chosen(kernel) if not on_warps(step)]
    torch.testing.assert_close(
        lacis.compile(FORWARD, packed, x, steps=kept, target="cpu")(packed, x), want.float(), rtol=1e-4, atol=1e-3
    )


def test_the_largest_blocks_go_to_tiles_and_the_other_parts_before():
    packed, x, _ = problem("64 and 16")
    kernel = compiled(FORWARD, packed, x, GPUS[0])
    found = chosen(kernel)
    assert [step.part for step in found if isinstance(step, steps.Precompute)] == ["small", "rest"]
    assert [step.loop for step in found if isinstance(step, steps.Pipeline)] == ["large.j0"]
    assert not any("upto" in step.text() for step in found)
    assert kernel.stages["ptx"].count(".visible .entry") == 5, "two copies of x, two parts, the tiles"


@pytest.mark.long
def test_sums_of_single_entries_stay_as_they_are():
    packed = lacis.pack(torch.randn(64, 64).bfloat16(), lacis.formats.decompose(ell=lacis.Ell(8), rest=lacis.Csr))
    found = chosen(compiled(FORWARD, packed, torch.randn(64, 64).bfloat16(), GPUS[0]))
    assert not any(isinstance(step, (steps.Precompute, steps.Tensorize)) for step in found)


@pytest.mark.long
def test_the_steps_make_the_same_kernel_again():
    packed, x, _ = problem("64")
    first = compiled(FORWARD, packed, x, GPUS[0])
    text = emit(capture_einsum(FORWARD, [packed, x], None, chosen(first))[0])
    again = _core.compile(text, GPUS[0], {"stages": True})
    assert again.stages["ptx"] == first.stages["ptx"]


@pytest.mark.long
def test_a_layer_takes_such_a_schedule():
    """Its gradients come from the parts, each by its own default."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(328, 200)).bfloat16()
    with torch.no_grad():
        model[0].weight.copy_(scattered(200, 328, 64, 0.5, 0.02, device="cpu"))
    dense, bias = (p.detach().double().clone() for p in model[0].parameters())
    s = lacis.create_schedule(model, target="cpu")
    lies = "(b, i) -> (b floordiv 32 : dense, i floordiv 64 : dense, i mod 64 : dense, b mod 32 : dense)"
    layout = (
        "(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed, i floordiv 64 mod 2 : bitmap, link, "
        "i mod 64 : dense, j mod 64 : dense)"
    )
    handle = s["0.weight"].set_format(hybrid(64)).precompute("rest", lies).parallel("rest.b").split("i0", 2)
    handle.split("b", 32).reorder("i00", "b0", "i01", "i1", "b1").regroup("w", layout).balance("b0", 4, 16)
    handle.bind("i01", "warpgroup").stage("w", "shared").stage("x", "shared").pipeline("blocks.j0", 4)
    handle.tensorize("blocks.j1", "i1", "b1")
    s.build()
    assert "lacis.load_acc" in handle.kernel.asm["tiles"]
    x, dy = torch.randn(40, 328).bfloat16().requires_grad_(), torch.randn(40, 200).bfloat16()
    y = model(x)
    y.backward(dy)
    check(y.detach(), x.detach().double() @ dense.T + bias)
    check(x.grad, dy.double() @ dense)
