# SPDX-License-Identifier: Apache-2.0
"""Rounds of 128 columns, and consumers that share what these bring: where sm_90a has them, and what asks for them."""

import pytest
import torch
from test_chain_results import attend_lse
from test_chain_tiles import BLOCKS, TARGET, blocks, check, dense, operands, tiled
from test_chain_tiles_gradients import BODIES, SCALE

import lacis
from lacis.attentions.fused_kernels import Kernels
from lacis.schedule.steps import Roll

WIDE, NARROW = Roll("j0", columns=128), Roll("j0")
CHOSEN = {
    "rows of a block are two tiles, which share": ((128, 128), 128, 256, WIDE, 2),
    "two rounds have room beside another block's": ((64, 128), 64, 256, WIDE, 1),
    "sums of 64 columns do not share": ((128, 128), 64, 256, WIDE, 1),
    "two rounds have no room, and rows are one tile": ((64, 128), 128, 256, NARROW, 1),
    "stored blocks have 64 columns": ((128, 64), 128, 256, NARROW, 1),
    "the last block has 64 rows": ((128, 128), 128, 192, NARROW, 1),
}


def pattern_of(sides, rows):
    mask = blocks(256, 256, sides, share=0.7)[:rows]
    return mask, lacis.Pattern.from_mask(mask, BLOCKS[sides])


@pytest.mark.parametrize("why", CHOSEN)
def test_the_default_is_wide_where_registers_and_memory_are(why):
    sides, depth, rows, step, consumers = CHOSEN[why]
    mask, pattern = pattern_of(sides, rows)
    kernel = attend_lse.compile(*operands(rows, 256, depth, depth), pattern, target=TARGET)
    assert kernel.steps[0] == step and f"consumers {consumers}" in kernel.asm["tiles"]
    assert "columns" not in str(
        attend_lse.compile(*operands(rows, 256, depth, depth), pattern, target="cuda:sm_80").steps
    )


@pytest.mark.long
@pytest.mark.parametrize("step", [WIDE, NARROW])
@pytest.mark.parametrize("target", [TARGET, "cuda:sm_80"])
def test_either_may_be_asked_for(step, target):
    q, k, v = operands(256, 256, 128, 128)
    mask, pattern = pattern_of((128, 128), 256)
    steps = attend_lse.compile(q, k, v, pattern, steps=[step], target=target).steps
    assert steps[0] == step
    kernel = attend_lse.compile(q, k, v, pattern, steps=steps, target="cpu")
    check(kernel(q, k, v, pattern)[0], dense(q, k, v, mask), 2)


@pytest.mark.parametrize("depth", [128, 256])
def test_masks_are_asked_of_the_tiles_that_they_cut(depth):
    """Though two consumers share a round: they make one output."""
    q, k, v = operands(256, 256, depth, depth)
    mask, pattern = pattern_of((128, 128), 256)
    attention, pattern = Kernels("h", "h", SCALE, BODIES["causal"], ()).attention, pattern.batched((2,), "h")
    kernel = tiled(attention, q, k, v, pattern)
    text = attention.compile(q, k, v, pattern, target=TARGET).asm["tiles"]
    assert "consumers 2" in text and "scf.if" in text
    check(kernel(q, k, v, pattern)[0], dense(q, k, v, mask & torch.ones(256, 256).tril().bool()), 2)


REFUSED = {
    "roll: a round takes 64 or 128 columns of a stored block, or all, and of these blocks of 128 not 32": (
        (128, 128),
        32,
        TARGET,
    ),
    "roll: a round takes 64 or 128 columns of a stored block, or all, and of these blocks of 64 not 128": (
        (64, 64),
        128,
        TARGET,
    ),
    "roll: no round of 'j0' takes tiles, which alone have 'columns'": ((128, 128), 128, "cpu"),
    "roll: stored blocks have no columns of a tile": ((16, 16), 64, TARGET),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_rounds_cannot_take(message):
    sides, columns, target = REFUSED[message]
    pattern = lacis.Pattern.from_mask(torch.ones(128, 128).bool(), lacis.Bsr(*sides))
    with pytest.raises(lacis.CompileError, match=message):
        attend_lse.compile(*operands(128, 128, 64, 64), pattern, steps=[Roll("j0", columns=columns)], target=target)
