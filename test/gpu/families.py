# SPDX-License-Identifier: Apache-2.0
"""Every family of kernels on one problem of any size; `python test/gpu/families.py [word...]` runs each once, small."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import pathlib
import sys
from collections.abc import Callable

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import test_races_cuda  # noqa: E402
import test_stage_cuda  # noqa: E402
from bench import tile_gradients, tiles  # noqa: E402
from test_tile_schedules_cuda import blocked  # noqa: E402

import lacis  # noqa: E402
from lacis import steps  # noqa: E402
from lacis.capture import capture_einsum  # noqa: E402
from lacis.capture.gradient import gradient_specs  # noqa: E402
from lacis.runtime.compile import load_kernel  # noqa: E402

CAPABILITY = torch.cuda.get_device_capability() if torch.cuda.is_available() else (0, 0)
HOPPER = CAPABILITY == (9, 0)
AMPERE = f"cuda:sm_{CAPABILITY[0]}0"  # on a Hopper GPU without what is Hopper's alone


@dataclasses.dataclass(frozen=True)
class Problem:
    """`run()` is one product; `given` holds what it multiplies by token, `want` the answer in float64.

    `packed` is the weight whose values' gradient the answer is.
    """

    run: Callable[[], torch.Tensor]
    given: torch.Tensor
    want: torch.Tensor
    packed: lacis.PackedTensor | None = None

    def spoiled_lines(self, answer: torch.Tensor) -> set[int]:
        """Tokens of a product, features of a gradient of the values, where the answer is not finite."""
        if self.packed is not None:
            answer = self.packed.with_values(answer).to_dense()
        return set((~answer.isfinite()).any(1).nonzero().flatten().tolist())


def default(
    slot: str,
    format,
    block,
    rows,
    columns,
    tokens,
    sparsity=0.8,
    target="auto",
    dtype=torch.bfloat16,
    after=None,
    by=(),
) -> Problem:
    """What the default schedule, or the steps `by`, make of a linear layer, or of one of its gradients (`slot`)."""
    weight = blocked(rows, columns, block, sparsity, dtype)
    x = torch.randn(tokens, columns, device="cuda").to(dtype)
    dy = torch.randn(tokens, rows, device="cuda").to(dtype)
    packed = lacis.pack(weight, format(*block) if isinstance(format, type) else format)
    if not slot:
        epilogue, finish = epilogues(after, rows, tokens, dtype)
        kernel = lacis.compile("ij,bj->bi", packed, x, target=target, epilogue=epilogue, steps=by)
        return Problem(lambda: kernel(packed, x), x, finish(x.double() @ weight.double().T))
    kernel = lacis.compile("ij,bj->bi", packed, x, target=target).family.gradient(slot).kernel
    if slot == "1":
        want = dy.double() @ weight.double()
        return Problem(lambda: kernel.run([dy], packed, x.shape), dy, want)
    want = packed.pattern.gather(dy.double().T @ x.double())
    return Problem(lambda: kernel.run([x, dy], packed, packed.values.shape), dy, want, packed)


def uneven(slot: str, block, rows, columns, tokens, sparsity=0.8, target="auto", after=None) -> Problem:
    """A layer one row and one column of whose blocks are full, wide enough that they are cut: at least 2304 columns."""
    width = max(columns, 2304)
    weight = blocked(rows, width, block, max(sparsity, 0.95))  # the full row has far more than 2.5 times the mean
    weight[block[0] : 2 * block[0]] = torch.randn(width, device="cuda")
    weight[:, block[1] : 2 * block[1]] = torch.randn(rows, 1, device="cuda")
    x, dy = (torch.randn(tokens, size, device="cuda").bfloat16() for size in (width, rows))
    packed = lacis.pack(weight, lacis.Bsr(*block))
    epilogue, finish = epilogues(after, rows, tokens, torch.bfloat16)
    kernel = lacis.compile("ij,bj->bi", packed, x, target=target, epilogue=epilogue)
    assert tokens > 32 or "race" in {step.mnemonic for step in kernel.steps}
    assert any(getattr(step, "cut", None) for step in kernel.steps)
    if not slot:
        return Problem(lambda: kernel(packed, x), x, finish(x.double() @ weight.double().T))
    gradient = kernel.family.gradient(slot).kernel
    return Problem(lambda: gradient.run([dy], packed, x.shape), dy, dy.double() @ weight.double())


def in_tf32(slot: str, block, rows, columns, tokens, sparsity=0.8, target="auto", is_uneven=False) -> Problem:
    """The same of float32, as where torch allows TF32; uneven, one row and one column of blocks are full."""
    weight = blocked(rows, columns, block, sparsity, torch.float32)
    if is_uneven:
        weight[: block[0]] = torch.randn(columns, device="cuda")
        weight[:, : block[1]] = torch.randn(rows, 1, device="cuda")
    x, dy = (torch.randn(tokens, size, device="cuda") for size in (columns, rows))
    packed = lacis.pack(weight, lacis.Bsr(*block))
    spec, _ = capture_einsum("ij,bj->bi", [packed, x], None)
    spec = dataclasses.replace({"": spec, **gradient_specs(spec)}[slot], tf32=True)
    kernel = load_kernel(spec, target, x.device)
    if slot == "values":
        want = packed.pattern.gather(dy.double().T @ x.double())
        return Problem(lambda: kernel.run([x, dy], packed, packed.values.shape), dy, want, packed)
    given, want = (dy, dy.double() @ weight.double()) if slot else (x, x.double() @ weight.double().T)
    return Problem(lambda: kernel.run([given], packed, want.shape), given, want)


def epilogues(activation, rows: int, tokens: int, dtype):
    """Bias, an activation and, after SiLU, a residual; and what they do to the product."""
    if activation is None:
        return None, lambda product: product
    if activation == "scale":
        return lacis.Epilogue(scale=torch.tensor(0.5, device="cuda", dtype=dtype)), lambda product: product / 2
    bias, residual = (torch.randn(*size, device="cuda").to(dtype) for size in ((rows,), (tokens, rows)))
    added = residual if activation == "silu" else None
    act = getattr(torch.nn.functional, activation)
    finish = lambda product: act(product + bias.double()) + (0 if added is None else added.double())
    return lacis.Epilogue(bias=bias, activation=activation, residual=added), finish


def by_hand(layout, rows, columns, tokens, sparsity=0.8) -> Problem:
    """A kernel of `test/Tiles`."""
    weight = blocked(rows, columns, (layout.block, layout.block), sparsity, layout.dtype)
    x, dy = (torch.randn(tokens, size, device="cuda").to(layout.dtype) for size in (columns, rows))
    layer = tiles.Layer(layout, weight, tokens)
    if "grad" not in layout.file:
        return Problem(lambda: layer(x), x, x.double() @ weight.double().T)
    given = (dy, x) if "values" in layout.file else (dy,)
    want = tile_gradients.expected(layer, dy, x if len(given) == 2 else None, weight)
    return Problem(lambda: layer(*given), dy, want, layer.packed if len(given) == 2 else None)


SQUARE = [(128, 128), (64, 64), (32, 32), (16, 16), (8, 8)]
BLOCKS = [*SQUARE, (128, 64), (64, 128), (32, 16), (16, 32), (16, 128)]
SLOTS = {"forward": "", "dx": "1", "dw": "values"}
PARTS = lacis.formats.decompose(ell=lacis.BlockedEll(64, 64, width=4), rest=lacis.Bsr(64, 64))
HAND = {
    "forward 128": tiles.BLOCK128,
    "forward 64": tiles.BLOCK64,
    "forward 16": tiles.BLOCK16,
    "forward 16 wide": tiles.BLOCK16_WIDE,
    "dx 128": tile_gradients.INPUT128,
    "dx 64": tile_gradients.INPUT64,
    "dx 16": tile_gradients.INPUT16,
    "dx 16 wide": tile_gradients.INPUT16_WIDE,
    "dw 128": tile_gradients.VALUES128,
    "dw 64": tile_gradients.VALUES64,
}


def families() -> dict[str, Callable[..., Problem]]:
    """Makers of problems by name: `maker(rows, columns, tokens, sparsity)`."""
    found = {}
    for target, name in [("auto", "sm_90a"), (AMPERE, "sm_80")][0 if HOPPER else 1 :]:
        make = functools.partial(functools.partial, default, target=target)
        for block in BLOCKS:
            for what, slot in SLOTS.items():
                found[f"{what} {block[0]}x{block[1]} {name}"] = make(slot, lacis.Bsr, block)
        for format in (lacis.Bcsc, lacis.BlockedEll):
            found[f"forward {format.__name__} 32x32 {name}"] = make("", format, (32, 32))
        found[f"forward float16 64x64 {name}"] = make("", lacis.Bsr, (64, 64), dtype=torch.float16)
        for what, slot in SLOTS.items():
            for block in ((64, 64), (16, 16)):
                single = functools.partial(in_tf32, slot, block, target=target)
                found[f"{what} tf32 {block[0]}x{block[1]} {name}"] = single
        for what, slot in SLOTS.items():
            found[f"{what} 256x192 {name}"] = make(slot, lacis.Bsr, (256, 192))
        for what in ("forward", "dx"):
            found[f"{what} Dense {name}"] = make(SLOTS[what], lacis.Dense(), (64, 64))
        for block, after in (((128, 128), "silu"), ((64, 64), "gelu"), ((16, 16), "relu")):
            found[f"forward {after} {block[0]}x{block[1]} {name}"] = make("", lacis.Bsr, block, after=after)
        for block in ((128, 128), (64, 64), (16, 16)):
            for what in ("forward", "dx"):
                cut = functools.partial(uneven, SLOTS[what], block, target=target)
                found[f"{what} cut {block[0]}x{block[1]} {name}"] = cut
        found[f"forward cut silu 64x64 {name}"] = functools.partial(uneven, "", (64, 64), target=target, after="silu")
        for what in ("forward", "dx"):
            found[f"{what} of a sum {name}"] = make(SLOTS[what], PARTS, (64, 64))
    if HOPPER:
        found.update({f"{name} by hand": functools.partial(by_hand, layout) for name, layout in HAND.items()})
    return found


def few() -> dict[str, Callable[..., Problem]]:
    """Kernels of up to 32 tokens."""
    blocks = [(128, 128), (64, 64), (32, 32), (16, 16), (64, 16), (16, 128)]
    found = {f"{b[0]}x{b[1]}": functools.partial(default, "", lacis.Bsr, b) for b in blocks}
    after = {"gelu 64x64": ((64, 64), "gelu"), "scale 16x16": ((16, 16), "scale")}
    make = functools.partial(default, "", lacis.Bsr)
    return found | {name: functools.partial(make, block, after=what) for name, (block, what) in after.items()}


def plain() -> dict[str, Callable[..., Problem]]:
    """Kernels without tensor cores: entries one by one, rows in equal shares, tiles in shared memory."""
    make = functools.partial(functools.partial, default, dtype=torch.float32)
    formats = {f.__name__: f() for f in (lacis.Csr, lacis.Csc, lacis.Coo, lacis.Dcsr, lacis.Ell)}
    formats["Bsr"] = lacis.Bsr(4, 4)
    named = {f"{what} {name}": make(slot, f, (1, 1)) for name, f in formats.items() for what, slot in SLOTS.items()}
    tiled = [*test_stage_cuda.TILED, steps.Jam("b11"), steps.Stage("1", "shared", "j0"), *test_stage_cuda.BLOCKS]
    named["forward staged"] = make("", lacis.Bsr(16, 16), (16, 16), by=tiled)
    shares = [*test_races_cuda.EIGHT, steps.Jam("b1")]
    return named | {"forward in shares": make("", lacis.Csr(), (1, 1), by=shares)}


def small() -> dict[str, Callable[[], Problem]]:
    """All families on problems that any tool has the patience for."""
    shape = (520, 328)
    found = {name: functools.partial(make, *shape, 200, sparsity=0.5) for name, make in families().items()}
    found |= {f"few {name}": functools.partial(make, *shape, 9, sparsity=0.5) for name, make in few().items()}
    return found | {f"plain {name}": functools.partial(make, *shape, 40) for name, make in plain().items()}


def main() -> None:
    """Each family whose name holds a word of the command line, or any, once; compiled in parallel threads."""
    words = sys.argv[1:] or [""]
    makers = {name: make for name, make in small().items() if any(word in name for word in words)}
    with concurrent.futures.ThreadPoolExecutor() as pool, torch.no_grad():
        for name, problem in zip(makers, pool.map(lambda make: make(), makers.values())):
            error = (problem.run().double() - problem.want).norm()
            assert error <= 6e-3 * problem.want.norm(), f"{name}: error {error}"
            print(name, flush=True)


if __name__ == "__main__":
    main()
