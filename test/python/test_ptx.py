# SPDX-License-Identifier: Apache-2.0
"""PTX of every layer of the conformance suite, assembled where an assembler is found; no GPU is needed.

Layers under random schedules are assembled where they run, in test_random_schedules.py.
"""

from __future__ import annotations

import conformance
import pytest
import strategies
import torch
from test_conformance import CASES, NAMED, has_bias

import lacis
from lacis.runtime import ptxas


def assemble(format, dtype, bias: bool, target: str, strict: bool = False, steps=(), shape=(17, 23)) -> str:
    """The PTX of a linear layer; `strict` refuses spills and warnings of the assembler."""
    from lacis import _core

    kernel = layer(format, dtype, bias, target, steps, shape)["forward"]
    options = {"stages": True}
    if ptxas.find():
        options |= {"ptxas": ptxas.find(), "check_ptxas": strict}
    return _core.compile(kernel.text, target, options).stages["ptx"]


def layer(format, dtype, bias: bool, target: str, steps=(), shape=(17, 23)):
    """The kernels of a linear layer for a target that this machine need not have.

    Its weight is full, so default schedules are told nothing of it, and the text is that of the conformance suite.
    """
    linear = torch.nn.Linear(*reversed(shape), bias, dtype=dtype)
    linear.weight.data.fill_(1)
    schedule = lacis.create_schedule(torch.nn.Sequential(linear).eval(), target)
    handle = schedule["0.weight"].set_format(format)
    for step in steps:
        handle.site.record(step)
    return schedule.compile_only()["0.weight"]


@pytest.mark.parametrize("name, dtype", CASES, ids=lambda each: str(each).removeprefix("torch."))
def test_named_format(name, dtype):
    for bias in has_bias(name):
        text = assemble(NAMED[name], dtype, bias, "cuda:sm_90a", strict=True)
        assert ".target sm_90a" in text and ".visible .entry" in text
        if dtype == torch.float16:
            assert ".target sm_80" in assemble(NAMED[name], dtype, bias, "cuda:sm_80", strict=True)


@pytest.mark.parametrize("shard", range(strategies.SHARDS))
def test_random_format(shard):
    """The random formats that the conformance suite runs under the default schedule."""
    for n, format in strategies.share("layers", shard):
        assemble(format, conformance.dtype_of(shard), n % 4 == 0, "cuda:sm_90a")
        if n % 8 == 0:
            assemble(format, conformance.dtype_of(shard), True, "cuda:sm_80")
