# SPDX-License-Identifier: Apache-2.0
"""Kernels for a CPU whose steps are those of a GPU with other numbers, drawn at random."""

import dataclasses

import tally

import lacis
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.errors import CompileError
from lacis.runtime.kernels import compile_kernel

GPUS = ("cuda:sm_90a", "cuda:sm_80", "cuda:sm_89")


def drawn_kernel(draw, expression, operands, after, drawn_step, name, reason):
    """The kernel, or None where a nest has no tiles or is refused for the reason; and the case in words.

    All three outcomes are counted."""
    spec, target = capture_einsum(expression, operands, None, epilogue=after)[0], draw.choice(GPUS)
    # Of a sample that few blocks have, those are gathered.
    spec = dataclasses.replace(spec, eighths=draw.choice((8, 2)))
    texts = compile_kernel(emit(spec), target).info["steps"]
    steps = [drawn_step(draw, lacis.steps.parse(text)) for text in texts if "upto" not in text]
    case = f"{expression} {[tuple(each.shape) for each in operands]} {operands[0]} {target} {after} {steps}"
    if not any(step.mnemonic == "tensorize" for step in steps):
        tally.counts[f"drawn {name} without tiles"] += 1
        return None, case
    try:
        kernel = lacis.compile(expression, *operands, epilogue=after, steps=steps, target="cpu")
    except CompileError as error:
        assert reason in str(error), f"{case}: {error}"
        tally.counts[f"drawn {name} refused"] += 1
        return None, case
    tally.counts[f"drawn {name} on tiles"] += 1
    return kernel, case


def drawn_width(draw, format):
    """The format, or the same one whose positions have 64 bits."""
    wide = lacis.Format.parse(str(format).replace("compressed", "compressed<pos=i64, crd=i64>"))
    return wide if draw.random() < 0.25 else format


def drawn_blocks(draw):
    """A format whose positions have several tiles, in levels of their own, and the size of all of them."""
    (rows, down), (columns, across) = [(draw.choice((64, 128)), draw.randint(1, 3)) for _ in "ij"]
    between = [f"i floordiv {rows} mod {down} : dense", f"j floordiv {columns} mod {across} : dense"]
    draw.shuffle(between)
    inner = [f"i mod {rows} : dense", f"j mod {columns} : dense"]
    draw.shuffle(inner)
    block = rows * down, columns * across
    levels = [f"i floordiv {block[0]} : dense", f"j floordiv {block[1]} : compressed", *between, *inner]
    return lacis.Format.parse(f"(i, j) -> ({', '.join(levels)})"), block
