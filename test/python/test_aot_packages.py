# SPDX-License-Identifier: Apache-2.0
"""Packages of AOTInductor: built models that run without Python's compiler, here and in another process."""

import os
import shutil
import subprocess
import sys

import lacis
import pytest
import torch
from test_forward import build

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="AOTInductor needs g++")

ELSEWHERE = """
import sys, torch, lacis
from lacis import _core
_core.compile = None
folder = sys.argv[1]
run = torch._inductor.aoti_load_package(folder + "/model.pt2")
for x, y in torch.load(folder + "/expected.pt"):
    torch.testing.assert_close(run(x), y)
"""


def test_a_package_runs_here_and_in_another_process(tmp_path):
    model, _ = build()
    model.eval()
    batch = torch.export.Dim("batch", min=2)
    inputs = [torch.randn(count, 40) for count in (3, 7)]
    with torch.no_grad():
        program = torch.export.export(model, (inputs[0],), dynamic_shapes=({0: batch},))
        package = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.pt2"))
        expected = [model(x) for x in inputs]
        run = torch._inductor.aoti_load_package(package)
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            for x, y in zip(inputs, expected):
                torch.testing.assert_close(run(x), y)
    lacis.save_kernels(model, tmp_path / "kernels")
    torch.save(list(zip(inputs, expected)), tmp_path / "expected.pt")
    environment = {**os.environ, "LACIS_KERNEL_PATH": str(tmp_path / "kernels")}
    subprocess.run([sys.executable, "-c", ELSEWHERE, str(tmp_path)], env=environment, check=True)


def test_exported_programs_train_cast_and_check():
    model, _ = build()
    x = torch.randn(3, 40)
    with torch.no_grad():
        program = torch.export.export(model.eval(), (x,)).module()
    assert "einsum.exported" in program.code
    with pytest.raises(lacis.DataError, match="which the call did not bring in 'companions'"):
        program(x.clone().requires_grad_()).sum().backward()
    for each in (model, program):
        each.get_parameter("0.weight.values").requires_grad_(False)
    found = [torch.autograd.grad(each(x).square().sum(), each.get_parameter("0.bias")) for each in (model, program)]
    torch.testing.assert_close(*found)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert program(x).dtype == torch.bfloat16
    layer, tests = model[0], ("test_schema", "test_autograd_registration", "test_faketensor")
    kernel = layer.family().kernel
    arguments = [x, layer.bias, *kernel.arrays(layer.weight.packed())], 2, [3, 24], kernel.key, [24, 40]
    torch.library.opcheck(torch.ops.lacis.einsum.exported, arguments, test_utils=tests)
    with pytest.raises(RuntimeError, match="lacis data: expected at least 9 tensors, got 5"):
        torch.ops.lacis.einsum.exported(arguments[0], 9, *arguments[2:])
