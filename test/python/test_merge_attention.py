# SPDX-License-Identifier: Apache-2.0
"""Parts of attention are merged by one kernel, in the form of a CPU and in that of a GPU."""

import math

import pytest
import torch

import lacis
from lacis.attentions.merge import merged_parts
from lacis.emit.merge_parts import merge_parts
from lacis.runtime import library, ptxas
from lacis.runtime.kernels import compile_kernel


def drawn(parts, rows, width, dtype=torch.float32, batch=2):
    torch.manual_seed(parts + rows)
    outputs = torch.randn(batch, parts, rows, width).to(dtype)
    return outputs, torch.randn(batch, parts, rows, dtype=torch.promote_types(dtype, torch.float32)) * 20


def spoilt(outputs, logs):
    """The first row has no part, the second one alone; what the others hold counts nowhere."""
    logs[:, :, 0] = -math.inf
    logs[:, 1:, 1] = -math.inf
    outputs[(logs == -math.inf)] = math.nan


def exact(outputs, logs):
    shares = torch.softmax(logs.double(), 1).nan_to_num(0.0)[..., None]
    return (shares * outputs.double().nan_to_num(0.0)).sum(1), torch.logsumexp(logs.double(), 1)


def check(found, outputs, logs):
    (merged, total), (want, sums) = found, exact(outputs, logs)
    eps = torch.finfo(merged.dtype).eps
    torch.testing.assert_close(merged.double(), want, rtol=4 * eps, atol=8 * torch.finfo(logs.dtype).eps)
    torch.testing.assert_close(total.double(), sums, rtol=1e-6, atol=1e-5)


SHAPES = [(3, 5, 64), (1, 2, 40), (67, 2, 128), (5, 3, 7), (9, 300, 1)]


@pytest.mark.parametrize("shape", [SHAPES[0], *(pytest.param(each, marks=pytest.mark.long) for each in SHAPES[1:])])
@pytest.mark.parametrize("spoil", [False, True])
def test_parts_are_merged(shape, spoil):
    given = drawn(*shape)
    if spoil:
        spoilt(*given)
    check(merged_parts(*given, torch.float32), *given)


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("wide", [False, True])
def test_types(dtype, wide):
    """Outputs in the type of the sums, or rounded once."""
    given = drawn(6, 4, 64, dtype)
    given = (given[0].to(given[1].dtype), given[1]) if wide else given
    spoilt(*given)
    check(merged_parts(*given, dtype), *given)


@pytest.mark.long
@pytest.mark.parametrize("parts", [1, 8, 70, 200])
def test_the_form_of_a_gpu(parts):
    """Warps with parts of their own, run on a CPU one after another."""
    library.register()
    text = merge_parts("f32", "f32", "f32", 4, is_on_gpu=True).replace("nvvm.barrier0", "")
    key = compile_kernel(text, "cpu").key
    outputs, logs = drawn(parts, 3, 200)
    spoilt(outputs, logs)
    given = [outputs, logs], [], [2, 3, 200], key, [], [([2, 3], torch.float32)]
    with torch.no_grad():
        check(library.chain(*given), outputs, logs)


@pytest.mark.long
@pytest.mark.parametrize("types", [("f32", "bf16", "f32", 4), ("f16", "f16", "f32", 1), ("f64", "f64", "f64", 2)])
def test_code_is_assembled_without_spills(types):
    if ptxas.find() is None:
        pytest.skip("no ptxas")
    text = merge_parts(*types, is_on_gpu=True)
    lacis._core.compile(text, "cuda:sm_90a", {"ptxas": ptxas.find(), "check_ptxas": True})


def pairs(dtype=torch.float64):
    torch.manual_seed(1)
    outputs = [torch.randn(2, 4, 6, dtype=dtype, requires_grad=True) for _ in range(3)]
    logs = [torch.randn(2, 4, dtype=dtype, requires_grad=True) for _ in range(3)]
    return outputs, logs


def test_gradients_once_and_twice():
    outputs, logs = pairs()
    merge = lambda *given: lacis.merge_attention(list(zip(given[:3], given[3:])))
    assert torch.autograd.gradcheck(merge, (*outputs, *logs))
    assert torch.autograd.gradgradcheck(merge, (*outputs, *logs))


def test_gradients_of_empty_parts():
    outputs, logs = pairs()
    with torch.no_grad():
        logs[1][0] = -math.inf
        outputs[1][0] = math.nan
        for log in logs:
            log[1, 0] = -math.inf
    merged, total = lacis.merge_attention(list(zip(outputs, logs)))
    assert not merged[1, 0].any() and total[1, 0] == -math.inf
    found = torch.autograd.grad(merged.sum() + total[total.isfinite()].sum(), (*outputs, *logs))
    assert all(each.isfinite().all() for each in found)
    assert not found[1][0].any() and not found[4][0].any()


def test_numbers_that_are_none_are_seen():
    outputs, logs = (torch.ones(1, 2, 3, 8), torch.zeros(1, 2, 3))
    logs[0, 1, 1] = math.nan
    merged, total = merged_parts(outputs, logs, torch.float32)
    assert merged[0, 1].isnan().all() and total[0, 1].isnan() and not merged[0, ::2].isnan().any()


def test_parts_in_graphs_and_transforms():
    outputs, logs = (list(each) for each in pairs(torch.float32))
    merge = lambda *given: lacis.merge_attention(list(zip(given[:3], given[3:])))
    want = merge(*outputs, *logs)
    compiled = torch.compile(merge, backend="aot_eager", fullgraph=True)(*outputs, *logs)
    mapped = torch.func.vmap(merge)(*outputs, *logs)
    for found in (compiled, mapped):
        torch.testing.assert_close(found, want)
