# SPDX-License-Identifier: Apache-2.0
"""The gradients' tile kernels on a Hopper GPU: right on poisoned memory and at tails, the same bits each time."""

import dataclasses
import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from bench import tile_epilogue, tile_gradients, tiles  # noqa: E402

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
pytestmark = pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
INPUT = {
    "128": tile_gradients.INPUT128,
    "64": tile_gradients.INPUT64,
    "16": tile_gradients.INPUT16,
    "16 wide": tile_gradients.INPUT16_WIDE,
}
VALUES = {"64": tile_gradients.VALUES64, "128": tile_gradients.VALUES128}
LAYOUTS = {f"{what} {block}": x for what, all in (("dx", INPUT), ("dw", VALUES)) for block, x in all.items()}
SHAPES = [(256, 256, 256), (64, 64, 1), (1000, 712, 333), (2048, 1024, 1025)]


def of_type(layout, dtype):
    return dataclasses.replace(layout, dtype=dtype)


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sparsity", [0.0, 0.5, 0.9, 1.0])
def test_gradient(name, shape, sparsity):
    tile_gradients.check(LAYOUTS[name], *shape, sparsity)


@pytest.mark.parametrize("name", LAYOUTS)
def test_float16(name):
    tile_gradients.check(of_type(LAYOUTS[name], torch.float16), 1000, 712, 333, 0.5)


@pytest.mark.parametrize("layout", [tiles.BLOCK128, tiles.BLOCK64, tiles.BLOCK16], ids=lambda layout: layout.file)
def test_forward_float16(layout):
    tiles.check(of_type(layout, torch.float16), 1000, 712, 333, 0.5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sparsity", [0.0, 0.5, 1.0])
def test_forward_128(shape, sparsity):
    tiles.check(tiles.BLOCK128, *shape, sparsity)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", tile_epilogue.EPILOGUES)
def test_bias_activation_and_residual(name, shape, dtype):
    tile_epilogue.check(name, *shape, 0.5, dtype)


@pytest.mark.parametrize("name", VALUES)
def test_padding_of_partly_filled_blocks_stays_0(name):
    tile_gradients.check(VALUES[name], 1000, 712, 333, 0.5, entries=0.3)


@pytest.mark.parametrize("name", VALUES)
def test_not_a_number_leaves_padding_0(name):
    """A token that is not finite spoils the gradients of entries alone."""
    layout = VALUES[name]
    weight = tiles.blocked(512, 512, layout.block, 0.5) * (torch.rand(512, 512, device="cuda") < 0.5)
    dy, x = (torch.randn(300, 512, device="cuda").bfloat16() for _ in range(2))
    dy[17, weight.any(1).nonzero()[0]] = float("inf")  # in a row that has entries
    layer = tiles.Layer(layout, weight, 300)
    got, valid = layer(dy, x), layer.packed.pattern.tensors["valid"]
    assert valid.numel() and not got[~valid].any()
    assert not got[valid].isfinite().all()


@pytest.mark.parametrize("name", LAYOUTS)
def test_one_full_row_among_empty_ones(name):
    """Uneven work: one block row is full, a single block stands elsewhere."""
    layout = LAYOUTS[name]
    weight = torch.zeros(1024, 1024, device="cuda", dtype=torch.bfloat16)
    weight[: layout.block] = 1.0
    weight[512 : 512 + layout.block, 256 : 256 + layout.block] = -2.0
    dy, x = (torch.randn(500, 1024, device="cuda").bfloat16() for _ in range(2))
    layer = tiles.Layer(layout, weight, 500)
    operands = (dy, x) if name.startswith("dw") else (dy,)
    want = tile_gradients.expected(layer, dy, x if len(operands) == 2 else None, weight)
    assert ((layer(*operands).double() - want).norm() / want.norm()).item() < 6e-3
