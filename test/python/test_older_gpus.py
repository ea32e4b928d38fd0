# SPDX-License-Identifier: Apache-2.0
"""GPUs before sm_80: kernels assemble for sm_75, a block shares tiles in plain loops, and `mma` is refused."""

import pytest
import torch
from strategies import mostly_long
from test_plain_tiles import CASES, weight

import lacis
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.errors import CompileError
from lacis.runtime.kernels import compile_kernel

OLD = "cuda:sm_75"

MMA = "tensorize: 'mma' needs sm_80 or later; without a kind, tiles become plain loops here"


def operands_of(case, expression):
    packed = weight(case)
    rows, columns = packed.shape
    x, dy = (torch.zeros(300, size, dtype=packed.dtype) for size in (columns, rows))
    by_output = {"ij,bj->bi": [packed, x[:8]], "ij,bi->bj": [packed, dy], "ij,bi,bj->ij": [packed.pattern, dy, x]}
    return by_output[expression]


def steps_on(target, expression, operands):
    texts = compile_kernel(emit(capture_einsum(expression, operands, None)[0]), target).info["steps"]
    return [lacis.steps.parse(text) for text in texts if "upto" not in text]


TURNS = [
    (case, target, expression)
    for case in CASES
    for target in ("cuda:sm_80", "cuda:sm_89")
    for expression in ("ij,bj->bi", "ij,bi->bj", "ij,bi,bj->ij")
    if case != "8" or expression == "ij,bj->bi"
    if case != "256" or expression != "ij,bi,bj->ij"  # columns of a sampled block that no tile has there
]
SHORT = ("16", "cuda:sm_90a", "ij,bj->bi")  # whose kernel other tests have, on a CPU
TURNS.append(SHORT)


@pytest.mark.parametrize("case, target, expression", mostly_long(TURNS, SHORT))
def test_tiles_become_plain_loops(case, target, expression):
    operands = operands_of(case, expression)
    steps = steps_on(target, expression, operands)
    kernel = compile_kernel(emit(capture_einsum(expression, operands, None, steps)[0]), OLD)
    assert "lacis.mma" in kernel.stages["tiles"]
    assert "bar" in kernel.stages["ptx"] and not any(
        word in kernel.stages["ptx"] for word in ("mma.sync", "cp.async", "ldmatrix", "mbarrier")
    )
    launches = kernel.info["launches"]  # the last may add up parts of a sum, without tiles in shared memory
    assert launches[-1]["block"] == [64, 1, 1] and 0 < max(each["shared"] for each in launches) <= 65536


@pytest.mark.parametrize("case", mostly_long(list(CASES), "16"))
def test_the_default_needs_no_tensor_cores(case):
    operands = operands_of(case, "ij,bj->bi")
    kernel = compile_kernel(emit(capture_einsum("ij,bj->bi", operands, None)[0]), OLD)
    assert "tensorize" not in str(kernel.info["steps"])


def test_products_of_a_warp_are_refused():
    operands = operands_of("16", "ij,bj->bi")
    texts = compile_kernel(emit(capture_einsum("ij,bj->bi", operands, None)[0]), "cuda:sm_80").info["steps"]
    steps = [lacis.steps.parse(text) for text in texts]
    with pytest.raises(CompileError, match=MMA):
        compile_kernel(emit(capture_einsum("ij,bj->bi", operands, None, steps)[0]), OLD)


def test_older_ones_are_refused():
    operands = operands_of("16", "ij,bj->bi")
    with pytest.raises(CompileError, match="names no architecture from sm_75 up"):
        compile_kernel(emit(capture_einsum("ij,bj->bi", operands, None)[0]), "cuda:sm_70")
