# SPDX-License-Identifier: Apache-2.0
"""Arguments of attention that are of another kind than they must be are refused by name, or taken as what they say."""

import numpy
import pytest
import torch
from dense_attention import B, H, S, T, agree, drawn, tensors

import lacis

PATTERN = lacis.Pattern.from_mask(drawn(S, T), lacis.Csr)
COMPLEX = torch.ones(S, T, dtype=torch.complex64)


def attention(*operands, pattern=PATTERN, **keywords):
    return lacis.attention(*(operands or tensors()), pattern, **{"target": "eager", **keywords})


def fails(*_):
    raise IndexError("no such place")


REFUSED = [
    ("score", [3.0, torch.ones(S, T)], "score: a function score"),
    ("mask", [True, drawn(S, T)], "mask: a function mask"),
    (
        "score",
        [lambda s: s, lambda s, b, h, i, j: s + "x", lambda *x: x, lambda *x: torch.ones(2), fails],
        "score: the function cannot run at every entry",
    ),
    ("mask", [lambda i, j: i == j, fails], "mask: the function cannot run at every entry"),
    ("dropout", ["x", None, torch.tensor(0.1), 1j], "dropout is a number"),
    ("dropout", [True, -0.1, float("nan")], "from 0 to below 1"),
    ("scale", ["a", "1", [1.0], 1j, torch.ones(2), torch.tensor(1j)], "scale is a number"),
    ("scale", [torch.tensor(1.0, requires_grad=True)], "multiply q by the tensor, with scale=1.0"),
    ("window", [2.5, torch.tensor(2), (1, 2, 3), "x", (1, None), -1, (0, -1), [0.5, 1]], "window is a whole number"),
    ("target", [None, "cpux", "eager ", 1, torch.ones(1)], "targets are 'auto', 'cpu'"),
    ("steps", [None, 5, {"forward": None}, {"forward": 1}, "x"], "'steps' is a list of records"),
    ("seed", [2**63, -(2**63) - 1, 1.7, [1], "x", True, numpy.float32(1)], "seed is a whole number of 64 bits"),
    ("seed", [torch.tensor([1, 2]), torch.tensor(1.5), torch.tensor(True)], "holds one whole number"),
    ("seed", [torch.tensor(1, device="meta")], "holds one whole number"),
    ("bias", [COMPLEX], "bias: torch.complex64"),
    ("sink", [COMPLEX[0, :H]], "sink: torch.complex64"),
    ("key_padding", [COMPLEX[0, :1].expand(B, T)], "key_padding: torch.complex64"),
]
CASES = [(name, value, message) for name, values, message in REFUSED for value in values]


@pytest.mark.parametrize("name, value, message", CASES, ids=[f"{n}-{name}" for n, (name, *_) in enumerate(CASES)])
def test_refused_arguments(name, value, message):
    error = lacis.ScheduleError if name in ("steps", "target") else lacis.DataError
    more = {"dropout": 0.5} if name == "seed" else {}
    with pytest.raises(error, match=message):
        attention(**{name: value}, **more)


@pytest.mark.parametrize(
    "name, value, same",
    [
        ("dropout", numpy.float32(0), 0.0),
        ("scale", numpy.float64(0.5), 0.5),
        ("scale", torch.tensor([0.5]), 0.5),
        ("scale", 2, 2.0),
        ("window", numpy.int64(2), 2),
        ("window", [numpy.int8(2), 1], (2, 1)),
        ("seed", numpy.int64(7), 7),
        ("seed", torch.tensor([7], dtype=torch.int32), 7),
    ],
)
def test_numbers_of_others(name, value, same):
    more = {"dropout": 0.5} if name == "seed" else {}
    agree([attention(**{name: value}, **more)], [attention(**{name: same}, **more)])


def test_refused_operands():
    q, k, v = tensors()
    alike = lambda change: tuple(map(change, (q, k, v)))
    for operands, message in [
        (alike(lambda x: x.to(torch.float8_e5m2)), "q is torch.float8_e5m2; cast it to"),
        (alike(lambda x: x.to("meta")), "q is on meta"),
        ((q.to_sparse(), k, v), "q is torch.sparse_coo"),
        ((q, k.to_sparse(), v), "k is torch.sparse_coo"),
        ((None, k, v), "q must be a floating point tensor"),
        ((q, [k], v), "k must be a floating point tensor"),
    ]:
        with pytest.raises(lacis.DataError, match=message):
            attention(*operands)
    for other in (None, 5, torch.tensor(1.0)):
        with pytest.raises(lacis.DataError, match="q must be a floating point tensor"):
            attention(other, k, v, page_table=torch.zeros(B, 1, dtype=torch.int32))


OUTPUT, LOG = torch.ones(2, 3, 4), torch.ones(2, 3)


@pytest.mark.parametrize(
    "parts, message",
    [
        (None, "pairs"),
        ([], "pairs"),
        (5, "pairs"),
        ([None], "pairs"),
        ([(OUTPUT,)], "pairs"),
        ([(OUTPUT, LOG, LOG)], "pairs"),
        ([(OUTPUT, None)], "lse of part 0 must be a floating point tensor, not NoneType"),
        ([(OUTPUT.int(), LOG)], "output of part 0 must be a floating point tensor, not torch.int32"),
        ([(OUTPUT, LOG), (OUTPUT, LOG.long())], "lse of part 1 must be a floating point tensor, not torch.int64"),
        ([(OUTPUT, LOG), (OUTPUT.to("meta"), LOG)], "output of part 1 is on meta, the first output on cpu"),
        ([(OUTPUT[0, 0], LOG[0, 0])], r"an output is \[..., Sq, Dv\], not \[4\]"),
    ],
)
def test_refused_parts(parts, message):
    with pytest.raises(lacis.DataError, match=message):
        lacis.merge_attention(parts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_wider_changes_of_scores(dtype):
    operands = tensors(dtype=dtype)
    for name, shape in [("bias", (S, T)), ("key_padding", (B, T))]:
        wide = torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64).float().double()
        found = attention(*operands, **{name: wide})
        assert found.dtype == dtype
        agree([found], [attention(*operands, **{name: wide.float()})])


@pytest.mark.parametrize("rule", [lacis.KMeans(2, 2, block=4), lacis.TopKBlocks(2, block=4), lacis.Similarity(block=4)])
def test_no_keys(rule):
    q, k, v = tensors(k=0)
    agree([attention(q, k, v, pattern=rule)], [torch.zeros(*q.shape[:3], v.shape[-1])])
