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
from lacis.capture import kernel_spec
from lacis.emit import emit
from lacis.operators import OPERATORS
from lacis.runtime import ptxas


def assemble(format, dtype, bias: bool, target: str, strict: bool = False, steps=()) -> str:
    """The PTX of a linear layer; `strict` refuses spills and warnings of the assembler."""
    from lacis import _core

    w = conformance.sparse((17, 23), 0.3, dtype, torch.Generator().manual_seed(0))
    spec = kernel_spec(OPERATORS["linear"], lacis.pack(w, format), bias, steps)
    options = {"stages": True}
    if ptxas.find():
        options |= {"ptxas": ptxas.find(), "check_ptxas": strict}
    return _core.compile(emit(spec), target, options).stages["ptx"]


@pytest.mark.parametrize("name, dtype", CASES, ids=lambda each: str(each).removeprefix("torch."))
def test_named_format(name, dtype):
    for bias in has_bias(name, dtype):
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
