# SPDX-License-Identifier: Apache-2.0
"""A dense Parameter that stays: its entries follow it in each call, and it trains as a dense twin under a mask does."""

import copy
import pickle

import dense_twin
import lacis
import pytest
import torch
import torch.nn.functional as F
from dense_twin import OPTIMIZERS
from strategies import mostly_long

FORMATS = {
    "csr": (lambda h: h.set_format(lacis.Csr), lacis.Magnitude(0.7)),
    "ell": (lambda h: h.set_format(lacis.Ell(width=12)), lacis.Magnitude(0.7, per="row")),
    "csc": (lambda h: h.set_format(lacis.Csc), lacis.Magnitude(0.7)),
    "2:4": (lambda h: h.set_format(lacis.TwoFour), lacis.NM(2, 4)),
    "2:4 both ways": (lambda h: h.set_format(lacis.TwoFour), lacis.NM(2, 4, both=True, rank="value")),
    "blocks": (lambda h: h.block(4, 8).set_format(lacis.Bsr), lacis.BlockMagnitude(0.5, block=(4, 8))),
    "uneven blocks": (lambda h: h.block(7, 3).set_format(lacis.Bsr), lacis.BlockMagnitude(0.5, block=(7, 3))),
}
NAME = "0.weight"


def build(format, mode, decay=0.0, sparsifier=None, target="eager", dtype=torch.float64):
    s = lacis.create_schedule(dense_twin.make().to(dtype), target=target)
    verb, usual = FORMATS[format]
    verb(s[NAME].sparsify(usual if sparsifier is None else sparsifier, master=mode, decay=decay))
    return s.build(), s


class Twin:
    """The dense model, whose first weight runs under a mask."""

    def __init__(self, optimizer, mode, decay, dtype=torch.float64):
        self.model, self.mode, self.decay = dense_twin.make().to(dtype), mode, decay
        self.weight, self.optimizer = self.model[0].weight, optimizer(self.model.parameters())

    def train(self, x, mask):
        self.optimizer.zero_grad()
        held = (self.weight.detach() * mask).requires_grad_()
        loss = loss_of(self.model[2](self.model[1](F.linear(x, held, self.model[0].bias))), x)
        loss.backward()
        kept = 1 if self.mode == "ste" else mask
        self.weight.grad = held.grad * kept + self.decay * self.weight.detach() * ~mask
        self.optimizer.step()
        return loss.detach()


def loss_of(y, x):
    return (y - x[:, :8]).square().mean()


def batch(step, dtype=torch.float64):
    return torch.randn(8, 40, generator=torch.Generator().manual_seed(step), dtype=dtype)


def train(model, optimizer, x):
    optimizer.zero_grad()
    loss = loss_of(model(x), x)
    loss.backward()
    optimizer.step()
    return loss.detach()


@pytest.mark.parametrize("optimizer", mostly_long(list(OPTIMIZERS), "adamw"))
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("mode", ["ste", "masked"])
@pytest.mark.parametrize("format", list(FORMATS))
def test_it_trains_as_its_twin(format, mode, decay, optimizer):
    """Ten steps: equal masks, losses and weights; the mask changes meanwhile."""
    model, s = build(format, mode, decay)
    chosen, twin = OPTIMIZERS[optimizer](model.parameters()), Twin(OPTIMIZERS[optimizer], mode, decay)
    masks = []
    for step in range(10):
        masks.append(FORMATS[format][1](twin.weight))
        torch.testing.assert_close(s[NAME].packed.to_dense(), twin.weight.detach() * masks[-1], rtol=1e-9, atol=1e-10)
        x = batch(step)
        torch.testing.assert_close(train(model, chosen, x), twin.train(x, masks[-1]), rtol=1e-10, atol=0)
    torch.testing.assert_close(model[0].weight, twin.weight, rtol=1e-9, atol=1e-10)
    assert format != "csr" or mode == "masked" or not torch.equal(masks[0], masks[-1])


@pytest.mark.parametrize("mode", ["ste", "masked"])
def test_kernels_run_it(mode):
    model, _ = build("csr", mode, 0.1, target="cpu", dtype=torch.float32)
    sgd = lambda parameters: torch.optim.SGD(parameters, lr=0.05)
    optimizer, twin = sgd(model.parameters()), Twin(sgd, mode, 0.1, torch.float32)
    for step in range(4):
        x = batch(step, torch.float32)
        mask = lacis.Magnitude(0.7)(twin.weight)
        torch.testing.assert_close(train(model, optimizer, x), twin.train(x, mask), rtol=1e-4, atol=1e-6)
        twin.model.load_state_dict(model.state_dict())


def test_the_parameter_is_the_same():
    """Its name, its object, its place in files; the packed weight is nobody's parameter and no buffer."""
    dense = dense_twin.make()
    names, weight = list(dense.state_dict()), dense[0].weight
    optimizer = torch.optim.SGD(dense.parameters(), lr=0.1)
    s = lacis.create_schedule(dense, target="eager")
    s[NAME].sparsify(lacis.Magnitude(0.5), master="ste").set_format(lacis.Csr)
    model = s.build()
    assert model[0].weight is weight and list(model.state_dict()) == names and type(model[0]) is torch.nn.Linear
    assert [id(p) for p in model.parameters()] == [id(p) for p in optimizer.param_groups[0]["params"]]
    x = batch(0)
    before = model(x)
    loaded = dense_twin.make()
    loaded[0].weight.data.mul_(torch.randn_like(loaded[0].weight))
    model.load_state_dict(loaded.state_dict())
    expected = loaded[2](
        loaded[1](F.linear(x, loaded[0].weight * lacis.Magnitude(0.5)(loaded[0].weight), loaded[0].bias))
    )
    torch.testing.assert_close(model(x), expected)
    assert not torch.allclose(before, expected)
    assert s.restore() is model and model[0].weight is weight and "forward" not in vars(model[0])
    torch.testing.assert_close(model(x), expected)


def test_copies_and_files_of_it_live_alone():
    model, _ = build("2:4", "ste", 0.1)
    x = batch(0)
    y = model(x).detach()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other[0].weight.data.zero_()
        assert torch.equal(other(x), F.linear(torch.tanh(other[0].bias).expand(8, -1), other[2].weight, other[2].bias))
        assert torch.equal(model(x), y)
    half = copy.deepcopy(model).to(torch.float32)
    torch.testing.assert_close(half(x.float()), y.float(), rtol=1e-4, atol=1e-5)
    dense = lacis.densify(copy.deepcopy(model))
    torch.testing.assert_close(dense(x), y)
    assert torch.equal(dense[0].weight != 0, lacis.NM(2, 4)(model[0].weight))


@pytest.mark.parametrize("mode", ["ste", "masked"])
def test_calls_before_a_backward_pass(mode):
    """Two passes forward and two back, as with gradient accumulation, and one between that records nothing."""
    model, _ = build("csr", mode)
    parts = [batch(n) for n in range(2)]
    losses = [loss_of(model(x), x) for x in parts]
    with torch.no_grad():
        model(parts[0])
    for loss in losses:
        loss.backward()
    found = model[0].weight.grad.clone()
    model.zero_grad()
    sum(loss_of(model(x), x) for x in parts).backward()
    torch.testing.assert_close(found, model[0].weight.grad)


def test_a_frozen_weight_has_no_gradient():
    model, _ = build("csr", "ste", 0.1)
    model[0].weight.requires_grad_(False)
    model(batch(0)).sum().backward()
    assert model[0].weight.grad is None and model[0].bias.grad is not None


def test_tied_weights_follow_one_parameter():
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)).double()
    model[1].weight = model[0].weight
    s = lacis.create_schedule(model, target="eager")
    s["0.weight"].sparsify(lacis.Magnitude(0.5), master="ste").set_format(lacis.Csr)
    s.build()
    x, weight = torch.randn(3, 16).double(), model[0].weight
    held = (weight.detach() * lacis.Magnitude(0.5)(weight)).requires_grad_()
    expected = F.linear(F.linear(x, held, model[0].bias), held, model[1].bias)
    y = model(x)
    torch.testing.assert_close(y, expected)
    y.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(weight.grad, held.grad)


@pytest.mark.parametrize("sparsifier", [None, lacis.Magnitude(lacis.Ramp(0.7, 0.8, range(9)))])
@pytest.mark.parametrize("mode", ["ste", "masked"])
def test_a_compiled_graph_has_the_same_numbers(mode, sparsifier):
    model, s = build("csr", mode, 0.1, sparsifier, target="cpu", dtype=torch.float32)
    if sparsifier is not None:
        s.attach(torch.optim.SGD(model.parameters(), lr=0.1))
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for step in range(3):
        x = batch(step, torch.float32)
        found = []
        for call in (model, compiled):
            model.zero_grad()
            loss = loss_of(call(x), x)
            loss.backward()
            found.append([loss.detach(), *(p.grad.clone() for p in model.parameters())])
        torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-5)
        with torch.no_grad():
            model[0].weight -= model[0].weight.grad * 5


REFUSED = {
    "another word": (
        lambda s: s[NAME].sparsify(lacis.NM(2, 4), master="dense"),
        "master is 'ste' or 'masked', not 'dense'",
    ),
    "decay alone": (lambda s: s[NAME].sparsify(lacis.NM(2, 4), decay=0.1), "decay is a positive number beside master"),
    "negative": (lambda s: s[NAME].sparsify(lacis.NM(2, 4), master="ste", decay=-1), "decay is a positive number"),
    "activation": (lambda s: s["0:out"].sparsify(lacis.NM(2, 4), master="ste"), "there is no Parameter that master="),
    "rule": (lambda s: s["1"].sparsify(lacis.BigBird(), master="ste"), "master= is said of a parameter"),
    "size": (
        lambda s: (s[NAME].sparsify(lacis.Threshold(0.1), master="ste").set_format(lacis.Csr), s.build()),
        "'Threshold' says how many entries there are.*with master= the entries follow the weight in each call",
    ),
    "sum": (
        lambda s: (
            s[NAME].sparsify(lacis.Magnitude(0.5), master="ste").decompose(e=lacis.Ell(width=2), r=lacis.Coo),
            s.build(),
        ),
        "parts of a sum share entries by their values; with master=",
    ),
    "inputs": (
        lambda s: (s[NAME].sparsify(lacis.Wanda(0.5), master="ste").set_format(lacis.Csr), s.build()),
        "master= keeps every value, and Wanda reads inputs",
    ),
    "candidates": (
        lambda s: (
            s[NAME].sparsify(lacis.Regrow(0.5, range(9), grow="gradient"), master="ste").set_format(lacis.Csr),
            s.build(),
        ),
        "master= keeps every value, and Regrow reads the gradient of empty places",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_follow_is_refused(case):
    verb, said = REFUSED[case]
    model = dense_twin.make()
    with pytest.raises(lacis.Error, match=said):
        verb(lacis.create_schedule(model, target="eager"))
    assert "forward" not in vars(model[0])


def test_a_product_that_is_no_layer_is_refused():
    s = lacis.create_schedule(torch.nn.MultiheadAttention(8, 2), target="eager")
    s["in_proj_weight"].sparsify(lacis.Magnitude(0.5), master="ste").set_format(lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match="'in_proj_weight': master= has no code for .*; leave master out"):
        s.build()


def test_it_is_saved_with_the_schedule(tmp_path):
    _, s = build("2:4 both ways", "ste", 2e-4, lacis.NM(2, 4, both=True, search="best"))
    s.save(tmp_path / "schedule.json")
    loaded = lacis.load_schedule(tmp_path / "schedule.json", dense_twin.make())
    assert repr(loaded[NAME]) == repr(s[NAME]) and "master" in repr(s[NAME]) and "search='best'" in repr(s[NAME])


def test_what_a_captured_graph_trains_is_looked_at_in_each_call(monkeypatch):
    """Torch counts none of its changes."""
    model, _ = build("csr", "ste")
    x, now = torch.randn(4, model[0].in_features, dtype=torch.float64), [True]
    monkeypatch.setattr("lacis.nn.master.is_captured", lambda device: now[0])
    model(x)
    now[0] = False
    weight = model[0].weight
    with torch.no_grad():
        for _ in range(2):
            weight.data.copy_(torch.randn_like(weight))  # as a replay does
            expected = F.linear(x, weight * FORMATS["csr"][1](weight), model[0].bias)
            torch.testing.assert_close(model[0](x), expected)


def test_a_fused_encoder_layer_does_not_pass_the_mask_by():
    """In inference torch runs a whole encoder layer in one operator, on the dense weights that it finds in it."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    model, x = torch.nn.TransformerEncoder(layer, 1).eval(), torch.randn(2, 5, 16)
    twin = copy.deepcopy(model)
    s = lacis.create_schedule(model, target="eager")
    handle = s["layers.0.linear1.weight"].sparsify(lacis.NM(2, 4), master="ste").set_format(lacis.Csr)
    s.build()
    with torch.no_grad():
        twin.layers[0].linear1.weight.mul_(handle.packed.pattern.to_mask())
        for each in (model, copy.deepcopy(model), lacis.densify(copy.deepcopy(model))):
            torch.testing.assert_close(each(x), twin(x))
        s.restore()
        assert not model.layers[0].linear1._forward_pre_hooks
        torch.testing.assert_close(model(x), twin(x))


def test_what_attention_reads_past_its_layer_is_refused():
    s = lacis.create_schedule(torch.nn.ModuleDict({"a": torch.nn.MultiheadAttention(8, 2)}), target="eager")
    s["a.out_proj.weight"].sparsify(lacis.NM(2, 4), master="ste").set_format(lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match="'a.out_proj.weight': nn.MultiheadAttention reads the weight past"):
        s.build()
