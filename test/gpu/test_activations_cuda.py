# SPDX-License-Identifier: Apache-2.0
"""Activations that are packed on a GPU: numbers of the masked dense model, without a wait, and within CUDA graphs."""

import pytest
import torch
from test_tile_schedules_cuda import check

import lacis

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
RULES = {
    "threshold": (lacis.Threshold(0.5), None),
    "relu": (None, None),
    "nm": (lacis.NM(2, 4), None),
    "magnitude": (lacis.Magnitude(0.8), None),
    "blocks": (lacis.BlockMagnitude(0.75), (16, 16)),
}
FORMATS = {"csr": lacis.Csr, "csc": lacis.Csc, "coo": lacis.Coo}
CASES = [(rule, format) for rule in RULES if rule != "blocks" for format in FORMATS] + [("blocks", "bsr")]


def build(rule, format, dtype):
    """A model whose activation is packed, and what answers its numbers: the same model, masked."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(256, 384), torch.nn.ReLU(), torch.nn.Linear(384, 128)
    model = torch.nn.Sequential(*layers).to("cuda", dtype)
    sparsifier, block = RULES[rule]
    s = lacis.create_schedule(model)
    edge = s["1:out"] if sparsifier is None else s["1:out"].sparsify(sparsifier)
    edge = edge if block is None else edge.block(*block)
    edge.set_format(lacis.Bsr if block else FORMATS[format])
    chosen = sparsifier if block is None else sparsifier.with_block(block)

    def masked(x):
        hidden = torch.relu(layers[0](x))
        return layers[2](hidden if chosen is None else torch.where(chosen(hidden), hidden, 0))

    return s.build(), masked


def gradients(y, model, x):
    return torch.autograd.grad(y.float().square().mean(), (x, *model.parameters()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rule, format", CASES)
def test_the_numbers_come_without_a_wait(rule, format, dtype):
    model, masked = build(rule, format, dtype)
    draw = lambda: torch.randn(64, 256, device="cuda", dtype=dtype, requires_grad=True)
    x = draw()
    gradients(model(x), model, x)
    x = draw()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        y = model(x)
        found = gradients(y, model, x)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    want = masked(x)
    check(y.detach(), want.detach().double())
    for mine, theirs in zip(found, gradients(want, model, x)):
        check(mine, theirs.double())


@pytest.mark.parametrize("rule, format", CASES[:-1])  # lists of tiles are not made while a graph is captured
def test_a_graph_packs_in_each_replay(rule, format):
    model, masked = build(rule, format, torch.bfloat16)
    x = torch.randn(64, 256, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        for _ in range(3):
            model(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = model(x)
        for scale in (0.1, 1.0, 10.0):
            x.copy_(torch.randn_like(x) * scale)
            graph.replay()
            check(y, masked(x).double())
