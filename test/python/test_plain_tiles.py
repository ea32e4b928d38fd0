# SPDX-License-Identifier: Apache-2.0
"""Tiles in plain loops: a schedule for tensor cores gives the right numbers on a CPU, against float64."""

import dataclasses
import pathlib
import re
import sys

import pytest
import torch
from strategies import mostly_long

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from bench import tile_gradients, tiles  # noqa: E402

import lacis
from lacis.capture import Epilogue, capture_einsum
from lacis.emit import emit
from lacis.runtime.kernels import compile_kernel

GPUS = ("cuda:sm_90a", "cuda:sm_80", "cuda:sm_89")
CASES = {
    "64": (lacis.Bsr, (64, 64), torch.bfloat16),
    "64, f16": (lacis.Bsr, (64, 64), torch.float16),
    "128": (lacis.BlockedEll, (128, 128), torch.bfloat16),
    "32": (lacis.Bsr, (32, 32), torch.bfloat16),
    "16": (lacis.Bsr, (16, 16), torch.bfloat16),
    "16, f16": (lacis.Bcsc, (16, 16), torch.float16),
    "8": (lacis.Bcsc, (8, 8), torch.bfloat16),
    "32 x 16": (lacis.Bsr, (32, 16), torch.bfloat16),
    "16 x 32": (lacis.Bsr, (16, 32), torch.bfloat16),
    "64 x 128": (lacis.Bsr, (64, 128), torch.bfloat16),
    "256": (lacis.Bsr, (256, 256), torch.bfloat16),
    "192 x 128": (lacis.Bcsc, (192, 128), torch.float16),
}
SIZES = {"64": (256, 384), "16": (256, 256)}  # as other tests have them, which make the same kernels; else with tails
TURNS = [(case, target) for case in CASES for target in GPUS]


def tiled(expression, operands, target, **options):
    """The einsum on the CPU, by the steps that it has on a GPU, those for few tokens apart."""
    texts = compile_kernel(emit(capture_einsum(expression, operands, None, **options)[0]), target).info["steps"]
    steps = [lacis.steps.parse(text) for text in texts if "upto" not in text]
    kernel = lacis.compile(expression, *operands, steps=steps, target="cpu", **options)
    assert "lacis.mma" in kernel.asm["tiles"]
    return kernel


def weight(case, entries=1.0, sizes=None):
    """A random weight with half of the blocks, and a share of the entries of each."""
    (format, block, dtype), (rows, columns) = CASES[case], sizes or SIZES.get(case, (200, 328))
    torch.manual_seed(0)
    grid = torch.rand(-(-rows // block[0]), -(-columns // block[1])) < 0.5
    kept = grid.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:rows, :columns]
    kept &= torch.rand(rows, columns) < entries
    return lacis.pack(torch.randn(rows, columns) * kept, format(*block)).to(dtype)


def check(got, want):
    scale = 2.0**-8 if got.dtype == torch.bfloat16 else 2.0**-11
    assert (got.double() - want).norm() <= scale * want.norm(), (got.double() - want).norm() / want.norm()


@pytest.mark.parametrize("case, target", mostly_long(TURNS, ("16", "cuda:sm_90a")))
def test_forward(case, target):
    packed = weight(case)
    kernel = tiled("ij,bj->bi", [packed, torch.zeros(8, packed.shape[1], dtype=packed.dtype)], target)
    for tokens in (300, 1):
        x = torch.randn(tokens, packed.shape[1]).to(packed.dtype)
        check(kernel(packed, x), x.double() @ packed.to_dense().double().T)


def test_derived_arrays_are_checked():
    """By dtype, rank and sizes: a truncated array or one of another type is refused, and no kernel runs."""
    packed = weight("16")
    x = torch.randn(8, packed.shape[1]).to(packed.dtype)
    kernel = tiled("ij,bj->bi", [packed, x], "cuda:sm_90a")
    names, arrays = [name for _, _, name in kernel.names], kernel.arrays(packed)
    assert {"pos1", "crd1", "pos2", "bits2", "origin", "crd2", "crd3"} <= set(names)

    def run(n, array):
        given = [*arrays[:n], array, *arrays[n + 1 :]]
        return kernel.launch([x], given, [8, packed.shape[0]], kernel.key, list(packed.shape), [])

    for n, (_, step, name) in enumerate(kernel.names):
        if not step:
            continue
        with pytest.raises(lacis.DataError, match="of .*: expected"):
            run(n, arrays[n][:-1].contiguous())
        if name == "values":
            with pytest.raises(lacis.DataError, match="values of .*: expected dtype bf16, got f32"):
                run(n, arrays[n].float())
            continue
        with pytest.raises(lacis.DataError, match=f"{name} of .*: expected dtype i32, got i64"):
            run(n, arrays[n].long())
        with pytest.raises(lacis.DataError, match=f"{name} of .*: expected 1 dimensions, got 2"):
            run(n, arrays[n][None])
    check(run(0, arrays[0]), x.double() @ packed.to_dense().double().T)


@pytest.mark.parametrize("case, target", mostly_long(TURNS))
def test_gradient_of_the_input(case, target):
    packed = weight(case)
    dy = torch.randn(300, packed.shape[0]).to(packed.dtype)
    got = tiled("ij,bi->bj", [packed, dy], target)(packed, dy)
    check(got, dy.double() @ packed.to_dense().double())


SAMPLED = [(case, gpu) for case, gpu in TURNS if case != "8" and (case != "256" or gpu == GPUS[0])]


@pytest.mark.parametrize("case, target", mostly_long(SAMPLED, ("32", "cuda:sm_90a")))
def test_gradient_of_the_values(case, target):
    """Padding of partly filled blocks stays 0, and memory that nobody writes is none."""
    packed = weight(case, entries=0.3)
    dy, x = (torch.randn(300, size).to(packed.dtype) for size in packed.shape)
    operands = [packed.pattern, dy, x]
    got = tiled("ij,bi,bj->ij", operands, target)(*operands).values
    want = packed.pattern.gather(dy.double().T @ x.double())
    check(got, want)
    assert not got[want == 0].any()


ORDERS = ("ij,jk->ik", "ij,kj->ik", "ij,jk->ki", "ij,ik->jk", "ij,ki->jk", "ij,ik->kj")
ORDERED = [(expression, *turn) for expression in ORDERS for turn in TURNS if turn[0] != "8"]


@pytest.mark.long
@pytest.mark.parametrize("expression, case, target", ORDERED)
def test_any_order_of_the_axes(expression, case, target):
    """Of the dense operand and of the output, which may lie along the contraction or across it."""
    packed = weight(case)
    sizes = dict(zip("ijk", (*packed.shape, 128)))
    x = torch.randn([sizes[letter] for letter in expression[3:5]]).to(packed.dtype)
    kernel = tiled(expression, [packed, x], target)
    for tokens in (320, 32):
        sizes["k"] = tokens
        x = torch.randn([sizes[letter] for letter in expression[3:5]]).to(packed.dtype)
        check(kernel(packed, x), torch.einsum(expression, packed.to_dense().double(), x.double()))


FACTORS = ("ij,ik,jk->ij", "ij,ki,jk->ij", "ij,ik,kj->ij")
FACTORED = [(expression, *turn) for expression in FACTORS for turn in SAMPLED]


@pytest.mark.long
@pytest.mark.parametrize("expression, case, target", FACTORED)
def test_any_order_of_sampled_factors(expression, case, target):
    packed = weight(case, entries=0.3)
    sizes = dict(zip("ijk", (*packed.shape, 136)))
    _, *terms = expression.partition("->")[0].split(",")
    factors = [torch.randn([sizes[letter] for letter in term]).to(packed.dtype) for term in terms]
    got = tiled(expression, [packed.pattern, *factors], target)(packed.pattern, *factors).values
    want = packed.pattern.gather(torch.einsum(",".join(terms) + "->ij", *(factor.double() for factor in factors)))
    check(got, want)
    assert not got[want == 0].any()


@pytest.mark.long
@pytest.mark.parametrize("case, target", [turn for turn in SAMPLED if turn[0] not in ("256", "192 x 128")])
def test_what_follows_a_sampled_sum(case, target):
    """A scale, a bias along the columns and an activation, behind a whole sum and behind one that was cut."""
    packed, said = weight(case, entries=0.3, sizes=(256, 384)), "ij,ik,jk->ij"
    bias, scale = torch.randn(packed.shape[1]).to(packed.dtype), torch.tensor(0.25).to(packed.dtype)
    after = Epilogue(bias=bias, bias_axis="j", activation="gelu", scale=scale)
    wide = Epilogue(bias=bias.double(), bias_axis="j", activation="gelu", scale=scale.double())
    drawn = lambda depth: [torch.randn(size, depth).to(packed.dtype) / depth**0.5 for size in packed.shape]
    kernel = tiled(said, [packed.pattern, *drawn(136)], target, epilogue=after)
    for factors in (drawn(136), drawn(2184)):
        exact = lacis.einsum(said, packed.pattern, *(f.double() for f in factors), epilogue=wide, target="eager")
        check(kernel(packed.pattern, *factors).values, exact.values)


@pytest.mark.parametrize("case", mostly_long(["32", "16, f16", "32 x 16", "16 x 32"], "32 x 16"))
def test_gathered_blocks(case):
    """Where few blocks are stored; panels and shares of any length, each way. A consumer sums up its own blocks."""
    format, block, dtype = CASES[case]
    torch.manual_seed(0)
    grid = torch.rand(-(-1096 // block[0]), -(-1304 // block[1])) < 0.3
    kept = grid.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:1096, :1304]
    packed = lacis.pack((torch.randn(1096, 1304) * kept).to(dtype), format(*block))
    dy, x = (torch.randn(70, size).to(dtype) for size in packed.shape)
    operands = [packed.pattern, dy, x]
    spec = dataclasses.replace(capture_einsum("ij,bi,bj->ij", operands, None)[0], eighths=3)
    steps = [lacis.steps.parse(text) for text in compile_kernel(emit(spec), GPUS[0]).info["steps"]]
    kernel = lacis.compile("ij,bi,bj->ij", *operands, steps=steps, target="cpu")
    assert "lacis.mma_gathered" in kernel.asm["tiles"]
    widths = re.findall(r"lacis.mma_gathered .* into !lacis.acc<64x(\d+)xf32>", kernel.asm["tiles"])
    own = next(step.factor for step in steps if step.mnemonic == "split" and step.loop == "i0_j01")
    assert 64 * max(map(int, widths)) == own * block[0] * block[1]
    check(kernel(*operands).values, packed.pattern.gather(dy.double().T @ x.double()))


@pytest.mark.long
@pytest.mark.parametrize("case, target", [turn for turn in TURNS if turn[0] in ("64", "16", "128")])
def test_numbers_and_residuals_in_the_order_of_the_output(case, target):
    packed = weight(case)
    x, residual = (torch.randn(size, 96).to(packed.dtype) for size in packed.shape[::-1])
    bias, scale = torch.randn(packed.shape[0]).to(packed.dtype), torch.tensor(2.5).to(packed.dtype)
    after = Epilogue(bias=bias, activation="gelu", scale=scale, residual=residual)
    got = tiled("ij,jk->ik", [packed, x], target, epilogue=after)(packed, x)
    exact = lacis.pack(packed.to_dense().double(), lacis.Dense)
    wide = Epilogue(bias=bias.double(), activation="gelu", scale=scale.double(), residual=residual.double())
    check(got, lacis.einsum("ij,jk->ik", exact, x.double(), epilogue=wide, target="eager"))


EPILOGUES = [(case, target, adds) for case in ("64", "32", "16", "256") for target in GPUS for adds in (False, True)]


@pytest.mark.long
@pytest.mark.parametrize("case, target, adds", EPILOGUES)
def test_epilogue(case, target, adds):
    packed = weight(case)
    x, residual = (torch.randn(64, size).to(packed.dtype) for size in packed.shape[::-1])
    bias = torch.randn(packed.shape[0]).to(packed.dtype)
    after = Epilogue(bias=bias, activation="gelu", residual=residual if adds else None)
    got = tiled("ij,bj->bi", [packed, x], target, epilogue=after)(packed, x)
    want = torch.nn.functional.gelu(x.double() @ packed.to_dense().double().T + bias.double())
    check(got, want + residual.double() if adds else want)


@pytest.mark.long
@pytest.mark.parametrize("target", GPUS)
def test_a_dense_matrix(target):
    packed, x = lacis.pack(torch.randn(200, 328).bfloat16(), lacis.Dense), torch.randn(300, 328).bfloat16()
    got = tiled("ij,bj->bi", [packed, x], target)(packed, x)
    check(got, x.double() @ packed.to_dense().double().T)


@pytest.mark.long
@pytest.mark.parametrize("case", ["64, f16", "16, f16"])
def test_the_number_of_threads_changes_no_bit(case):
    packed = weight(case)
    x = torch.randn(300, packed.shape[1]).to(packed.dtype)
    kernel, threads = tiled("ij,bj->bi", [packed, x], GPUS[0]), torch.get_num_threads()
    try:
        found = []
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(kernel(packed, x))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(result, found[0]) for result in found)


@pytest.mark.long
def test_a_layer_takes_such_a_schedule():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 128)).bfloat16()
    dense, bias = (p.detach().double().clone() for p in model[0].parameters())
    layout = (
        "(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed, i floordiv 64 mod 2 : bitmap, link, "
        "i mod 64 : dense, j mod 64 : dense)"
    )
    s = lacis.create_schedule(model, target="cpu")
    handle = s["0.weight"].block(64, 64).set_format(lacis.Bsr).split("i0", 2).split("b", 32)
    handle.reorder("i00", "b0", "i01", "i1", "b1").regroup("w", layout).balance("b0", 4, 16).bind("i01", "warpgroup")
    handle.stage("w", "shared").stage("x", "shared").pipeline("j0", 4).tensorize("j1", "i1", "b1")
    s.build()
    assert "lacis.mma" in handle.kernel.asm["tiles"]
    x, dy = torch.randn(2, 40, 256).bfloat16().requires_grad_(), torch.randn(2, 40, 128).bfloat16()
    y = model(x)
    y.backward(dy)
    check(y.detach(), x.detach().double() @ dense.T + bias)
    check(x.grad, dy.double() @ dense)
    wanted = dy.reshape(80, 128).double().T @ x.detach().reshape(80, 256).double()
    check(model[0].weight.values.grad, handle.packed.pattern.gather(wanted))


BY_HAND = {
    "block64": tiles.BLOCK64,
    "block16": tiles.BLOCK16,
    "block128": tiles.BLOCK128,
    "grad-input64": tile_gradients.INPUT64,
    "grad-input16": tile_gradients.INPUT16,
    "grad-values64": tile_gradients.VALUES64,
    "grad-values128": tile_gradients.VALUES128,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_kernel_written_by_hand(name):
    layout = BY_HAND[name]
    grid = torch.rand(-(-264 // layout.block), -(-328 // layout.block)) < 0.5
    kept = grid.repeat_interleave(layout.block, 0).repeat_interleave(layout.block, 1)[:264, :328]
    weight = (torch.randn(264, 328) * kept).to(layout.dtype)
    layer = tiles.Layer(layout, weight, 300, "cpu")
    dy, x = (torch.randn(300, size).to(layout.dtype) for size in weight.shape)
    if name.startswith("block"):
        check(layer(x), x.double() @ weight.double().T)
    elif name.startswith("grad-input"):
        check(layer(dy), dy.double() @ weight.double())
    else:
        check(layer(dy, x), tile_gradients.expected(layer, dy, x, weight))


def test_softmax_chains_product_reduction_and_arithmetic():
    w, x = torch.randn(200, 256).bfloat16(), torch.randn(128, 256).bfloat16()
    kernel = compile_kernel((tiles.FOLDER / "softmax.mlir").read_text(), "cpu")
    check(kernel([w, x], [], [200, 128], []), (w.double() @ x.double().T).softmax(1))
