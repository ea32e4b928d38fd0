# SPDX-License-Identifier: Apache-2.0
"""A dense Parameter that stays, whose entries change when a `Ramp` or a policy says."""

import copy
import itertools

import lacis
import pytest
import torch
import torch.nn.functional as F
from dense_twin import OPTIMIZERS, blocks, spread, top
from test_master import NAME, Twin, batch, build, train

POLICIES = {
    "gradual": ("csr", lacis.Magnitude(lacis.Ramp(0.1, 0.8, range(2, 20, 3), power=1)), None),
    "movement": ("csr", lacis.Movement(lacis.Ramp(0.1, 0.8, range(2, 20, 3), power=1)), None),
    "movement of blocks": ("blocks", lacis.Movement(lacis.Ramp(0.1, 0.8, range(2, 20, 3), power=1)), (4, 8)),
}


@pytest.mark.parametrize("mode", ["ste", "masked"])
@pytest.mark.parametrize("case", POLICIES)
def test_entries_change_when_a_policy_says(case, mode):
    """Soft: what is dropped keeps its value and its score, and may come back (Sanh et al., 2020)."""
    format, policy, block = POLICIES[case]
    model, s = build(format, mode, sparsifier=policy)
    optimizer, twin = OPTIMIZERS["adamw"](model.parameters()), Twin(OPTIMIZERS["adamw"], mode, 0.0)
    updates, ramp = s.attach(optimizer), policy.sparsity
    mask, scores, changes = s[NAME].packed.pattern.to_mask().clone(), 0, []
    for step in range(1, 25):
        x = batch(step)
        torch.testing.assert_close(train(model, optimizer, x), twin.train(x, mask), rtol=1e-9, atol=0)
        changes.append(updates.step())
        held = twin.weight.detach()
        scores = scores + blocks(-held * twin.weight.grad, block).sum(1)
        if step in ramp.when:
            by = scores if "movement" in case else held.abs().reshape(-1)
            count = len(by) - round(ramp(step) * len(by))
            mask = spread(top(by, count, torch.ones_like(by, dtype=torch.bool)), block, held.shape)
        assert torch.equal(s[NAME].packed.pattern.to_mask(), mask), step
    assert [n for n, changed in enumerate(changes, 1) if changed] == list(ramp.when)


def test_a_supermask_learns_while_its_weights_stay():
    """Edge-popup (Ramanujan et al., 2020): scores go down by the gradient of the weight times the weight."""
    model, s = build("csr", "ste", sparsifier=lacis.Movement(lacis.Ramp(0.5, 0.5, range(1, 40))))
    before, rest = model[0].weight.detach().clone(), list(model.parameters())[1:]
    assert model.get_parameter(NAME) is model[0].weight
    optimizer = torch.optim.SGD([{"params": [model[0].weight], "lr": 0.0}, {"params": rest}], lr=0.05)
    updates, losses, scores = s.attach(optimizer), [], 0
    for step in range(40):
        losses.append(train(model, optimizer, batch(0)))
        scores = scores - (before * model[0].weight.grad).reshape(-1)
        updates.step()
        mask = s[NAME].packed.pattern.to_mask()
        if step + 1 in range(1, 40):
            kept = top(scores, mask.sum(), torch.ones_like(scores, dtype=torch.bool))
            assert torch.equal(mask.reshape(-1), kept)
    assert torch.equal(model[0].weight, before) and losses[-1] < losses[0]


def test_training_goes_on_bit_by_bit():
    """From each step on, whatever is loaded first."""
    policy = lambda: lacis.Movement(lacis.Ramp(0.1, 0.8, range(1, 8, 2)))
    make = lambda: build("csr", "ste", 0.1, policy())
    (model, s), states = make(), []
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    updates = s.attach(optimizer)
    step = lambda m, o, u, n: (train(m, o, batch(n)), u.step())
    for n in range(8):
        states.append(copy.deepcopy([each.state_dict() for each in (model, optimizer, updates)]))
        step(model, optimizer, updates, n)
    for start, order in enumerate(itertools.permutations(range(3))):
        again, t = make()
        other = OPTIMIZERS["adamw"](again.parameters())
        three = again, other, t.attach(other)
        for n in order:
            three[n].load_state_dict(copy.deepcopy(states[start][n]))
        for n in range(start, 8):
            step(*three, n)
        assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values()))
        assert torch.equal(t[NAME].packed.to_dense(), s[NAME].packed.to_dense())


def test_a_moving_average_keeps_the_same_places():
    policy = lacis.Movement(lacis.Ramp(0.1, 0.8, range(1, 8, 2)))
    model, s = build("csr", "ste", sparsifier=policy)
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    average = torch.optim.swa_utils.AveragedModel(model, avg_fn=lambda old, new, n: 0.5 * old + 0.5 * new)
    updates = s.attach(optimizer, average)
    for n in range(8):
        train(model, optimizer, batch(n))
        updates.step()
        average.update_parameters(model)
        x, mask, held = batch(20 + n), s[NAME].packed.pattern.to_mask(), average.module
        expected = held[2](held[1](F.linear(x, held[0].weight * mask, held[0].bias)))
        torch.testing.assert_close(average(x), expected)


def test_updates_say_what_they_need():
    model, s = build("csr", "ste")
    with pytest.raises(lacis.DataError, match="its entries follow the dense weight in each call"):
        s[NAME].resparsify(lacis.Magnitude(0.5))
    policy = lacis.Movement(lacis.Ramp(0.1, 0.8, range(1, 8, 2)))
    model, s = build("csr", "ste", sparsifier=policy)
    optimizer = OPTIMIZERS["sgd"](model.parameters())
    with pytest.raises(lacis.DataError, match="'0.weight' has no gradient, which Movement reads"):
        s.attach(optimizer).step()
    updates = s.attach(optimizer, resize=False)
    train(model, optimizer, batch(0))
    with pytest.raises(lacis.DataError, match="stored places instead of 864.*; take a policy that keeps the count"):
        [updates.step() for _ in range(4)]
    with pytest.raises(lacis.DataError, match=r"BlockMagnitude chooses blocks of \[2, 2\], the weight stores entries"):
        s[NAME].resparsify(lacis.BlockMagnitude(0.5, block=(2, 2)))
