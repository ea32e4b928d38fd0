# SPDX-License-Identifier: Apache-2.0
"""Patterns of a rule are kept for the shapes that are asked for, and no more of them than a server has room for."""

import gc
import weakref

import pytest
import torch

import lacis
from lacis.attentions.patterns import choose
from lacis.patterns import recent
from lacis.sparsifiers import PatternRule


class Counted(PatternRule):
    """The diagonal, and the lengths of keys that it was asked for."""

    def __init__(self):
        self._asked = []

    def layout(self, heads, q, k, block):
        self._asked.append(k)
        return torch.eye(*self.grid(q, k, block), dtype=torch.bool)[None]


@pytest.fixture
def three(monkeypatch):
    monkeypatch.setattr(recent, "_MOST", 3)


def asks(rule, *lengths) -> list[int]:
    """The lengths of keys whose patterns are made, of those that are asked for."""
    rule._asked.clear()
    for keys in lengths:
        choose(rule, torch.zeros(1, 2, 128, 16), torch.zeros(1, 2, keys, 16))
    return list(rule._asked)


def test_the_last_shapes_are_kept(three):
    rule = Counted()
    assert asks(rule, 64, 128, 192, 64, 128, 192) == [64, 128, 192]
    assert asks(rule, 64, 256, 64, 192, 256) == [256]
    assert asks(rule, 128) == [128]


def test_what_is_dropped_leaves_memory(three):
    rule, q = Counted(), torch.zeros(1, 2, 128, 16)
    made = [weakref.ref(choose(rule, q, torch.zeros(1, 2, 64 * n, 16)).pattern) for n in range(1, 21)]
    gc.collect()
    assert [n for n, pattern in enumerate(made) if pattern() is not None] == [17, 18, 19]


def test_what_a_graph_captures_stays(three, monkeypatch):
    rule = Counted()
    assert asks(rule, 64) == [64]
    monkeypatch.setattr(recent, "is_captured", lambda device: True)
    assert asks(rule, 64) == []
    monkeypatch.undo()
    monkeypatch.setattr(recent, "_MOST", 3)
    assert asks(rule, 128, 192, 256, 320, 384, 64) == [128, 192, 256, 320, 384]


@pytest.mark.long
def test_attention_of_a_rule_takes_any_length():
    """Of more shapes than are kept; each call is right."""
    rule, q = lacis.Local(20, block=16), torch.randn(1, 1, 8, 4)
    for keys in range(1, recent._MOST + 8):
        k, v = torch.randn(2, 1, 1, keys, 4)
        i, j = torch.arange(8)[:, None], torch.arange(keys)
        scores = (q @ k.transpose(2, 3) / 2).masked_fill((i - j).abs() > 20, -torch.inf)
        torch.testing.assert_close(lacis.attention(q, k, v, rule), scores.softmax(-1) @ v)
