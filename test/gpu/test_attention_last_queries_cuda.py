# SPDX-License-Identifier: Apache-2.0
"""Steps of a generation on a GPU: queries at the end of a cache of keys, on poisoned memory and in a CUDA graph."""

import copy
import math
import pathlib
import sys

import poison
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

from test_attention_last_queries import HEADS, RULES, entries  # noqa: E402

import lacis  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def operands(queries: int, keys: int, group: int, dtype=torch.bfloat16):
    q = torch.randn(2, HEADS, queries, 64, device="cuda").to(dtype)
    return q, *torch.randn(2, 2, HEADS // group, keys, 64, device="cuda").to(dtype)


def check(found, rule, q, k, v):
    kept = entries(rule, q.shape[2], k.shape[2]).to(q.device)
    q, k, v = q.double(), *(x.repeat_interleave(HEADS // x.shape[1], 1).double() for x in (k, v))
    expected = (q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])).masked_fill(~kept, -math.inf).softmax(-1) @ v
    assert (found.double() - expected).norm() < 2**-7 * expected.norm()


@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize("queries", [1, 3, 16, 100, 128])
@pytest.mark.parametrize("name", ["Causal", "Local", "BigBird", "by head"])
def test_the_last_rows(name, queries, group):
    rule = copy.copy(RULES[name])
    rule.block = 64
    for keys in (340, 1000):
        given = operands(queries, keys, group)
        with poison.allocations():
            check(lacis.attention(*given, lacis.LastQueries(rule)), rule, *given)


def test_a_graph_holds_a_step():
    rule, given = lacis.Local(80, causal=True), operands(1, 340, 4)
    last = lacis.LastQueries(rule)
    lacis.attention(*given, last)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = lacis.attention(*given, last)
    for keys in range(341, 420):  # patterns of other steps come and go
        lacis.attention(*operands(1, keys, 4), last)
    for tensor in given:
        tensor.copy_(torch.randn_like(tensor))
    graph.replay()
    check(found, rule, *given)
