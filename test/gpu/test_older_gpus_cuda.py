# SPDX-License-Identifier: Apache-2.0
"""Kernels for sm_75, whose PTX the driver assembles for the GPU that is here: tiles in plain loops, and the default."""

import pytest
import torch
from test_tile_schedules_cuda import FORMATS, blocked, check

import lacis
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.runtime.compile import Kernel
from lacis.runtime.kernels import compile_kernel

MAJOR = torch.cuda.get_device_capability()[0] if torch.cuda.is_available() else 0
pytestmark = pytest.mark.skipif(MAJOR < 8, reason="needs a GPU of compute capability 8.0 or more")


def older(expression, *operands, tiles: bool):
    """The kernel of sm_75; with the tiles of sm_80, or its default."""
    steps = ()
    if tiles:
        texts = compile_kernel(emit(capture_einsum(expression, operands, None)[0]), "cuda:sm_80").info["steps"]
        steps = [lacis.steps.parse(text) for text in texts if "upto" not in text]
    spec, _ = capture_einsum(expression, operands, None, steps)
    loaded = compile_kernel(emit(spec), "cuda:sm_75", options={"ptxas": ""})
    assert loaded.info["kind"] == "ptx" and ("tensorize" in str(loaded.info["steps"])) == tiles
    return Kernel(spec, loaded.load(operands[0].device), operands[0].device)


@pytest.mark.parametrize("tiles", [True, False], ids=["tiles", "default"])
@pytest.mark.parametrize("format, block", [("Bsr", (64, 64)), ("Bcsc", (16, 16)), ("BlockedEll", (32, 16))])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products(format, block, dtype, tiles):
    w = blocked(328, 200, block, 0.5, dtype)
    x, dy = (torch.randn(300, size, device="cuda").to(dtype) for size in (200, 328))
    packed = lacis.pack(w, FORMATS[format](*block))
    with torch.no_grad():
        y = older("ij,bj->bi", packed, x, tiles=tiles).run([x], packed, [300, 328])
        dx = older("ij,bi->bj", packed, dy, tiles=tiles).run([dy], packed, [300, 200])
        kernel = older("ij,bi,bj->ij", packed.pattern, dy, x, tiles=tiles)
        dw = kernel.run([dy, x], packed.pattern, packed.pattern.part().values_shape)
    check(y, x.double() @ w.double().T, 0.5)
    check(dx, dy.double() @ w.double(), 0.5)
    check(dw, packed.pattern.gather(dy.double().T @ x.double()))
