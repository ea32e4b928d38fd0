# SPDX-License-Identifier: Apache-2.0
"""The tile kernels (test/Tiles) on the GPU: 8192 tokens, square 8192, bf16, beside cuBLAS through torch."""

from __future__ import annotations

import dataclasses
import pathlib

import lacis
import torch
from lacis.patterns.balance import panel_cost, share_lists, work_lists
from lacis.patterns.derived import companion_arrays
from lacis.patterns.regroup import regroup
from lacis.runtime import kernels

from .measure import Case, measure

TITLE = "Block-sparse forward on tensor cores, 8192×8192, 8192 tokens, bf16"
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "test" / "Tiles"


@dataclasses.dataclass(frozen=True)
class Layout:
    """What the text of a kernel says about its tiles, for the arrays that it walks."""

    file: str
    block: int
    tokens: int
    tile: tuple[int, int]
    fixed: float
    edits: tuple[tuple[str, str], ...] = ()
    step: int = 64
    dtype: torch.dtype = torch.bfloat16

    @property
    def text(self) -> str:
        text = (FOLDER / f"{self.file}.mlir").read_text()
        for before, after in self.edits:
            if before not in text:
                raise ValueError(f"{self.file}: no '{before}' to edit")
            text = text.replace(before, after)
        return text.replace("bf16", {torch.bfloat16: "bf16", torch.float16: "f16"}[self.dtype])


# At 50 and 75 % a stage of all 24 slabs is better than more stages of 12.
WIDE = (("ring<5", "ring<3"), ("12x64x16", "24x64x16"), ("capacity = 12", "capacity = 24"))
BLOCK128 = Layout("block128", 128, 256, (128, 128), 0.6, step=128)
BLOCK64 = Layout("block64", 64, 256, (64, 64), 0.6)
BLOCK16 = Layout("block16", 16, 128, (64, 16), 0.8)
BLOCK16_WIDE = dataclasses.replace(BLOCK16, edits=WIDE)


class Layer:
    """One sparse weight and the kernel of its forward product, or of a gradient."""

    def __init__(self, layout: Layout, weight: torch.Tensor, tokens: int, target: str = "cuda:sm_90a"):
        self.kernel = kernels.compile_kernel(layout.text, target)
        b = layout.block
        packed = lacis.pack(
            weight,
            lacis.Format.parse(
                f"(i, j) -> (i floordiv {b} : dense, j floordiv {b} : compressed, i mod {b} : dense, j mod {b} : dense)"
            ),
        )
        self.shape, self.packed, arrays = weight.shape, packed, {**packed.pattern.tensors, "values": packed.values}
        self.storage = [arrays[name] for name in self.kernel.storage]
        made = self._derive(layout, packed, tokens, dict.fromkeys(d.step for d in self.kernel.derived))
        self.storage += [made[d.step][d.name] for d in self.kernel.derived]

    def _derive(self, layout, packed, tokens, steps):
        """The arrays of each step that the kernel names, by step and name."""
        made, arrays = {}, packed.pattern.parts[""].buffers
        for step in sorted(steps, key=lambda step: step.function.endswith("schedule")):  # what is balanced first
            given = step.given
            if step.function == "index":
                made[step] = arrays = companion_arrays(packed.pattern.parts[""], given["format"])
            elif step.function == "segment_schedule":
                made[step] = self._shares(layout, packed.pattern.parts[""], given["length"])
            elif step.function == "layout":
                reorder = any(d.name == "origin" for d in self.kernel.derived)
                grouped = regroup(
                    packed.pattern.parts[""], given["format"], capacity=given.get("capacity"), reorder=reorder
                )
                made[step] = arrays = dict(grouped.arrays)
                if any(d.name == "values" and d.step == step for d in self.kernel.derived):
                    made[step]["values"] = grouped.values(packed.values, step.line)
            else:
                rows, columns = layout.tile
                cost = panel_cost(
                    arrays,
                    tile_bytes=rows * columns * 2,
                    step_bytes=layout.tokens * layout.step * 2,
                    cycles=columns / 16 * layout.tokens / 2,
                    cost=given["cost"]._replace(panel=round(layout.fixed * 1e3)),
                )
                made[step] = work_lists(
                    cost,
                    -(-tokens // given["columns"]),
                    raster=given["swizzle_group"],
                    workers=processors(packed.device),
                )
        return made

    def _shares(self, layout, structure, by: int):
        """Work lists of stored blocks; a share of n of them takes the tensor cores' time, or that of its bytes."""
        counts = structure.buffers["pos1"].diff()
        n = torch.arange(by + 1, dtype=torch.float64)
        cost = torch.maximum(torch.full_like(n, 0.35), (n + 1) * layout.block * 128 / 70e3)
        return share_lists(counts, cost, by=by, workers=processors(structure.device), most=structure.slots)

    def __call__(self, *operands: torch.Tensor) -> torch.Tensor:
        """y of x, dx of dy, or the gradient of the values of dy and x."""
        shape = [operands[0].shape[0], sum(self.shape) - operands[0].shape[1]]
        if len(operands) == 2:
            shape = list(self.packed.values.shape)
        return self.kernel(list(operands), self.storage, shape, list(self.shape))


def processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 3


def blocked(rows: int, columns: int, block: int, sparsity: float, dtype=torch.bfloat16) -> torch.Tensor:
    """A random matrix on the GPU with whole blocks of zeros."""
    grid = torch.rand(-(-rows // block), -(-columns // block), device="cuda") >= sparsity
    mask = grid.repeat_interleave(block, 0).repeat_interleave(block, 1)[:rows, :columns]
    return (torch.randn(rows, columns, device="cuda") * mask).to(dtype)


def check(layout: Layout, rows: int, columns: int, tokens: int, sparsity: float, repeats: int = 3) -> float:
    """The largest relative error of a few runs on poisoned memory, which must agree bit by bit."""
    weight = blocked(rows, columns, layout.block, sparsity, layout.dtype)
    x = torch.randn(tokens, columns, device="cuda").to(layout.dtype)
    layer, want = Layer(layout, weight, tokens), x.double() @ weight.double().T
    first = None
    for _ in range(repeats):
        poison = torch.full((tokens, rows), float("nan"), device="cuda", dtype=layout.dtype)
        del poison
        got = layer(x)
        first = got if first is None else first
        if not torch.equal(got, first):
            raise AssertionError(f"{layout.file}: two runs differ")
    error = ((first.double() - want).norm() / want.norm().clamp(min=1e-30)).item()
    if not error < 6e-3:
        raise AssertionError(f"{layout.file} {rows}x{columns}, {tokens} tokens, {sparsity}: error {error}")
    return error


def case(layout: Layout, sparsity: float, size: int = 8192, tokens: int = 8192) -> Case:
    weight = blocked(size, size, layout.block, sparsity)
    x = torch.randn(tokens, size, device="cuda").bfloat16()
    layer = Layer(layout, weight, tokens)
    with torch.inference_mode():
        times = measure(
            {"lacis": lambda: layer(x), "torch dense": lambda: torch.nn.functional.linear(x, weight)},
            "cuda",
            rounds=20,
            flush=True,
        )
    return Case(f"block {layout.block}, {sparsity:.0%} zeros", times)


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    layouts = [(BLOCK64, s) for s in (0.5, 0.75, 0.9)] + [(BLOCK16_WIDE, 0.5), (BLOCK16_WIDE, 0.75), (BLOCK16, 0.9)]
    for layout, sparsity in layouts:
        check(layout, 2048, 1024, 1025, sparsity)
    return [case(layout, sparsity) for layout, sparsity in layouts]
