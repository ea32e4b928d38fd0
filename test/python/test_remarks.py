# SPDX-License-Identifier: Apache-2.0
"""A kernel says why it stays off tensor cores, and a report repeats it."""

from __future__ import annotations

import dataclasses
import subprocess

import lacis_tools
import pytest
import torch
from strategies import mostly_long

import lacis
from lacis import steps
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.errors import format_location
from lacis.runtime.report import Report, Row


def compiled(format, expression="nk,bk->bn", shape=(128, 128), dtype=torch.bfloat16, **keywords):
    """A product for Hopper; operands but the first have 128 rows, and 128 or the packed operand's columns."""
    w = lacis.pack(torch.ones(shape, dtype=dtype), format)
    terms = expression.partition("->")[0].split(",")
    sizes = dict(zip(terms[0], shape))
    others = [torch.ones([sizes.get(letter, 128) for letter in term], dtype=dtype) for term in terms[1:]]
    first = w.pattern if set(expression.partition("->")[2]) == set(terms[0]) else w
    return lacis.compile(expression, first, *others, target="cuda:sm_90a", **keywords)


BLOCKS = "(n, k) -> (n floordiv 64 : dense, k floordiv 64 : compressed{}, n mod 64 : dense, k mod 64 : dense)"
MULTISET = lacis.Format.parse(BLOCKS.format("<unique=false>") + ", multiset")
REMARKS = {
    "entries": (dict(format=lacis.Csr), "entries are not stored in dense blocks"),
    "blocks": (dict(format=lacis.Bsr(24, 24), shape=(96, 96)), "stored blocks of 24 x 24 fill no tile"),
    "types": (
        dict(format=lacis.Bsr(64, 64), dtype=torch.float32),
        "tensor cores take float16 or bfloat16 throughout, or float32 where torch lets it take TF32; "
        "here are f32, f32, f32",
    ),
    "sizes": (
        dict(format=lacis.Bsr(64, 64), shape=(128, 100)),
        "the size of 'k' is no multiple of 8, and rows are copied in chunks of 16 bytes",
    ),
    "order": (
        dict(format=lacis.Bsr(64, 64), expression="ij,jhk->hik"),
        "letters of a batch come first in the dense operand and in the output, in one order",
    ),
    "twice": (
        dict(format=MULTISET),
        "blocks may be stored twice, and a layout of tiles has one slot for each",
    ),
    "parts": (
        dict(format=lacis.decompose(ell=lacis.Ell(1), rest=lacis.Coo)),
        "no part of the sum has stored blocks that fill a tile",
    ),
    "strict": (
        dict(format=lacis.Bsr(64, 64), strict=True),
        "NaN and infinity are kept to the outputs of kept entries (strict), which tiles may spread",
    ),
    "sampled": (
        dict(format=lacis.Csr, expression="nk,bn,bk->nk"),
        "it is no product of two dense matrices, sampled where blocks are stored",
    ),
}


@pytest.mark.parametrize("case", mostly_long(REMARKS, "entries", "types"))
def test_a_product_on_plain_loops_says_why(case):
    arguments, why = REMARKS[case]
    kernel = compiled(**arguments)
    assert kernel.remarks == (f"tensorize: {why}",)
    assert not any(step.mnemonic == "tensorize" for step in kernel.steps)


def test_a_step_that_contradicts_a_rule_is_named_with_its_line():
    """Each rule says why, and the steps stay the user's own."""
    given = steps.Split("b", 4)
    kernel = compiled(lacis.Bsr(64, 64), steps=[given])
    where = f'split("b", 4) at {format_location(given.location)}'
    assert kernel.remarks == (
        f"tensorize: {where}: tiles have a multiple of 16 columns, up to 256",
        f'cuda cores: {where}: the rule takes split("b", 128)',
    )
    assert kernel.steps[0] == given and not any(step.mnemonic == "tensorize" for step in kernel.steps)


def left_by(text, *flags):
    """The text with its steps applied, and what is said of them."""
    done = subprocess.run([lacis_tools.find("lacis-opt"), "-", *flags], input=text, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_rules_that_more_room_or_another_unit_contradicts_say_so():
    """Where the steps alone are no schedule the error says which rules they have dropped."""
    with pytest.raises(lacis.CompileError, match="bind: a CPU has no 'block.y'; use parallel"):
        pattern, dense = (
            lacis.pack(torch.ones(10, 24), lacis.BlockedEll(2, 4)).pattern,
            (torch.ones(10, 5), torch.ones(24, 5)),
        )
        lacis.compile("ij,ib,jb->ij", pattern, *dense, steps=[steps.Bind("j1", "block.y")])
    own = [steps.Split("j1", 2), steps.Vectorize("j11", 2)]
    kernel = lacis.compile("ij,ib,jb->ij", pattern, torch.ones(10, 4), torch.ones(24, 4), steps=own)
    assert kernel.remarks == ("cpu: loop 'b1' would add up a vector within a vector",)
    w, x = lacis.pack(torch.ones(128, 128).bfloat16(), lacis.Bsr(16, 16)), torch.ones(128, 128).bfloat16()
    kernel = lacis.compile("nk,bk->bn", w, x, target="cuda:sm_90a")
    roomy = [
        dataclasses.replace(step, capacity=99) if step.mnemonic == "regroup" else step
        for step in kernel.steps
        if "upto" not in str(step)
    ]
    spec = capture_einsum("nk,bk->bn", [w, x], None, tuple(roomy))[0]
    assert "a stage has at most 24 tiles" in left_by(emit(spec), "-lacis-to-loops=target=cuda arch=sm_90a")


@pytest.mark.long
def test_an_epilogue_that_no_tile_has_is_named():
    x = torch.ones(128, 128).bfloat16()
    wide = lacis.pack(torch.ones(128, 128, dtype=torch.bfloat16), lacis.Bsr(64, 64))
    kernel = lacis.compile("nk,bk->bn", wide, x, epilogue=lacis.Epilogue(bias=x, bias_axis="nb"), target="cuda:sm_80")
    assert kernel.remarks == (
        "tensorize: what follows the sum reads more than vectors along 'n' or 'b', numbers, and one residual",
    )


def test_a_product_on_tiles_and_one_on_a_cpu_have_nothing_to_say():
    kernel = compiled(lacis.Bsr(64, 64))
    assert kernel.remarks == () and any(step.mnemonic == "tensorize" for step in kernel.steps)
    w = lacis.pack(torch.eye(8), lacis.Csr)
    assert lacis.compile("nk,bk->bn", w, torch.ones(3, 8)).remarks == ()


def test_the_command_line_repeats_them(tmp_path):
    file = tmp_path / "kernel.mlir"
    file.write_text(compiled(lacis.Csr).asm["lacis"])
    command = [lacis_tools.find("lacis-compile"), file, "--target=cuda:sm_90a", "--emit=artifact", "--remarks"]
    done = subprocess.run([*map(str, command), "-o", str(tmp_path / "out")], capture_output=True, text=True, check=True)
    assert done.stderr == "remark: tensorize: entries are not stored in dense blocks\n"


def test_a_report_has_a_column_where_a_layer_has_one():
    row = Row("0.weight", "linear", "Csr", "", 0.1, 1, 1, 1, 0.0, "loops", 1.0, None, 2.0, None)
    said = dataclasses.replace(row, why="tensorize: entries are not stored in dense blocks")
    assert "why" not in str(Report((row,)))
    assert "why" in str(Report((row, said))) and "entries are not stored in dense blocks" in str(Report((row, said)))
    assert Report((said,)).to_dict()["rows"][0]["why"] == said.why
