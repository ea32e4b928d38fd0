# SPDX-License-Identifier: Apache-2.0
"""Chains that are no statements on tiles say why: each has a nest of loops for every statement instead."""

import pytest
import torch
from test_chain_results import attend_lse
from test_chain_tiles import BLOCKS, TARGET, masked, operands, pattern_of

import lacis
from lacis.runtime.chain import ChainFunction

OBJECTIONS = {
    "stored blocks of the pattern may have places without an entry": {"pattern": pattern_of(0.5)},
    "no multiple of 64, and none of 8, 16 and 32": {"pattern": pattern_of(format=lacis.Bsr(4, 4))},
    "entries of the pattern are not stored in blocks": {"pattern": pattern_of(format=lacis.Csr)},
    "no positions of one row": {"pattern": pattern_of(format=lacis.Coo)},
    "is not of a half type": {"dtype": torch.float32},
    "operand q is no 16, 32, 64, 128, 192 or 256 elements wide": {"depth": 24},
}


@pytest.mark.long
@pytest.mark.parametrize("why", OBJECTIONS)
def test_what_is_no_statement_on_tiles_says_why(why):
    """Such a chain has a nest for each statement; a step that asks for the loop is refused with the reason."""
    given = {"pattern": pattern_of(), "columns": 128, "depth": 64, "dtype": torch.bfloat16} | OBJECTIONS[why]
    pattern = given.pop("pattern")
    q, k, v = operands(128, given["columns"], given["depth"], 64, given["dtype"])
    kernel = attend_lse.compile(q, k, v, pattern, target=TARGET)
    assert "lacis.mma" not in kernel.asm["tiles"]
    assert any(why in remark for remark in kernel.remarks), kernel.remarks
    with pytest.raises(lacis.CompileError, match=why):
        attend_lse.compile(q, k, v, pattern, steps=[lacis.steps.Roll("j0")], target=TARGET)


def crowded(q, k, v, pattern, *others):
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k)
    for number in range(0, len(others), 2):
        s = s + lacis.einsum("ij,hid,hjd->hij", pattern, *others[number : number + 2])
    return lacis.einsum("hij,hje->hie", lacis.softmax(s, "j"), v)


@pytest.mark.long
def test_too_many_tiles_say_why():
    q, k, v = operands(128, 128, 128, 128)
    names = ["q", "k", "v", "pattern", *(f"{name}{n}" for n in range(3) for name in "ab")]
    given = [q, k, v, pattern_of(format=BLOCKS[64, 128]), *((q.clone(), k.clone()) * 3)]
    kernel = ChainFunction(crowded, names).compile(*given, target=TARGET)
    why = "the tiles of a round do not fit twice into shared memory"
    assert "lacis.mma" not in kernel.asm["tiles"] and any(why in remark for remark in kernel.remarks), kernel.remarks


MISSING = {"bind": "is bound to blocks or to 'warpgroup'", "stage": "is not staged in 'shared'"}


@pytest.mark.parametrize("verb", MISSING)
def test_a_step_that_is_missing_is_named(verb):
    q, k, v = operands(128, 128, 64, 64)
    pattern = pattern_of()
    chain = lacis.kernel(masked)
    steps = [step for step in chain.compile(q, k, v, pattern, target=TARGET).steps if step.mnemonic != verb]
    with pytest.raises(lacis.CompileError, match=MISSING[verb]):
        chain.compile(q, k, v, pattern, steps=steps, target="cpu")
