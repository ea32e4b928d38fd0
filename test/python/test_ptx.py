# SPDX-License-Identifier: Apache-2.0
"""PTX of every format of the suite, assembled where an assembler is found; no GPU is needed."""

from __future__ import annotations

import conformance
import hypothesis
import pytest
import strategies
import torch
from test_conformance import NAMED

import lacis
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.runtime import ptxas


def assemble(format, dtype, target: str, strict: bool = False) -> str:
    """The PTX of a linear layer; `strict` refuses spills and warnings of the assembler."""
    from lacis import _core

    w = conformance.sparse((48, 64), 0.3, dtype, torch.Generator().manual_seed(0))
    try:
        packed = lacis.pack(w, format)
    except lacis.DataError:  # a width in the format that the rows do not fit
        return ""
    spec, _ = capture_einsum("ij,bj->bi", [packed, torch.zeros(8, 64, dtype=dtype)])
    options = {"stages": True}
    if ptxas.find():
        options |= {"ptxas": ptxas.find(), "check_ptxas": strict}
    return _core.compile(emit(spec), target, options).stages["ptx"]


@pytest.mark.parametrize("dtype", conformance.DTYPES, ids=lambda d: str(d).removeprefix("torch."))
@pytest.mark.parametrize("name", NAMED)
def test_named_format(name, dtype):
    text = assemble(NAMED[name], dtype, "cuda:sm_90a", strict=True)
    assert ".target sm_90a" in text and ".visible .entry" in text
    if dtype == torch.float16:
        assert ".target sm_80" in assemble(NAMED[name], dtype, "cuda:sm_80", strict=True)


@pytest.mark.parametrize("shard", range(4))
def test_random_format(shard):
    dtype = conformance.DTYPES[shard]

    @hypothesis.settings(
        max_examples=50,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(format=strategies.formats_and_sums())
    def draw(format):
        assemble(format, dtype, "cuda:sm_90a")
        if len(str(format)) % 4 == 0:
            assemble(format, dtype, "cuda:sm_80")

    draw()
