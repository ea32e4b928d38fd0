# SPDX-License-Identifier: Apache-2.0
"""Patterns that change while a model trains: as a dense model under masks, exactly, at each update."""

import math

import dense_twin
import lacis
import pytest
import torch
from dense_twin import FORMATS, NAMES, OPTIMIZERS, Twin
from strategies import mostly_long

WHEN = range(2, 121, 2)
DOWN = lacis.Ramp(0.2, 0.85, WHEN)
COSINE = lambda step: 0.3 * (1 + math.cos(math.pi * (step - 2) / 119)) / 2
METHODS = {
    "gmp": (
        lambda block: lacis.BlockMagnitude(DOWN) if block else lacis.Magnitude(DOWN),
        dense_twin.gmp(DOWN),
    ),
    "set": (lambda block: lacis.Regrow(0.8, WHEN), dense_twin.regrow(lambda n: 0.8, lambda n: 0.3, "random")),
    "rigl": (
        lambda block: lacis.Regrow(0.8, WHEN, grow="gradient", anneal="cosine"),
        dense_twin.regrow(lambda n: 0.8, COSINE, "gradient"),
    ),
    "granet": (
        lambda block: lacis.Regrow(DOWN, share=0.5, grow="gradient"),
        dense_twin.regrow(DOWN, lambda n: 0.5, "gradient"),
    ),
    "movement": (lambda block: lacis.Movement(DOWN), dense_twin.movement(DOWN)),
}


def build(format, policy, target="eager", model=None):
    block, verbs = FORMATS[format]
    model = dense_twin.make() if model is None else model
    s = lacis.create_schedule(model, target=target)
    for name in NAMES:
        verbs(s[name].sparsify(policy(block)))
    return s.build(), s


def loss_of(step):
    x = torch.randn(16, 40, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
    return lambda model: (model(x) - x[:, :8].sin() * 2).square().mean()


def follow(format, optimizer, method, target="eager", parts=1):
    """Train both and compare after each step."""
    policy, oracle = METHODS[method]
    model, s = build(format, policy, target)
    patterns = {name: s[name].packed.pattern for name in NAMES}
    twin = Twin(dense_twin.make(), patterns, OPTIMIZERS[optimizer], FORMATS[format][0], oracle)
    mine = OPTIMIZERS[optimizer](model.parameters())
    updates, changes = s.attach(mine), 0
    for step in range(1, WHEN[-1] + 2):
        losses = [loss_of(parts * step + part) for part in range(parts)]
        expected = twin.train(losses)
        found = [loss(model) for loss in losses]
        for loss, other in zip(found, expected):
            loss.backward()
            torch.testing.assert_close(loss, other, rtol=1e-10, atol=0)
        mine.step()
        changes += updates.step()
        twin.update(WHEN)
        mine.zero_grad()
        for name in NAMES if step in WHEN else ():
            packed = s[name].packed
            assert torch.equal(packed.pattern.to_mask(), twin.masks[name]), (step, name)
            torch.testing.assert_close(packed.to_dense(), twin.weights[name], rtol=1e-10, atol=1e-12)
    assert changes >= 5 and all(s[name].packed.validate() for name in NAMES)
    return s, mine, twin


def assert_states_equal(s, optimizer, twin):
    for name in NAMES:
        packed, expected = s[name].packed, twin.optimizer.state[twin.weights[name]]
        parts = dict(s.model.get_submodule(name)._named_parts())
        for key, dense in expected.items():
            mine = {part: optimizer.state[module.values][key] for part, module in parts.items()}
            if dense.shape == packed.shape:
                found = packed.with_values(mine if len(mine) > 1 else mine[""]).to_dense()
                torch.testing.assert_close(found, dense, rtol=1e-9, atol=1e-13)
            else:
                assert all(torch.equal(value, dense) for value in mine.values())


CASES = [(f, o, m) for f in FORMATS for o in OPTIMIZERS for m in METHODS]
SHORT = [("csc", "sgd", "gmp"), ("bsr", "adamw", "set"), ("sum", "adamw", "granet"), ("uneven", "lion", "movement")]


@pytest.mark.parametrize("format, optimizer, method", mostly_long(CASES, *SHORT))
def test_as_the_dense_twin(format, optimizer, method):
    assert_states_equal(*follow(format, optimizer, method))


@pytest.mark.parametrize("format", mostly_long(["csr", "bsr"], "csr"))
def test_as_the_dense_twin_with_kernels_and_micro_batches(format):
    assert_states_equal(*follow(format, "adamw", "rigl", target="cpu", parts=3))
