# SPDX-License-Identifier: Apache-2.0
"""`stage` in the rounds of a loop: an operand in registers gives the same numbers; what cannot be staged is refused."""

import pytest
import torch

import lacis
from lacis import steps


def problem():
    torch.manual_seed(0)
    a = torch.randn(6, 8, 10) * (torch.rand(6, 8, 10) < 0.3)
    rows = lacis.Format.parse("(i, j, k) -> (i : dense, j : compressed, k : compressed)")
    return a, lacis.pack(a, rows), torch.randn(8, 4), torch.randn(10, 4)


def refused(message, *given):
    _, t, b, c = problem()
    with pytest.raises(lacis.CompileError, match=message):
        lacis.compile("ijk,jr,kr->ir", t, b, c, steps=given)


def test_an_element_stays_in_a_register_while_a_loop_runs():
    a, t, b, c = problem()
    given = [steps.Stage("1", "register", "j")]
    kernel = lacis.compile("ijk,jr,kr->ir", t, b, c, steps=given)
    exact = torch.einsum("ijk,jr,kr->ir", a.double(), b.double(), c.double())
    torch.testing.assert_close(kernel(t, b, c).double(), exact, rtol=1e-5, atol=1e-5)
    assert 'held<"j">' in kernel.asm["loops"] and given[0] in kernel.steps


def test_what_cannot_be_staged_is_refused():
    refused("change within a round of loop .j. .axis 0.; a register holds", steps.Stage("2", "register", "j"))
    refused("stage: a register is loaded in the rounds of a loop; name it", steps.Stage("1", "register"))
    nowhere = "stage: 'shared' is the memory that a block of a GPU has; there is none on 'cpu'"
    refused(nowhere, steps.Stage("1", "shared", "j"))
    refused("no loop is tensorized, for which tiles of .1. would be loaded", steps.Stage("1", "shared"))
    refused("stage: '0' has a format; tiles of dense operands are loaded", steps.Stage("0", "shared", "j"))
    refused("stage: no loop named .q.", steps.Stage("1", "shared", "q"))
