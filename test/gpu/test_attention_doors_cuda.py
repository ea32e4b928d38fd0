# SPDX-License-Identifier: Apache-2.0
"""Attention in graphs of torch.compile, in modules that call flex_attention, and in pages, on a GPU."""

import pathlib
import sys

import pytest
import torch
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

import lacis

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from test_attention_flex import Model  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
HEADS, LENGTH, DEPTH = 4, 512, 64


def operands(dtype, heads=HEADS):
    shapes = [(2, count, LENGTH, DEPTH) for count in (HEADS, heads, heads)]
    return [torch.randn(shape, device="cuda", dtype=dtype).requires_grad_() for shape in shapes]


def gradients(output, lse, operands):
    return torch.autograd.grad(output.float().square().sum() + lse.sum(), operands)


@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_graph_runs_the_kernels_of_eager_calls(dtype, scored):
    kept = torch.ones(LENGTH // 64, LENGTH // 64, device="cuda").tril().bool()
    kept = kept.repeat_interleave(64, 0).repeat_interleave(64, 1)
    pattern, given = lacis.Pattern.from_mask(kept, lacis.Bsr(64, 64)), operands(dtype)
    slopes, changes = torch.rand(HEADS, device="cuda", requires_grad=True), {"causal": True}
    if scored:
        documents = torch.arange(LENGTH, device="cuda") // 100
        changes |= {"score": lambda s, b, h, i, j: s - slopes[h] * (i - j) * 0.01}
        changes |= {"mask": lambda b, h, i, j: documents[i] == documents[j]}
        given.append(slopes)
    attend = lambda q, k, v, *_: lacis.attention(q, k, v, pattern, return_lse=True, **changes)
    compiled = torch.compile(attend, fullgraph=True)
    found, expected = compiled(*given), attend(*given)
    assert all(map(torch.equal, found, expected))
    made = [gradients(*each, given) for each in (found, expected)]
    assert all(map(torch.equal, made[0][:3], made[1][:3]))
    torch.testing.assert_close(made[0][3:], made[1][3:])  # torch adds where an element is read more than once


class Flexible(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.slopes = torch.nn.Parameter(torch.rand(HEADS, device="cuda"))
        self.attend = torch.compile(flex_attention)

    def forward(self, q, k, v, mask):
        alibi = lambda s, b, h, i, j: s - self.slopes[h] * (i - j)
        aux = AuxRequest(lse=True)
        output, aux = self.attend(q, k, v, score_mod=alibi, block_mask=mask, enable_gqa=True, return_aux=aux)
        return output, aux.lse


def test_a_module_that_compiles_flex_attention():
    """Its own kernels and ours agree, gradients of what it captures too."""
    module, given = Flexible(), operands(torch.float32, heads=2)
    mask = create_block_mask(lambda b, h, i, j: (j <= i) & (i - j < 200), None, None, LENGTH, LENGTH, device="cuda")
    leaves = [*given, module.slopes]
    theirs = module(*given, mask)
    theirs = (*theirs, *gradients(*theirs, leaves))
    for rule in (None, lacis.Causal()):
        s = lacis.create_schedule(Model(module))
        handle = s["attention"] if rule is None else s["attention"].sparsify(rule).block(64, 64)
        handle.set_format(lacis.Bsr)
        s.build()
        mine = module(*given, mask)
        mine = (*mine, *gradients(*mine, leaves))
        s.restore()
        for one, other in zip(mine, theirs):
            error = (one - other).norm() / other.norm()
            assert error < 5e-3  # their products are TF32's, or not, by their own choice


def test_pages():
    cache = [torch.randn(9, 64, 2, DEPTH, device="cuda", requires_grad=True) for _ in range(2)]
    table = torch.tensor([[7, 2, 0], [5, 7, -1]], device="cuda", dtype=torch.int32)
    q = torch.randn(2, HEADS, 128, DEPTH, device="cuda", requires_grad=True)
    blocks = torch.tensor([[[1, 0, 1], [0, 1, 1]]], device="cuda").bool()
    found = lacis.attention(q, *cache, blocks, page_table=table, return_lse=True)
    kept = blocks.repeat_interleave(64, 1).repeat_interleave(64, 2) & (table >= 0).repeat_interleave(64, 1)[:, None]
    k, v = (x[table.long().clamp(min=0)].flatten(1, 2).transpose(1, 2).repeat_interleave(2, 1) for x in cache)
    scores = torch.where(kept[:, None], q.double() @ k.double().mT / DEPTH**0.5, -torch.inf)
    expected = scores.softmax(-1) @ v.double(), scores.logsumexp(-1)
    leaves = [q, *cache]
    for one, other in zip((*found, *gradients(*found, leaves)), (*expected, *gradients(*expected, leaves))):
        torch.testing.assert_close(one.double(), other.double(), rtol=1e-4, atol=1e-4)
