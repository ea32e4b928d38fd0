# SPDX-License-Identifier: Apache-2.0
"""What the default schedule of a GPU asks for, read from the steps of kernels that are compiled for one."""

import dataclasses

import lacis
import strategies
import torch
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.runtime.kernels import compile_kernel


def steps_of(expression: str, x: torch.Tensor, **facts) -> list:
    packed = lacis.pack(strategies.sparse(24, 40), lacis.Csr)
    spec = dataclasses.replace(capture_einsum(expression, [packed, x])[0], eighths=1, **facts)
    return [lacis.steps.parse(text) for text in compile_kernel(emit(spec), "cuda:sm_90a").info["steps"]]


def limits(steps) -> list[int]:
    return [step.most for step in steps if step.mnemonic == "upto"]


def test_up_to_64_tokens_have_nests_of_their_own_and_more_take_whole_panels():
    """32 divides the number of tokens: the rows of a warp stay one, whatever that number is."""
    steps = steps_of("ij,bj->bi", torch.zeros(96, 40))
    assert limits(steps) == [32, 64]
    assert lacis.steps.Split("b", 128) in steps and lacis.steps.Split("i", 4) in steps


def test_one_feature_of_an_uneven_graph_is_shared_out_like_a_vector():
    steps = steps_of("ij,jk->ik", torch.zeros(40, 1), uneven=("i",), large=("i", "j"))
    assert limits(steps) == [1, 4, 8]
    shares = [step for step in steps if step.mnemonic == "split_nnz"]
    vector = steps_of("ij,j->i", torch.zeros(40), uneven=("i",))
    assert shares[0] == lacis.steps.SplitNnz("upto1.i_upto1.j", 512)
    assert lacis.steps.SplitNnz("i_j", 512) in vector and lacis.steps.Split("i", 4) in vector


def test_sampled_products_go_by_rows_where_a_step_asks_for_it():
    """The warps of a block, and parts of them, share the entries of a row, and each sums four entries at once."""
    walk = lacis.steps.Walk("0", "i")
    pattern = lacis.pack(strategies.sparse(24, 40), lacis.Csr).pattern
    a, b = torch.zeros(24, 128), torch.zeros(40, 128)
    kernel = lacis.compile("ij,ik,jk->ij", pattern, a, b, steps=[walk], target="cuda:sm_90a")
    assert "lacis.walk %" not in kernel.asm["loops"] and walk in kernel.steps
    for step in (lacis.steps.SplitNnz("j", parts=16), lacis.steps.Bind("j00", "warp"), lacis.steps.Jam("j11")):
        assert step in kernel.steps
    again = lacis.compile("ij,ik,jk->ij", pattern, a, b, steps=kernel.steps, target="cuda:sm_90a")
    assert again.asm["ptx"] == kernel.asm["ptx"]
