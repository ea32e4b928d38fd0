# SPDX-License-Identifier: Apache-2.0
"""Default schedules for stored blocks: no kernel of them spills, or makes the assembler wait for products."""

from __future__ import annotations

import dataclasses
import random

import pytest
import tally
import torch

import lacis
from lacis import _core
from lacis.capture import capture_einsum
from lacis.capture.gradient import gradient_specs
from lacis.emit import emit
from lacis.runtime import ptxas

BLOCKS = [(128, 128), (64, 128), (64, 64), (16, 64), (32, 32), (32, 16), (16, 16), (8, 8)]
FORMATS = {"Bsr": lacis.Bsr, "Bcsc": lacis.Bcsc, "BlockedEll": lambda *block: lacis.BlockedEll(*block, width=3)}
ROWS, COLUMNS, TOKENS = 512, 768, 300


def products(packed, activation, residual):
    """The product with its epilogue, or where there is none all three."""
    epilogue = None
    if activation:
        dtype = packed.dtype
        added = torch.zeros(TOKENS, ROWS, dtype=dtype) if residual else None
        bias = torch.zeros(ROWS, dtype=dtype)
        epilogue = lacis.Epilogue(bias=bias, bias_axis="i", activation=activation, residual=added)
    operands = [packed, torch.zeros(TOKENS, COLUMNS, dtype=packed.dtype)]
    spec = capture_einsum("ij,bj->bi", operands, None, epilogue=epilogue)[0]
    if packed.dtype == torch.float32:
        spec = dataclasses.replace(spec, tf32=True)
    return {"forward": spec} | ({} if epilogue else gradient_specs(spec))


@pytest.mark.long
@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block[0]}x{block[1]}")
def test_drawn_kernels(block, format):
    """Each product, even and uneven, with an epilogue or none, in halves or TF32, for one of three architectures."""
    draw = random.Random(f"{tally.SEED} {block} {format}")
    options = {"ptxas": ptxas.find(), "check_ptxas": True}
    for dtype, activation in ((torch.bfloat16, None), (torch.float32, None), (torch.bfloat16, "gelu")):
        kept = torch.rand(ROWS // block[0], COLUMNS // block[1]).argsort(1) < 3
        dense = kept.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1).to(dtype)
        packed = lacis.pack(dense, FORMATS[format](*block))
        for spec in products(packed, activation, draw.random() < 0.5).values():
            uneven = draw.choice([(), ("i",), ("j",), ("i", "j")])
            target = draw.choice(["cuda:sm_90a", "cuda:sm_90a", "cuda:sm_80", "cuda:sm_89"])
            _core.compile(emit(dataclasses.replace(spec, uneven=uneven)), target, options)
