# SPDX-License-Identifier: Apache-2.0
"""Functions that say the same are traced once; those that read or write what may change are traced at each call."""

import functools
import math

import pytest
import torch
from dense_attention import B, H, S, T, drawn, tensors

import lacis
from lacis.attentions import traced_scores
from lacis.attentions.layouts import Layout
from lacis.attentions.patterns import choose
from lacis.attentions.said import said
from lacis.attentions.scores import Positions, Scores

NUMBER, LIST, COUNT = 3, [1], 0


@pytest.fixture
def traces(monkeypatch):
    """A function that traces, for which `traces.made` has one for each that was not at hand."""
    made, trace = [], traced_scores._traced_scores
    monkeypatch.setattr(traced_scores, "_TRACED", {})
    monkeypatch.setattr(traced_scores, "_traced_scores", lambda *given: made.append(1) or trace(*given))
    q, k, _ = tensors()
    pattern = lacis.Pattern.from_mask(drawn(S, T), lacis.Csr)

    def traced(*masks, rows=S, **given):
        layout = Layout(choose(pattern, q, k), q, k)
        layout.rows = rows
        return traced_scores.trace_scores(Scores((B, H, S, T), masks=masks, **given), layout, torch.float64)

    traced.made = made
    return traced


def within(n, function=None):
    return lambda b, h, i, j: (i - j < n) & (function is None or function(b, h, i, j))


def capped(limit):
    return lambda s, b, h, i, j: torch.tanh(s / limit) * limit + math.sqrt(limit)


def below_number(b, h, i, j):
    return i - j < NUMBER


def test_what_says_the_same_is_traced_once(traces):
    first = traces(within(2), score=capped(3.0))
    again = traces(within(2), score=capped(3.0))
    assert traces.made == [1] and again.body == first.body and again.operands == []
    others = [
        lambda: traces(within(3), score=capped(3.0)),
        lambda: traces(within(2), score=capped(4.0)),
        lambda: traces(within(2)),
        lambda: traces(within(2), within(2), score=capped(3.0)),
    ]
    bodies = {first.body, *(other().body for other in others)}
    assert len(bodies) == 5 and len(traces.made) == 5
    assert traces(within(2), rows=2**24 + 1) is None  # coordinates that float32 has not
    assert traces(within(2), score=capped(3.0)).body == first.body and len(traces.made) == 6


def test_positions_rules_and_globals_are_looked_at(traces, monkeypatch):
    rule = lacis.Local(2)
    masks = [Positions().causal, Positions().window(1, 2), rule.mask, below_number]
    for _ in range(2):
        bodies = [traces(mask).body for mask in masks]
    assert len(traces.made) == 4
    rule.window = 1
    monkeypatch.setitem(globals(), "NUMBER", 5)
    changed = [traces(mask).body for mask in masks]
    assert len(traces.made) == 6
    assert [mine == other for mine, other in zip(bodies, changed)] == [True, True, False, False]


def scaled(slopes, read=lambda slopes, h: slopes[h]):
    return lambda s, b, h, i, j: s * read(slopes, h)


def test_tensors_are_read_at_each_call(traces):
    """What is done with them follows from their kinds."""
    slopes = torch.ones(H)
    for number in (1.0, 2.0):
        slopes.fill_(number)
        for each in (slopes, slopes.clone(), torch.nn.Parameter(slopes, requires_grad=False)):
            (found,) = traces(score=scaled(each)).operands
            assert found.tolist() == [number] * H
    assert len(traces.made) == 1
    for bias in (torch.zeros(S, T), torch.ones(S, T)):
        assert torch.equal(traces(bias=bias).operands[0], bias.double())
    for padding in (torch.ones(B, T), torch.zeros(B, T)):
        assert torch.equal(traces(key_padding=padding).operands[0], padding.double())
    assert len(traces.made) == 3


def test_tensors_of_other_kinds_are_traced_anew(traces):
    slopes = torch.ones(H)
    kinds = [slopes, slopes.double(), slopes.bool(), torch.ones(1).expand(H), torch.ones(H, requires_grad=True)]
    for _ in range(2):
        bodies = [getattr(traces(score=scaled(each)), "body", None) for each in kinds]
    flag = ("where", ("ne", ("read", 1), ("number", 0.0)), ("number", 1.0), ("number", 0.0))
    assert bodies[2] == ("mul", ("read", 0), flag)
    assert bodies[3] is None  # one element for all heads has no axis of its own, and no trace is kept
    assert len(traces.made) == len(kinds) + 1


def test_one_tensor_twice_is_not_two(traces):
    def both(x, y):
        return lambda s, b, h, i, j: s * x[h] + y[h]

    one, two = torch.ones(H), 2 * torch.ones(H)
    for given, count in (((one, one), 1), ((one, two), 2), ((two, one), 2), ((two, two), 1)):
        found = traces(score=both(*given)).operands
        assert len(found) == count and torch.equal(found[0], given[0].double())
    assert len(traces.made) == 2


LOOKS = {
    "a number of it": lambda slopes, h: float(slopes[0]),
    "its item": lambda slopes, h: slopes[1].item(),
    "a branch": lambda slopes, h: 1.0 if slopes[0] > 0 else 2.0,
    "what torch makes of it": lambda slopes, h: slopes.abs()[h],
    "a list of it": lambda slopes, h: slopes.tolist()[0],
    "its length": lambda slopes, h: len(slopes),
    "a loop": lambda slopes, h: sum(float(each) for each in slopes),
}


@pytest.mark.parametrize("what", LOOKS)
def test_a_function_that_looks_into_a_tensor_is_traced_at_each_call(what, traces):
    slopes, found = torch.ones(H), []
    for number in (1.0, -3.0):
        slopes.fill_(number)
        made = traces(score=scaled(slopes, LOOKS[what]))
        found.append([made.body, *(x.tolist() for x in made.operands)])
    assert len(traces.made) == 2 and (found[0] == found[1]) == (what == "its length")


def test_whole_numbers_are_looked_at_when_they_change(traces, monkeypatch):
    looks, extremes = [], torch.aminmax
    monkeypatch.setattr(torch, "aminmax", lambda *given: looks.append(1) or extremes(*given))
    documents = torch.zeros(B, max(S, T), dtype=torch.long)
    mask = lambda b, h, i, j: documents[b, i] == documents[b, j]
    for _ in range(3):
        assert len(traces(mask).operands) == 2
    assert looks == [1]
    first = lambda b, h, i, j: (documents[0, i] == documents[0, j]) & (documents[1, i] == documents[1, j])
    for _ in range(3):
        assert len(traces(first).operands) == 4
    assert looks == [1, 1, 1]
    documents.fill_(2**24 + 1)
    assert traces(mask) is None  # float32 has not all of them
    documents.fill_(2**24)
    assert traces(mask) is not None and len(looks) == 5


def test_what_a_function_does_besides_is_done_at_each_call(traces):
    calls = 0

    def counting(b, h, i, j):
        nonlocal calls
        calls += 1
        return i >= j

    for _ in range(2):
        traces(counting)
    assert calls == 2


def of_default(b, h, i, j, n=torch.ones(1)):
    return i - j < n


def of_itself(b, h, i, j):
    return i >= j if NUMBER else of_itself(b, h, i, j)


def writing(b, h, i, j):
    global COUNT
    COUNT += 1
    return i >= j


OPEN = {
    "a list": lambda b, h, i, j: i - j < LIST[0],
    "itself": of_itself,
    "written": writing,
    "a name only": lambda b, h, i, j, *, n=1: i - j < n,
    "a part": functools.partial(below_number, None),
    "printed": lambda b, h, i, j: print() or i >= j,
    "the state of torch": lambda b, h, i, j: i - j < torch.get_num_threads(),
    "a module": lambda b, h, i, j: i - j < lacis.knobs.debug,
    "a tensor with more": within(noted := torch.ones(1)),
    "a sparse tensor": within(torch.eye(2).to_sparse()),
    "a nested tensor": within(torch.nested.nested_tensor([torch.ones(2), torch.ones(1)])),
    "its own rule": type("Own", (lacis.Local,), {"__module__": __name__})(2).mask,
    "its class": type("Own", (lacis.Local,), {"__module__": "lacis.attentions.own", "window": 1})(2).mask,
}


@pytest.mark.parametrize("what", OPEN)
def test_what_is_open(what):
    noted.more = 1
    assert said(OPEN[what], []) is None


def test_tensors_are_said_by_their_kind():
    for function in (of_default, within(2, Positions(torch.tensor([0, S]), torch.tensor([0, T]), (S, T)).causal)):
        tensors = []
        assert said(function, tensors) is not None and tensors


def test_numbers_that_are_equal_differ():
    assert len({said(within(n), []) for n in (1, 1.0, True, 0.0, -0.0)}) == 5
    assert len({said(within(2, within(n)), []) for n in (3, 3, 4)}) == 2
