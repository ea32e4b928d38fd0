# SPDX-License-Identifier: Apache-2.0
"""Knobs change what they say: checks before each launch, messages, the assembler."""

import logging
import stat

import lacis
import pytest
import torch
from lacis import knobs
from lacis.runtime import kernels, ptxas


@pytest.fixture
def debug(monkeypatch):
    monkeypatch.setenv("LACIS_DEBUG", "1")


def packed(format=lacis.Csr):
    torch.manual_seed(0)
    return lacis.pack(torch.randn(24, 40) * (torch.rand(24, 40) < 0.3), format)


def test_debug_checks_what_a_packed_operand_holds(debug):
    w, x = packed(), torch.randn(5, 40)
    kernel = lacis.compile("ij,bj->bi", w, x)
    kernel(w, x)
    w.storage["crd1"][3] = 40
    with pytest.raises(lacis.DataError, match=r"'crd1' at \[3\]: coordinate 40 is out of range"):
        kernel(w, x)
    with pytest.raises(lacis.DataError, match=r"'crd1' at \[3\]"):
        lacis.einsum("ij,bj->bi", w, x)


@pytest.mark.parametrize("grad", [False, True])
def test_debug_checks_what_a_layer_holds(debug, grad):
    model = torch.nn.Sequential(torch.nn.Linear(40, 24))
    s = lacis.create_schedule(model, target="cpu")
    s["0.weight"].sparsify(lacis.Magnitude(0.8)).set_format(lacis.Csc)
    s.build()
    weight, x = model[0].weight, torch.randn(5, 40)
    with torch.set_grad_enabled(grad):
        model(x)
        derived = next(iter(weight.derived.values()))
        getattr(weight, derived["crd1"])[0] += 1
        with pytest.raises(lacis.DataError, match=f"'{derived['crd1']}' is not what follows from the pattern"):
            model(x)
        weight.refresh()
        model(x)
        weight.pos1[2] = 1000
        with pytest.raises(lacis.DataError, match="'pos1'.*positions must not decrease"):
            model(x)


def test_log_says_what_was_compiled(monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("LACIS_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("LACIS_LOG", "info")
    monkeypatch.setattr(kernels, "_kernels", {})
    w = packed()
    text = lacis.compile("ij,bj->bi", w, torch.randn(5, 40)).text
    kernels.compile_kernel(text, "cpu")
    assert any("compiled in" in record.message for record in caplog.records)
    monkeypatch.setenv("LACIS_LOG", "shout")
    monkeypatch.setattr(kernels, "_kernels", {})
    with pytest.raises(lacis.Error, match="no level 'shout'; there are debug, info, warning, error"):
        kernels.compile_kernel(text, "cpu")
    logging.getLogger("lacis").setLevel(logging.NOTSET)


@pytest.mark.parametrize("fails", ["always", "on PTX", "missing"])
def test_the_driver_assembles_where_ptxas_does_not(monkeypatch, caplog, tmp_path, fails):
    fake = tmp_path / "ptxas"
    if fails != "missing":
        test = "" if fails == "always" else 'case "$*" in --version) echo "release 1.0"; exit 0;; esac;'
        fake.write_text(f"#!/bin/sh\n{test} echo no thanks; exit 3\n")
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    ptxas.version.cache_clear()
    monkeypatch.setenv("LACIS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("LACIS_PTXAS", str(fake))
    monkeypatch.setattr(kernels, "_kernels", {})
    text = lacis.compile("ij,bj->bi", packed(), torch.randn(5, 40)).text
    kernel = kernels.compile_kernel(text, "cuda:sm_80")
    assert kernel.info["kind"] == "ptx"
    assert any("driver" in record.message and "ptxas" in record.message for record in caplog.records)
    ptxas.version.cache_clear()


def test_every_knob_is_in_the_table_of_the_docs():
    assert all(
        line in open(f"{__file__.rpartition('/test/')[0]}/docs/knobs.md").read() for line in knobs.table().splitlines()
    )
