# SPDX-License-Identifier: Apache-2.0
"""A target that names an architecture compiles on any machine, without values too; only a call needs its device."""

import os

import pytest
import torch

import lacis
from lacis.capture import capture_einsum

TARGET = "cuda:sm_90a"
W = lacis.pack(torch.ones(13, 11), lacis.Csr)
X = torch.randn(7, 11)


@pytest.mark.parametrize("w, x", [(W, X), (W, X.to("meta")), (W.to("meta"), X.to("meta"))], ids=["cpu", "x", "meta"])
def test_an_einsum_is_compiled_for_a_gpu_that_is_not_here(w, x, tmp_path):
    kernel = lacis.compile("nk,bk->bn", w, x, target=TARGET)
    assert kernel.target == TARGET and kernel.key == lacis.compile("nk,bk->bn", W, X, target=TARGET).key
    assert {"lacis", "loops", "buffers", "target", "llvm", "ptx"} <= set(kernel.stages)
    assert ".target sm_90a" in kernel.asm["ptx"]
    lacis.save_kernels(kernel, tmp_path)
    assert os.listdir(tmp_path) == [f"{kernel.key}.lacis"]


def test_only_the_call_is_refused():
    kernel = lacis.compile("nk,bk->bn", W, X, target=TARGET)
    what = (
        "compiled for 'cuda:sm_90a', operand 0 is on cpu; move the operands to a GPU of that architecture, or compile"
    )
    with pytest.raises(lacis.DataError, match=what) as caught:
        kernel(W, X)
    assert caught.value.location[0] == __file__
    with pytest.raises(lacis.DataError, match="compiled for 'cpu', operand 1 is on meta; move the operands to the CPU"):
        lacis.compile("nk,bk->bn", W, X)(W, X.to("meta"))
    (other,) = lacis.compile_many([("nk,bk->bn", W, X)], target=TARGET)
    assert other.key == kernel.key


def test_the_default_schedule_is_that_of_the_target_and_not_of_the_machine():
    """What a GPU's schedule is told of a pattern is found on a CPU as well."""
    dense = torch.zeros(600, 500)
    dense[3] = 1
    packed = lacis.pack(dense, lacis.Csr)
    spec = capture_einsum("ij,j->i", [packed, torch.ones(500)], kind="cuda")[0]
    assert spec.uneven == ("i",) and spec.eighths == 1
    here = capture_einsum("ij,j->i", [packed, torch.ones(500)])[0]
    assert here.uneven == () and here.eighths == 8


def model(device, train=False):
    with torch.device(device):
        return torch.nn.Sequential(torch.nn.Linear(40, 24), torch.nn.Identity()).train(train)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_model_is_compiled_for_a_gpu_that_is_not_here(device, tmp_path):
    dense = model(device)
    state, modules = dict(dense.state_dict()), list(dense.modules())
    s = lacis.create_schedule(dense, target=TARGET)
    s["0.weight"].set_format(lacis.Csr)
    kernels = s.compile_only()
    assert repr(kernels) == "{'0.weight': Kernels(forward, grad_values, grad_input)}"
    assert ".target sm_90a" in kernels["0.weight"]["forward"].asm["ptx"]
    lacis.save_kernels(kernels, tmp_path)
    assert len(os.listdir(tmp_path)) == 1, "those of gradients are compiled when first looked at"
    assert list(dense.modules()) == modules and all(v is not None for v in state.values())
    with pytest.raises(lacis.Error, match="'0.weight' is on .*compile_only.. of a schedule"):
        s.build()


def test_a_model_that_trains_has_its_gradients_compiled(tmp_path):
    s = lacis.create_schedule(model("cpu", train=True), target=TARGET)
    s["0.weight"].set_format(lacis.Csr)
    kernels = s.compile_only()
    lacis.save_kernels(kernels, tmp_path)
    assert len(os.listdir(tmp_path)) == 3
    assert all(kernel.target == TARGET for kernel in kernels["0.weight"].values())


@pytest.mark.parametrize(
    "target, device, why",
    [
        ("cuda", "cpu", "'0.weight' is on cpu, the target is 'cuda'; move it, or take target='auto'"),
        ("auto", "meta", "'0.weight' is on meta and has no values; load them first"),
        ("eager", "cpu", "compile_only: target 'eager' has no kernels"),
    ],
)
def test_a_target_must_be_known(target, device, why):
    s = lacis.create_schedule(model(device), target=target)
    with pytest.raises(lacis.ScheduleError, match="compile_only: nothing is scheduled"):
        s.compile_only()
    s["0.weight"].set_format(lacis.Csr)
    with pytest.raises(lacis.Error, match=why):
        s.compile_only()


@pytest.mark.parametrize("target", ["auto", "cpu", "eager"])
def test_a_model_without_values_is_not_built(target):
    s = lacis.create_schedule(model("meta"), target=target)
    s["0.weight"].set_format(lacis.Csr)
    with pytest.raises(lacis.DataError, match="'0.weight' is on meta and has no values; load them first"):
        s.build()


def test_what_has_no_kernels_is_not_saved(tmp_path):
    with pytest.raises(lacis.DataError, match="save_kernels: a str has no kernels; give a built model"):
        lacis.save_kernels("model", tmp_path / "kernels")
    with pytest.raises(lacis.ScheduleError, match="no target 'cuda:sm_90b'"):
        lacis.compile("nk,bk->bn", W, X, target="cuda:sm_90b")
