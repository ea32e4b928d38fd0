# SPDX-License-Identifier: Apache-2.0
"""Models with attention on a pattern as exported programs and as packages of AOTInductor."""

import os
import shutil
import subprocess
import sys

import pytest
import torch
from test_aot_packages import ELSEWHERE
from test_attention_modules import made, sample

import lacis

LENGTH = 40


def built(**options):
    """With a score function, whose number the program has, and the rule's mask."""
    s = lacis.create_schedule(made(**options))
    handle = s["attention"].sparsify(lacis.Local(9)).block(8, 8).set_format(lacis.Bsr)
    handle.score(lambda score, b, h, i, j: score - 0.1 * (i - j).abs())
    return s.build()


def exported(model, *inputs):
    with torch.no_grad():
        return torch.export.export(model, inputs)


def test_an_exported_program_has_the_pattern_as_a_constant(tmp_path):
    model, x = built(), sample()
    expected = model(x).detach()
    program = exported(model, x)
    assert "torch.ops.lacis.einsum.exported" in program.graph_module.code
    other = torch.randn_like(x)
    for each in (program, _again(program, tmp_path / "program.pt2")):
        torch.testing.assert_close(each.module()(x), expected)
        torch.testing.assert_close(each.module()(other), model(other))


def _again(program, path):
    torch.export.save(program, path)
    return torch.export.load(path)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["padding", "bias"])
def test_masks_of_a_call_are_inputs(kind):
    model, x = built(), sample()
    padding = (torch.arange(LENGTH) < torch.tensor([[LENGTH], [23]]))[:, None, None].expand(2, 1, LENGTH, LENGTH)
    mask = padding if kind == "padding" else torch.randn(2, 1, LENGTH, LENGTH)
    program = exported(model, x, mask).module()
    for given in (mask, mask.flip(0)):
        torch.testing.assert_close(program(x, given), model(x, given))


REFUSED = {
    "an exported graph has no place for the log of sums, a sink, empty='nan' or dropout; call it without": {
        "dropout": 0.1},
    "an exported graph takes what is one kernel, and this is statement by statement": {
        "pattern": lacis.Pattern.from_mask(torch.ones(8, 8).tril().bool(), lacis.Hyb(1, 1))},
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_what_no_program_has_is_refused(words):
    how = {"pattern": lacis.Causal(block=4), **REFUSED[words]}

    class Attend(torch.nn.Module):
        def forward(self, x):
            return lacis.attention(x, x, x, **how)

    with pytest.raises(lacis.DataError, match=words):
        exported(Attend(), torch.randn(1, 1, 8, 4))


FOLLOWS = [lacis.TopKBlocks(1, block=4), lacis.KMeans(2, 1, block=4), lacis.Similarity(block=4)]
NO_CONSTANTS = [({"pattern": rule}, f"{type(rule).__name__} follows the queries and keys") for rule in FOLLOWS]
NO_CONSTANTS += [
    ({"pattern": torch.ones(1, 2, 2).bool()}, "is a lacis.Pattern or a rule, not Tensor; give lacis.Given")
]
NO_CONSTANTS += [({"cu_seqlens": torch.tensor([0, 3, 8])}, "cu_seqlens has no place in an exported graph")]


@pytest.mark.parametrize("how, words", NO_CONSTANTS)
def test_what_is_no_constant_is_refused(how, words):
    class Attend(torch.nn.Module):
        def forward(self, *given):
            return lacis.attention(*given, **{"pattern": lacis.Causal(block=4), **how})

    with pytest.raises(lacis.DataError, match=words):
        exported(Attend(), *torch.randn(3, 1, 2, 8, 4))


@pytest.mark.long
@pytest.mark.skipif(shutil.which("g++") is None, reason="AOTInductor needs g++")
def test_a_package_runs_here_and_in_another_process(tmp_path):
    model, inputs = built(), [sample(), torch.randn(2, LENGTH, 16)]
    program = exported(model, inputs[0])
    with torch.no_grad():
        package = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.pt2"))
        expected = [model(x) for x in inputs]
        run = torch._inductor.aoti_load_package(package)
        for x, y in zip(inputs, expected):
            torch.testing.assert_close(run(x), y)
    lacis.save_kernels(model, tmp_path / "kernels")
    torch.save(list(zip(inputs, expected)), tmp_path / "expected.pt")
    environment = {**os.environ, "LACIS_KERNEL_PATH": str(tmp_path / "kernels")}
    subprocess.run([sys.executable, "-c", ELSEWHERE, str(tmp_path)], env=environment, check=True)
