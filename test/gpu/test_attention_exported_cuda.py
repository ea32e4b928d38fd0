# SPDX-License-Identifier: Apache-2.0
"""Exported programs of a model with attention on a pattern run the kernel of tensor cores."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import lacis

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)
HEADS, DEPTH, LENGTH = 4, 64, 256


class SelfAttention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs = torch.nn.Linear(HEADS * DEPTH, 3 * HEADS * DEPTH)

    def forward(self, x, mask):
        q, k, v = self.inputs(x).unflatten(-1, (3, HEADS, -1)).movedim(-3, 0).transpose(2, 3)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)


LOADED = """
import sys, torch
linear, x = torch.nn.Linear(64, 64).cuda(), torch.randn(3, 64, device="cuda")
program = torch.export.export(linear, (x,))
torch._inductor.aoti_load_package(torch._inductor.aoti_compile_and_package(program, package_path=sys.argv[1]))(x)
"""


@pytest.mark.parametrize("packaged", [False, True])
def test_programs_and_packages(packaged, tmp_path):
    if packaged and subprocess.run([sys.executable, "-c", LOADED, str(tmp_path / "linear.pt2")]).returncode:
        pytest.skip("torch's loader ends the process here, of a package of nn.Linear too")
    model = torch.nn.ModuleDict({"attention": SelfAttention()}).cuda().bfloat16()
    s = lacis.create_schedule(model)
    s["attention"].sparsify(lacis.Causal).block(64, 64).set_format(lacis.Bsr)
    s.build()
    inputs = [
        (torch.randn(2, LENGTH, HEADS * DEPTH, device="cuda").bfloat16(),
         torch.randn(2, 1, LENGTH, LENGTH, device="cuda").bfloat16())
        for _ in range(2)
    ]  # fmt: skip
    attend = model["attention"]
    with torch.no_grad():
        expected = [attend(*given) for given in inputs]
        program = torch.export.export(attend, inputs[0])
        assert "lacis.einsum.exported" in program.graph_module.code
        run = program.module()
        if packaged:
            path = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.pt2"))
            run = torch._inductor.aoti_load_package(path)
        for given, want in zip(inputs, expected):
            torch.testing.assert_close(run(*given), want)
