# SPDX-License-Identifier: Apache-2.0
"""The tile kernels on a Hopper GPU: right on poisoned memory, the same bits each time, inside a CUDA graph."""

import pathlib
import sys

import lacis
import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from bench import tiles  # noqa: E402

from lacis.runtime import kernels  # noqa: E402

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
pytestmark = pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
LAYOUTS = {"block64": tiles.BLOCK64, "block16": tiles.BLOCK16, "block16 wide": tiles.BLOCK16_WIDE}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("shape", [(256, 256, 256), (64, 64, 1), (1000, 712, 333), (2048, 1024, 1025)])
@pytest.mark.parametrize("sparsity", [0.0, 0.5, 0.9, 1.0])
def test_forward(name, shape, sparsity):
    tiles.check(LAYOUTS[name], *shape, sparsity)


def test_graph():
    x = torch.randn(512, 512, device="cuda").bfloat16()
    layer = tiles.Layer(tiles.BLOCK64, tiles.blocked(512, 512, 64, 0.5), 512)
    want = layer(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = layer(x)
    got.zero_()
    graph.replay()
    assert torch.equal(got, want)


def test_rows_that_the_copy_engine_cannot_read():
    layer = tiles.Layer(tiles.BLOCK64, tiles.blocked(128, 100, 64, 0.5), 64)
    with pytest.raises((RuntimeError, lacis.Error), match="multiple of 8"):
        layer(torch.randn(64, 100, device="cuda").bfloat16())


@pytest.mark.parametrize("shape", [(128, 64, 128), (1000, 712, 128), (72, 256, 128)])
def test_softmax_chains_product_reduction_and_arithmetic(shape):
    rows, columns, tokens = shape
    kernel = kernels.compile_kernel((ROOT / "test" / "Tiles" / "softmax.mlir").read_text(), "cuda:sm_90a")
    w, x = (torch.randn(n, columns, device="cuda").bfloat16() for n in (rows, tokens))
    got = kernel([w, x], [], [rows, tokens], [])
    want = (w.double() @ x.double().T).softmax(1)
    assert ((got.double() - want).norm() / want.norm()).item() < 6e-3
