# SPDX-License-Identifier: Apache-2.0
"""Long rows of one operand, or of a class, in equal shares of their entries beside the others; against float64."""

import dataclasses

import pytest
import strategies
import torch
from strategies import mostly_long
from test_row_classes import FORMATS, LENGTHS, agree, rows

import lacis
from lacis import steps
from lacis.capture import capture_einsum
from lacis.capture.expression import hints
from lacis.emit import emit
from lacis.runtime.kernels import compile_kernel

SHARES = steps.SplitNnz("long.i_long.j", 16)
APART = (steps.Apart("long", least=20), SHARES)
PATTERNS = {
    "some rows": LENGTHS,
    "no entry": (0,) * 7,
    "all are long": (64,) * 7,
    "none is long": (1, 0, 19) * 3,
    "one is, of two shares and a bit": (3, 33, 0, 2, 1),
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("expression", mostly_long(["ij,j->i", "ij,jk->ik"], "ij,j->i"))
def test_rows_of_so_many_entries_run_apart(name, expression):
    w = rows(PATTERNS[name])
    packed, x = lacis.pack(w, lacis.Csr), torch.randn(64, 5)
    x = x if "k" in expression else x[:, 0].contiguous()
    kernel = lacis.compile(expression, packed, x, steps=APART)
    agree(kernel(packed, x), expression, w, x)
    (derived,) = {array.step for array in kernel.loaded.derived}
    listed = packed.pattern.derived(derived)["crd0"]
    assert listed.tolist() == (w.ne(0).sum(1) >= 20).nonzero().flatten().tolist()


@pytest.mark.long
@pytest.mark.parametrize("format", [lacis.Coo, lacis.Csc])
def test_of_other_formats_a_companion_lists_the_long_rows(format):
    w, x = rows(), torch.randn(64)
    packed = lacis.pack(w, format)
    given = [steps.Own("0", "companion"), *APART]
    agree(lacis.einsum("ij,j->i", packed, x, steps=given), "ij,j->i", w, x)


@pytest.mark.parametrize("features", mostly_long([None, 19], None))
def test_a_class_of_long_rows_is_shared_out(features):
    w, format = rows(), FORMATS["short and long"]
    x = torch.randn(64) if features is None else torch.randn(64, features)
    expression = "ij,j->i" if features is None else "ij,jk->ik"
    given = [steps.Apart("long"), SHARES]
    agree(lacis.einsum(expression, lacis.pack(w, format), x, steps=given), expression, w, x)


def test_numbers_that_are_none_stay_in_their_rows():
    w, x = rows(), torch.ones(64)
    w[1, w[1].nonzero()[0]] = torch.nan
    w[8, w[8].nonzero()[0]] = torch.inf
    y = lacis.einsum("ij,j->i", lacis.pack(w, lacis.Csr), x, steps=APART)
    assert y[1].isnan() and y[8].isinf() and y.isfinite().sum() == len(w) - 2


@pytest.mark.long
def test_an_epilogue_follows_the_parts():
    w, x, bias = rows(), torch.randn(64), torch.randn(2 * len(LENGTHS))
    packed, epilogue = lacis.pack(w, lacis.Csr), lacis.Epilogue(bias=bias, activation="relu")
    y = lacis.einsum("ij,j->i", packed, x, epilogue=epilogue, steps=APART)
    torch.testing.assert_close(y.double(), (w.double() @ x.double() + bias).relu(), rtol=1e-4, atol=1e-4)


def default_steps(features=None, **facts) -> list:
    packed = lacis.pack(strategies.sparse(24, 40), lacis.Csr)
    x = torch.zeros(40) if features is None else torch.zeros(40, features)
    spec = capture_einsum("ij,j->i" if features is None else "ij,jk->ik", [packed, x])[0]
    spec = dataclasses.replace(spec, eighths=1, **facts)
    return [steps.parse(text) for text in compile_kernel(emit(spec), "cuda:sm_90a").info["steps"]]


@pytest.mark.long
def test_a_gpu_parts_few_long_rows_of_many():
    """Where they may be most of the entries, shares of all rows stay."""
    skewed = default_steps(uneven=("i",), large=("i", "j"), skewed=("i",))
    assert skewed[0] == steps.Apart("long", least=128) and steps.SplitNnz("long.i_long.j", 256) in skewed
    for features, known in ((32, ()), (16, (steps.Specialize(k=16),))):
        columns = default_steps(features, uneven=("i",), large=("i", "j"), skewed=("i",), steps=known)
        assert columns[len(known)] == skewed[0] and steps.SplitNnz("long.i_long.j", 256) in columns
    uneven = default_steps(uneven=("i",))
    assert uneven[0] == steps.SplitNnz("i_j", 512) and not any(isinstance(step, steps.Apart) for step in uneven)
    for features in (None, 32):
        even = default_steps(features, large=("i", "j"))
        assert not any(isinstance(step, steps.Apart) for step in even)


def test_what_a_gpu_is_told_of_a_skewed_pattern():
    rows = torch.cat([torch.arange(1 << 16), torch.zeros(400, dtype=torch.int64)])
    columns = torch.cat([torch.arange(1 << 16) % 500, torch.arange(1, 401)])
    entries = torch.sparse_coo_tensor(torch.stack([rows, columns]), torch.ones(len(rows)), (1 << 16, 500))
    told = hints("ij", lacis.pack(entries, lacis.Csr), "cuda")
    assert (told["uneven"], told["large"], told["skewed"]) == (("i",), ("i",), ("i",))
    assert hints("ji", lacis.pack(entries, lacis.Csr), "cpu")["skewed"] == ()


REFUSED = {
    "apart: the rules of a sum say which rows its parts have; leave 'least' out": (
        FORMATS["short and long"],
        APART[:1],
    ),
    "apart: long rows are apart already": (lacis.Csr, (APART[0], APART[0])),
    "apart: least 0 must be positive": (lacis.Csr, (steps.Apart("long", least=0),)),
    "apart: 'least' names one nest, for the long rows of an operand that is no sum": (
        lacis.Csr,
        (steps.Apart("a", "b", least=2),),
    ),
    "apart: loops of the nest are marked already; say it before": (lacis.Csr, (steps.Parallel("i"), APART[0])),
    "apart: the bounds of a row do not say how many entries it has": (lacis.Ell(64), APART[:1]),
    "apart: no operand has one loop over the entries of a row, which ends the sum": (lacis.Bsr(2, 2), APART[:1]),
    "apart: the operand has rows of blocks, of which no list is made": (lacis.SrBcrs(2), APART[:1]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    format, given = REFUSED[what]
    with pytest.raises(lacis.CompileError, match=what):
        lacis.compile("ij,j->i", lacis.pack(rows(), format), torch.zeros(64), steps=given)
