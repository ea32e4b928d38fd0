# SPDX-License-Identifier: Apache-2.0
"""Training on a GPU: gradients, autocast, a whole step in a CUDA graph, and no dense temporary in a gradient."""

import dataclasses
import pathlib
import sys
import threading

import lacis
import pytest
import torch
from lacis.sparsifiers.choose import hashed, keep_largest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from training import FORMATS, SHAPE, assert_gradients_match, build, masked

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.mark.parametrize("format", FORMATS)
def test_gradients_are_those_of_the_masked_dense_model(format):
    model, _ = build(format, "cuda", device="cuda")
    twin = masked(model)
    x = torch.randn(33, SHAPE[0], device="cuda", requires_grad=True)
    y = x.detach().clone().requires_grad_()
    model(x).square().mean().backward()
    twin(y).square().mean().backward()
    torch.testing.assert_close(x.grad, y.grad)
    assert_gradients_match(model, twin)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_and_grad_scaler(dtype):
    model, _ = build("csc", "cuda", device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, fused=True)
    scaler = torch.amp.GradScaler("cuda", enabled=dtype == torch.float16)
    x = torch.randn(64, SHAPE[0], device="cuda")
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype):
            y = model(x)
            assert y.dtype == dtype
            loss = (y.float() - 1).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("format", ["csr", "bsr", "nest", "sum"])
def test_a_whole_step_in_a_cuda_graph(format):
    model, _ = build(format, "cuda", device="cuda")
    twin, _ = build(format, "cuda", device="cuda")
    x = torch.randn(32, SHAPE[0], device="cuda")

    def stepper(each):
        optimizer = torch.optim.AdamW(each.parameters(), lr=0.01, capturable=True)

        def step():
            optimizer.zero_grad(set_to_none=False)
            (each(x) - 1).square().mean().backward()
            optimizer.step()

        return step

    ours, theirs = stepper(model), stepper(twin)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            ours()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ours()
    for _ in range(5):
        graph.replay()
    for _ in range(8):
        theirs()
    for mine, other in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(mine, other)


def test_gradients_make_no_dense_temporary():
    """A weight of 64 MiB with 1 % of its entries: the backward pass needs a fraction of the dense gradient."""
    dense = torch.randn(4096, 4096, device="cuda") * (torch.rand(4096, 4096, device="cuda") < 0.01)
    packed = lacis.pack(dense, lacis.Csr)
    del dense
    tensor = packed.values.clone().requires_grad_()
    x = torch.randn(64, 4096, device="cuda", requires_grad=True)
    for _ in range(2):  # the first call compiles and makes the companion index
        y = lacis.einsum("ij,bj->bi", packed.with_values(tensor), x)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        y.sum().backward()
        peak = torch.cuda.max_memory_allocated() - before
        tensor.grad = x.grad = None
    assert peak < 8 * 2**20


@pytest.mark.parametrize("policy", [lacis.Random(0.9), lacis.Magnitude(0.9)], ids=["random", "magnitude"])
def test_choosing_takes_no_more_than_twice_the_weight(policy):
    """More numbers than are sorted at once."""
    weight = torch.randn(16384, 16384, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    mask = policy(weight)
    held = torch.cuda.max_memory_allocated() - before
    assert held < 2 * weight.nbytes
    assert int(mask.sum()) == round(0.1 * weight.numel())  # which widens each of them to eight bytes


def test_choosing_stays_on_the_stream_of_its_caller():
    """A stream is current in one thread: what another one launches does not wait for it."""
    threads, words = set(), hashed(2**26, 0, "cuda")
    seen = dataclasses.replace(words, at=lambda where: threads.add(threading.get_ident()) or words.at(where))
    assert int(keep_largest(seen, 1000).sum()) == 1000
    assert threads == {threading.get_ident()}
