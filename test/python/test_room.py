# SPDX-License-Identifier: Apache-2.0
"""Storage that is longer than its positions: fewer values where more lay, and nothing in the slots behind them."""

import copy

import lacis
import pytest
import torch
from dense_twin import FORMATS, NAMES, OPTIMIZERS, make
from strategies import mostly_long

ROOMY = ("csr", "csc", "coo", "bsr", "bcsc")
RAMP = lacis.Ramp(0.0, 0.9, range(0, 9, 2))


def build(format, target="eager", ramp=RAMP, dtype=torch.float32):
    s = lacis.create_schedule(make().to(dtype), target=target)
    rule = lacis.Magnitude if FORMATS[format][0] is None else lacis.BlockMagnitude
    for name in NAMES:
        FORMATS[format][1](s[name].sparsify(rule(ramp)))
    model = s.build()
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    return model, s, optimizer, s.attach(optimizer, resize=False)


def in_room(weight):
    """bool of the shape of the values: behind the last position."""
    last = int([tensor for name, tensor in weight.own_arrays.items() if name.startswith("pos")][-1][-1])
    return (
        (torch.arange(len(weight.values)) >= last).reshape(-1, *[1] * (weight.values.ndim - 1)).expand_as(weight.values)
    )


def poison(tensors):
    """Leave NaN in memory that the next tensors of these sizes may have."""
    held = [torch.full_like(tensor, torch.nan) for tensor in tensors for _ in range(4)]
    del held


def step(model, optimizer, number):
    """A step of training; its forward pass and gradients are those of float64 under the masks."""
    twin = make()
    with torch.no_grad():
        for n, name in ((0, NAMES[0]), (2, NAMES[1])):
            twin[n].weight.copy_(model[n].weight.to_dense())
            twin[n].bias.copy_(model[n].bias)
    x = torch.randn(8, 40, generator=torch.Generator().manual_seed(number), dtype=model[0].bias.dtype)
    y = x.double().requires_grad_()
    x = x.clone().requires_grad_()
    optimizer.zero_grad()
    loss, expected = model(x).square().mean(), twin(y).square().mean()
    poison([model[0].weight.values, model[2].weight.values])
    loss.backward()
    expected.backward()
    tolerance = {"rtol": 1e-4, "atol": 1e-6}
    torch.testing.assert_close(loss.double(), expected, **tolerance)
    torch.testing.assert_close(x.grad.double(), y.grad, **tolerance)
    for n in (0, 2):
        weight = model[n].weight
        pattern, room = weight.packed().pattern, in_room(weight)
        gradient = lacis.packing.PackedTensor(pattern, {"": weight.values.grad}).to_dense()
        torch.testing.assert_close(gradient.double(), twin[n].weight.grad * pattern.to_mask(), **tolerance)
        assert not weight.values.grad[room].any() and not weight.values[room].any()
    optimizer.step()


@pytest.mark.parametrize(
    "format, target",
    [(f, "eager") for f in ROOMY] + mostly_long([(f, "cpu") for f in ROOMY], ("csr", "cpu")),
)
def test_counts_fall_in_place(format, target):
    """From all entries to a tenth: the same memory, the right numbers, and an optimizer that leaves the room 0."""
    model, s, optimizer, updates = build(format, target)
    step(model, optimizer, 0)
    lies = {name: tensor.data_ptr() for name, tensor in [*model.named_parameters(), *model.named_buffers()]}
    counts = []
    for number in range(1, 12):
        updates.step()
        counts.append(s["0.weight"].packed.nnz)
        step(model, optimizer, number)
        assert not model[0].weight.values[in_room(model[0].weight)].any()
        model[0].weight.validate()
    assert counts[0] == 960 and counts[-1] <= 100 and counts == sorted(counts, reverse=True)
    assert {name: lies[name] for name in lies} == {
        name: tensor.data_ptr() for name, tensor in [*model.named_parameters(), *model.named_buffers()] if name in lies
    }
    moments = [state[key] for state in optimizer.state.values() for key in ("exp_avg", "exp_avg_sq")]
    for values in (model[0].weight, model[2].weight):
        same = [moment for moment in moments if moment.shape == values.values.shape]
        assert same and not any(moment[in_room(values)].any() for moment in same[:2])


@pytest.mark.parametrize("format", ROOMY)
def test_nothing_may_be_left(format):
    model, s, optimizer, updates = build(format, ramp=lacis.Ramp(0.0, 1.0, range(0, 3)))
    for number in range(3):
        step(model, optimizer, number)
        updates.step()
    assert s["0.weight"].packed.nnz == 0 and in_room(model[0].weight).all()
    step(model, optimizer, 4)
    torch.testing.assert_close(model(torch.ones(1, 40)), model[2].bias[None])


def roomy(format="csr", target="eager"):
    model, s, optimizer, updates = build(format, target, lacis.Ramp(0.0, 0.75, range(0, 2)))
    updates.step()
    return model, s, optimizer, updates


@pytest.mark.parametrize("format", ROOMY)
def test_packed_tensors_with_room(format):
    """They convert, validate and multiply like others, and copies have the room."""
    model, *_ = roomy(format)
    packed = model[0].weight.packed()
    assert packed.pattern.part().has_room and packed.slots == 960 and packed.nnz <= 256
    packed.validate()
    dense, x = packed.to_dense(), torch.randn(5, 40)
    assert int((dense != 0).sum()) == packed.nnz
    for other in (lacis.Csr, lacis.Csc, lacis.Coo, lacis.Ell, lacis.Bsr(4, 4)):
        if packed.to(other).format != packed.format:
            assert not packed.to(other).pattern.part().has_room
        torch.testing.assert_close(packed.to(other).to_dense(), dense)
    torch.testing.assert_close(lacis.einsum("ij,bj->bi", packed, x, target="eager"), x @ dense.T)
    torch.testing.assert_close(packed.T.to_dense(), dense.T)
    twice = packed.pattern.batched([2], "h")
    assert torch.equal(twice.to_mask(), packed.pattern.to_mask().expand(2, -1, -1))
    again = lacis.packing.PackedTensor.from_storage(packed.format, packed.shape, packed.storage, packed.values.detach())
    assert again.pattern.part().has_room and torch.equal(again.to_dense(), dense)
    twin = copy.deepcopy(model)
    assert twin[0].weight.has_room and torch.equal(twin(x), model(x))


def test_room_is_saved_as_it_lies(tmp_path):
    """A fresh model takes it, and goes on bit by bit."""
    model, _, optimizer, updates = build("csr", "cpu")
    for number in range(4):
        step(model, optimizer, number)
        updates.step()
    torch.save([each.state_dict() for each in (model, optimizer, updates)], tmp_path / "state")
    again = build("csr", "cpu")
    for each, state in zip((again[0], *again[2:]), torch.load(tmp_path / "state")):
        each.load_state_dict(state)
    for number in range(4, 9):
        for each, its_optimizer, its_updates in ((model, optimizer, updates), (again[0], *again[2:])):
            step(each, its_optimizer, number)
            its_updates.step()
    mine, theirs = model.state_dict(), again[0].state_dict()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine) and len(mine["0.weight.values"]) == 960


def test_a_model_without_room_loads_one_with_it():
    """Its kernels learn of it: the gradient there is 0."""
    state = roomy(target="cpu")[0].state_dict()
    s = lacis.create_schedule(make().float(), target="cpu")
    for name in NAMES:
        s[name].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    model = s.build()
    model.load_state_dict(state)
    assert model[0].weight.has_room
    step(model, torch.optim.SGD(model.parameters(), lr=0.0), 0)


def test_fit_gives_the_room_back():
    model, s, optimizer, updates = roomy()
    step(model, optimizer, 0)
    values, dense = model[0].weight.values, model[0].weight.to_dense()
    before = s.report().rows[0].bytes
    assert s.report().notes[0] == "'0.weight' has 4.2 KiB of room, which s[\"0.weight\"].fit() gives back"  # 6 * 720
    s["0.weight"].fit()
    assert model[0].weight.values is values and len(values) == s["0.weight"].packed.nnz == 240
    assert torch.equal(model[0].weight.to_dense(), dense) and not model[0].weight.has_room
    assert optimizer.state[values]["exp_avg"].shape == values.shape
    assert s.report().rows[0].bytes == before - 6 * 720
    step(model, optimizer, 1)
    s["0.weight"].fit()  # there is none
    assert len(values) == 240


def test_what_does_not_fit_is_refused():
    """More values than there is storage for, and formats whose length another rule gives."""
    model, s, optimizer, updates = roomy()
    s["0.weight"].fit()
    with pytest.raises(lacis.DataError, match="would have 480 stored places instead of 240, and attach.*resize=False"):
        s["0.weight"].resparsify(Grown(0.5))
    for format in ("ell", "sum"):
        updates = build(format)[3]
        with pytest.raises(
            lacis.DataError, match="attach.*resize=False.* does not let it: a format whose 'pos' counts"
        ):
            for _ in range(9):
                updates.step()


class Grown(lacis.Policy):
    """As many places as it is told, the first ones."""

    def __init__(self, share):
        super().__init__(range(0, 2))
        self.share = share

    def mask(self, tensor):
        return lacis.Random(self.share)(tensor)

    def change(self, view):
        return torch.arange(view.count), view.empty()[: round(self.share * view.total) - view.count]


def test_room_that_is_none():
    """What lies behind the last position says so."""
    packed = roomy()[0][0].weight.packed()
    spoilt = {name: tensor.clone() for name, tensor in packed.storage.items()}
    spoilt["crd1"][-1] = 3
    from_storage = lacis.packing.PackedTensor.from_storage
    with pytest.raises(lacis.DataError, match=r"'crd1' at \[959\]: behind the last of 'pos1' it must be -1, not 3"):
        from_storage(packed.format, packed.shape, spoilt, packed.values.detach())
    values = packed.values.detach().clone()
    values[-1] = 1
    with pytest.raises(lacis.DataError, match=r"'values' at \[959\]: padding must be 0"):
        from_storage(packed.format, packed.shape, packed.storage, values)


@pytest.mark.long
@pytest.mark.parametrize("format, own", [(lacis.Bsr(64, 64), "false"), (lacis.Csr, "true")])
def test_code_is_the_same(format, own):
    """Room changes no instruction: what is sampled on it begins as zeros, where else each slot may be written."""
    from lacis.patterns import Pattern
    from lacis.patterns.room import with_room

    exact = Pattern.from_mask(torch.eye(16).bool().repeat_interleave(64, 0).repeat_interleave(64, 1), format)
    longer = Pattern(exact.format, {"": with_room(exact.part(), exact.part().slots + 64)})
    x, found = torch.randn(2048, 1024, dtype=torch.bfloat16), []
    for pattern in (exact, longer):
        values = torch.zeros(pattern.part().values_shape, dtype=torch.bfloat16)
        weight = lacis.packing.PackedTensor(pattern, {"": values})
        products = (("ij,bj->bi", weight, x), ("ij,bj,bi->ij", pattern, x, x))
        found.append([lacis.compile(*product, target="cuda:sm_90a") for product in products])
    (forward, sampled), (other, roomy) = found
    assert forward.key == other.key and sampled.asm["ptx"] == roomy.asm["ptx"]
    assert f"zero = {own}" in sampled.asm["buffers"] and "zero = true" in roomy.asm["buffers"]


@pytest.mark.long
@pytest.mark.parametrize("factor", [8, 64])
def test_shares_of_entries_end_with_the_entries(factor):
    """Equal shares are of the storage; those of room alone add nothing, whatever lies there."""
    packed = roomy()[0][0].weight.packed()
    dense, x = packed.to_dense().detach(), torch.randn(5, 40)
    values = packed.values.detach().clone()
    values[packed.nnz :] = torch.nan
    y = lacis.einsum("ij,bj->bi", packed.with_values(values), x, steps=[lacis.steps.SplitNnz("i_j", factor)])
    torch.testing.assert_close(y, x @ dense.T)
