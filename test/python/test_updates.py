# SPDX-License-Identifier: Apache-2.0
"""What follows a pattern that changes, what is refused, and how training goes on from files."""

import copy
import itertools

import dense_twin
import lacis
import pytest
import torch
from dense_twin import FORMATS, NAMES, OPTIMIZERS
from strategies import mostly_long

RIGL = lambda **more: lacis.Regrow(0.75, range(0, 100, 4), grow="gradient", anneal="linear", **more)
KINDS = {
    "rigl": ("csr", RIGL),
    "movement": ("bsr", lambda: lacis.Movement(lacis.Ramp(0.1, 0.8, range(0, 100, 3)))),
    "set": ("sum", lambda: lacis.Regrow(0.75, range(0, 100, 2), initial=("uniform", 0.1))),
}


def build(format="csr", policy=None, optimizer="adamw"):
    """A built model, its schedule, an optimizer and its updates."""
    s = lacis.create_schedule(dense_twin.make(), target="eager")
    for name in NAMES:
        FORMATS[format][1](s[name].sparsify(RIGL() if policy is None else policy))
    model = s.build()
    chosen = OPTIMIZERS[optimizer](model.parameters())
    return model, s, chosen, s.attach(chosen)


def train(model, optimizer, updates, steps):
    changes = []
    for step in steps:
        x = torch.randn(8, 40, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
        optimizer.zero_grad()
        (model(x) - x[:, :8]).square().mean().backward()
        optimizer.step()
        changes.append(updates.step())
    return changes


def content(model, optimizer):
    return [*model.state_dict().values(), *(t for s in optimizer.state.values() for t in s.values())]


def same(one, other):
    return len(one) == len(other) and all(torch.equal(a, b) for a, b in zip(one, other))


@pytest.mark.parametrize("kind", mostly_long(list(KINDS), "rigl"))
def test_training_goes_on_bit_by_bit(kind, tmp_path):
    """Whatever is loaded first, from each step on: before an update, after it, between."""
    format, policy = KINDS[kind]
    model, _, optimizer, updates = build(format, policy())
    files, orders = {}, list(itertools.permutations(range(3)))
    for step in range(9):
        torch.save([each.state_dict() for each in (model, optimizer, updates)], tmp_path / f"{step}")
        files[step] = tmp_path / f"{step}"
        train(model, optimizer, updates, [step])
    for number, (step, file) in enumerate(files.items()):
        fresh = build(format, policy())
        again = (fresh[0], fresh[2], fresh[3])
        states = torch.load(file, weights_only=True)
        for n in orders[number % 6]:
            again[n].load_state_dict(states[n])
        changes = train(*again, range(step, 9))
        assert same(content(*again[:2]), content(model, optimizer)), (step, changes)


def test_a_moving_average_follows_by_entry():
    """As the average of dense models under the same masks, whose new entries begin with 0."""
    model, s, optimizer, _ = build()
    average = torch.optim.swa_utils.AveragedModel(model, avg_fn=lambda old, new, n: 0.9 * old + 0.1 * new)
    updates = s.attach(optimizer, average)
    dense = {name: s[name].packed.to_dense().detach() for name in NAMES}
    changes = 0
    for step in range(24):
        changes += train(model, optimizer, updates, [step])[0]
        average.update_parameters(model)
        for name in NAMES:
            now = s[name].packed
            weight = average.module.get_submodule(name)
            old = dense[name] * now.pattern.to_mask()
            dense[name] = now.to_dense().detach() if not step else 0.9 * old + 0.1 * now.to_dense().detach()
            assert torch.equal(weight.packed().pattern.to_mask(), now.pattern.to_mask())
            torch.testing.assert_close(weight.to_dense(), dense[name])
    assert changes >= 5


def test_a_copy_with_another_pattern_is_refused():
    model, s, optimizer, updates = build()
    other = copy.deepcopy(model)
    train(model, optimizer, updates, range(8))
    with pytest.raises(lacis.DataError, match="'0.weight' of Sequential has another pattern"):
        s.attach(optimizer, other)
    with pytest.raises(lacis.DataError, match="ReLU has no packed weight '0.weight'"):
        s.attach(optimizer, torch.nn.ReLU())
    assert updates.step() in (False, True)  # the attachment before still holds


class Codes(torch.optim.SGD):
    """8 bits for each value, whose scale is shared."""

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].setdefault("codes", torch.zeros_like(p, dtype=torch.uint8))


class Rows(Codes):
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].setdefault("row", torch.zeros(2))


@pytest.mark.parametrize(
    "make, key",
    [
        (lambda p: Codes(p, lr=0.1), "'codes' of Codes for '0.weight'"),
        (lambda p: Rows(p, lr=0.1), "'row' of Rows for '0.weight'"),
        (lambda p: torch.optim.LBFGS(p), "LBFGS keeps 'old_dirs'"),
    ],
)
def test_a_state_that_cannot_follow_is_refused_by_name(make, key):
    """Also before the optimizer has made it."""
    model, s, *_ = build()
    with pytest.raises(lacis.DataError, match=key):
        s.attach(make(model.parameters()))
    blocks, s, *_ = build("bsr")
    with pytest.raises(lacis.DataError, match="of Adafactor for '0.weight' cannot follow"):
        s.attach(torch.optim.Adafactor(blocks.parameters()))


def test_an_optimizer_made_before_the_build():
    """It gets the packed values with their state, and the dense parameters back at the end."""
    model = dense_twin.make()
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    order = [id(p) for p in model.parameters()]
    model(torch.randn(4, 40, dtype=torch.float64)).sum().backward()
    optimizer.step()
    before = {name: optimizer.state[model.get_parameter(name)]["exp_avg"].clone() for name in NAMES}
    s = lacis.create_schedule(model, target="eager")
    for name in NAMES:
        FORMATS["sum"][1](s[name].sparsify(RIGL()))
    with pytest.warns(UserWarning, match="or have schedule.attach"):
        s.build()
    updates = s.attach(optimizer)
    for name in NAMES:
        packed, parts = s[name].packed, dict(model.get_submodule(name)._named_parts())
        states = {part: optimizer.state[module.values]["exp_avg"] for part, module in parts.items()}
        assert torch.equal(packed.with_values(states).to_dense(), before[name] * packed.pattern.to_mask())
    train(model, optimizer, updates, range(8))
    masks = {name: s[name].packed.pattern.to_mask() for name in NAMES}
    s.restore()
    assert [id(p) for group in optimizer.param_groups for p in group["params"]] == order
    for name in NAMES:
        average = optimizer.state[model.get_parameter(name)]["exp_avg"]
        assert average.shape == masks[name].shape and average[masks[name]].any() and not average[~masks[name]].any()
    with pytest.raises(lacis.ScheduleError, match="attached no more: the model was restored"):
        updates.step()
    optimizer.step()


def test_resparsify_takes_followers_along():
    model, s, optimizer, updates = build("bsr")
    train(model, optimizer, updates, range(3))
    mask = torch.zeros(24, 40, dtype=torch.bool)
    mask[:8, :16] = True
    dense, values = s["0.weight"].packed.to_dense().detach(), model[0].weight.values
    average = s["0.weight"].packed.with_values(optimizer.state[values]["exp_avg"]).to_dense()
    s["0.weight"].resparsify(mask)
    assert model[0].weight.values is values and values.grad is None
    assert torch.equal(s["0.weight"].packed.pattern.to_mask(), mask)
    assert torch.equal(s["0.weight"].packed.to_dense(), dense * mask)
    found = s["0.weight"].packed.with_values(optimizer.state[values]["exp_avg"]).to_dense()
    assert torch.equal(found, average * mask)
    train(model, optimizer, updates, range(3, 9))


def test_a_failed_update_changes_nothing():
    model, s, optimizer, updates = build("csr", RIGL())
    train(model, optimizer, updates, range(3))
    before = [t.clone() for t in content(model, optimizer)]
    optimizer.zero_grad()
    with pytest.raises(lacis.DataError, match="'0.weight' has no gradient, which Regrow reads"):
        updates.step()
    assert updates.count == 3 and same(before, content(model, optimizer))
    train(model, optimizer, updates, [3])
    assert updates.count == 4 and not same(before, content(model, optimizer))


def test_a_pattern_that_somebody_set_is_noticed():
    model, s, optimizer, updates = build()
    model[0].weight.set_packed(lacis.pack(torch.eye(24, 40, dtype=torch.float64), model[0].weight.format))
    with pytest.raises(lacis.DataError, match=r"'0.weight' was set by set_packed\(\)"):
        updates.step()


def test_storage_that_may_not_grow():
    model, s, optimizer, _ = build("sum", lacis.Magnitude(lacis.Ramp(0.0, 0.9, range(0, 10))))
    updates = s.attach(optimizer, resize=False)
    with pytest.raises(lacis.DataError, match="instead of .*, and attach.*resize=False"):
        updates.step()
    assert s["0.weight"].packed.nnz == 960


def test_rows_keep_their_lengths():
    policy = lacis.Regrow(0.75, range(0, 100, 2), grow="gradient", per="row")
    model, s, optimizer, updates = build("ell", policy)
    pointer = model[0].weight.values.data_ptr()
    assert sum(train(model, optimizer, updates, range(12))) == 6
    assert s["0.weight"].packed.pattern.to_mask().sum(1).tolist() == [10] * 24
    assert model[0].weight.values.data_ptr() == pointer  # as many slots stay where they are
    s["0.weight"].resparsify(lacis.Magnitude(0.9, per="row"))
    assert s["0.weight"].packed.pattern.to_mask().sum(1).tolist() == [4] * 24


def test_copies_of_a_model_collect_nothing():
    """Between the step before an update and the update, when the model collects gradients of empty places."""
    model, s, optimizer, updates = build("csr", RIGL())
    train(model, optimizer, updates, range(3))
    other, x = copy.deepcopy(model), torch.randn(2, 40, dtype=torch.float64)
    assert model[0].collector is not None and other[0].collector is None
    assert torch.equal(other(x), model(x))
    with pytest.raises(lacis.DataError, match="'0.weight': Regrow reads the gradient of empty places"):
        model(x).sum().backward()
        s["0.weight"].resparsify(RIGL())


@pytest.mark.parametrize("format, per", [("csr", "tensor"), ("bsr", "tensor"), ("csr", "row")])
def test_a_share_of_the_candidates(format, per):
    """What grows is among what the seed names, other places for each update; a policy reads them too."""
    named = []

    class Looking(lacis.Regrow):
        def change(self, view):
            named.append((view.name, view.candidates.positions, view.candidates.grad))
            keep, grow = super().change(view)
            assert torch.isin(grow, view.candidates.positions).all() and not torch.isin(grow, view.positions).any()
            assert len(keep) + len(grow) == view.count
            assert len(view.candidates.grad) == round(0.1 * len(view.empty())) == view.candidates.count
            return keep, grow

    policy = Looking(0.75, range(0, 100, 4), grow="gradient", candidates=0.1, per=per)
    model, s, optimizer, updates = build(format, policy)
    assert sum(train(model, optimizer, updates, range(9))) == 2
    first, second = (found[1] for found in named if found[0] == "0.weight")
    assert not torch.equal(first, second)


@pytest.mark.parametrize("policy", [lacis.Magnitude, lacis.BlockMagnitude])
def test_nothing_may_be_left(policy):
    format = "bsr" if policy is lacis.BlockMagnitude else "sum"
    model, s, optimizer, updates = build(format, policy(lacis.Ramp(0.5, 1.0, range(1, 4), power=1)))
    train(model, optimizer, updates, range(5))
    assert s["0.weight"].packed.validate().nnz == 0 and model(torch.ones(2, 40, dtype=torch.float64)).isfinite().all()


@pytest.mark.long
def test_compiled_models_have_two_graphs():
    """One of them collects gradients of empty places."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    s = lacis.create_schedule(dense_twin.make(), target="cpu")
    s["0.weight"].sparsify(RIGL()).set_format(lacis.Csr)
    model = s.build()
    eager = copy.deepcopy(model)
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    updates = s.attach(optimizer)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    assert sum(train(compiled, optimizer, updates, range(24))) >= 5
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2
    t = lacis.create_schedule(dense_twin.make(), target="eager")
    t["0.weight"].sparsify(RIGL()).set_format(lacis.Csr)
    model = t.build()
    model.load_state_dict(eager.state_dict())
    other = OPTIMIZERS["adamw"](model.parameters())
    train(model, other, t.attach(other), range(24))
    assert torch.equal(t["0.weight"].packed.pattern.to_mask(), s["0.weight"].packed.pattern.to_mask())
    torch.testing.assert_close(t["0.weight"].packed.to_dense(), s["0.weight"].packed.to_dense())
