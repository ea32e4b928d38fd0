# SPDX-License-Identifier: Apache-2.0
"""What attention refuses, by name."""

import pytest
import torch
from dense_attention import B, S, T, drawn, tensors

import lacis


REFUSED = [
    ({"steps": [1]}, lacis.ScheduleError, "'steps' is a list of records that speak of loops"),
    ({"dropout": 1.0}, lacis.DataError, "from 0 to below 1"),
    ({"empty": "one"}, lacis.DataError, "'zero' or 'nan'"),
    ({"window": -1}, lacis.DataError, "window is a whole number"),
    ({"cu_seqlens": torch.tensor([0, S])}, lacis.DataError, "of one batch"),
    ({"cu_seqlens_k": torch.tensor([0, S])}, lacis.DataError, "needs cu_seqlens"),
    ({"key_padding": torch.ones(B, S)}, lacis.DataError, "Sk"),
    ({"bias": torch.ones(2, S, T)}, lacis.DataError, "does not broadcast"),
    ({"sink": torch.ones(1)}, lacis.DataError, "sink"),
    ({"mask": lambda b, h, i, j: i}, lacis.DataError, "must answer bool"),
]


@pytest.mark.parametrize("keywords, error, message", REFUSED, ids=[next(iter(words)) for words, _, _ in REFUSED])
def test_refused_keywords(keywords, error, message):
    pattern = lacis.Pattern.from_mask(drawn(S, T), lacis.Csr)
    with pytest.raises(error, match=message):
        lacis.attention(*tensors(), pattern, target="eager", **keywords)


def test_refused_operands_and_patterns():
    q, k, v = tensors()
    csr = lambda *shape: lacis.Pattern.from_mask(torch.ones(shape, dtype=torch.bool), lacis.Csr)
    for given, message in [
        (csr(T, S), r"the pattern is \[11, 9\]"),
        ("causal", "not str"),
        (torch.ones(1, 2, 2), "not a tensor of torch.float32"),
        (torch.ones(3, 3, 3, dtype=torch.bool), "q has 2 batches of 4 heads"),
        (torch.ones(1, 7, 11, dtype=torch.bool), "no side divides it so"),
    ]:
        with pytest.raises(lacis.DataError, match=message):
            lacis.attention(q, k, v, given)
    for operands, message in [
        ((q, k[:, :3], v[:, :3]), "q has 4 heads, k 3"),
        ((q, k, v[:, :, :5]), "do not fit"),
        ((q, k.float(), v), "k is torch.float32"),
        ((q[0], k, v), "q must be a floating point tensor"),
    ]:
        with pytest.raises(lacis.DataError, match=message):
            lacis.attention(*operands, csr(S, T))


def test_python_that_follows_the_data_is_refused_at_its_line():
    pattern = lacis.Pattern.from_mask(drawn(S, T), lacis.Csr)

    def score(s, b, h, i, j):
        return s if i > j else s * 2

    with pytest.raises(lacis.DataError, match="score: the function cannot run at every entry") as caught:
        lacis.attention(*tensors(), pattern, score=score, target="eager")
    assert caught.value.location == (score.__code__.co_filename, score.__code__.co_firstlineno)
