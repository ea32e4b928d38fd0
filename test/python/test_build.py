# SPDX-License-Identifier: Apache-2.0
"""Build, restore, and the sparse model as an ordinary module of plain tensors."""

import copy
import io
import pickle

import lacis
import pytest
import torch
from lacis.formats.widths import weight_format
from lacis.nn.arrays import as_array
from strategies import mostly_long

pytestmark = pytest.mark.parametrize("target", ["eager", "cpu"])


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(24, 24), torch.nn.Linear(24, 24, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x))


def make_model():
    torch.manual_seed(0)
    inner = torch.nn.Sequential(torch.nn.Linear(24, 24), torch.nn.ReLU())
    return torch.nn.Sequential(torch.nn.Linear(40, 24), inner, torch.nn.Linear(24, 8, bias=False))


NAMES = ["0", "1.0", "2"]


def make_schedule(model, target, seed=1):
    s = lacis.create_schedule(model, target=target)
    s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csc)
    nest = s["1.0.weight"].sparsify(lacis.Random(0.7, seed)).block(16, 16)
    nest.set_format(lacis.Ell, axis=[0, 1]).set_format(lacis.Coo, axis=[2, 3])
    s["2.weight"].sparsify(lacis.Random(0.5, seed)).decompose(ell=lacis.Ell(width=4), rest=lacis.Coo)
    return s


def built(target, seed=1):
    model = make_model()
    s = make_schedule(model, target, seed)
    return s.build(), s


def masked(model):
    """The same model, dense, with the sparse one's weights."""
    twin = make_model()
    for name in NAMES:
        twin.get_submodule(name).weight.data = model.get_submodule(name).weight.to_dense().detach().clone()
        if twin.get_submodule(name).bias is not None:
            twin.get_submodule(name).bias.data = model.get_submodule(name).bias.detach().clone()
    return twin.to(model[0].weight.dtype)


@torch.no_grad()
def agree(left, right, dtype=torch.float32, **bounds):
    x = torch.randn(3, 5, 40, dtype=dtype)
    torch.testing.assert_close(left(x), right(x), **bounds)


def test_build_computes_the_same(target):
    model, _ = built(target)
    agree(model, masked(model))
    with torch.inference_mode():
        assert model(torch.randn(0, 40)).shape == (0, 8)


def test_the_layer_answers_as_before(target):
    model, s = built(target)
    layer = model[0]
    assert layer.weight.shape == (24, 40) and layer.weight.dtype == torch.float32 and layer.weight.device.type == "cpu"
    assert (layer.in_features, layer.out_features) == (40, 24) and isinstance(layer.bias, torch.nn.Parameter)
    assert isinstance(layer.weight.values, torch.nn.Parameter) and layer.weight.pos1.dtype == torch.int32
    assert {"0.weight.values", "0.weight.crd1", "2.weight.ell.crd1", "2.weight.rest.values"} <= set(model.state_dict())
    assert "SparseLinear" in repr(model)


def test_hooks_and_mode_are_kept(target):
    model = make_model().eval()
    seen = []
    model[0].register_forward_hook(lambda m, i, o: seen.append(type(m).__name__))
    make_schedule(model, target).build()
    model(torch.randn(2, 40))
    assert seen == ["SparseModule"] and not model[0].training


def test_restore_gives_the_same_parameters_back(target):
    model = make_model()
    before = {n: p for n, p in model.named_parameters()}
    s = make_schedule(model, target)
    s.build()
    assert before["0.weight"].numel() == 0
    with torch.no_grad():
        model[0].weight.values.mul_(2)
    twin = masked(model)
    assert s.restore() is model
    assert {n: id(p) for n, p in model.named_parameters()} == {n: id(p) for n, p in before.items()}
    assert type(model[0]) is torch.nn.Linear
    agree(model, twin)
    s.build()
    agree(model, twin)
    s.restore()


def test_tied_weights_share_one(target):
    torch.manual_seed(0)
    model = Tied()
    weight = model.a.weight
    s = lacis.create_schedule(model, target=target)
    s["b.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    twin = copy.deepcopy(model)
    s.build()
    assert model.a.weight is model.b.weight
    assert len([p for p in model.parameters()]) == 2
    twin.a.weight.data = model.a.weight.to_dense().detach()
    x = torch.randn(4, 24)
    with torch.no_grad():
        torch.testing.assert_close(model(x), twin(x))
    clone = copy.deepcopy(model)
    assert clone.a.weight is clone.b.weight
    s.restore()
    assert model.a.weight is weight and model.b.weight is weight


def test_copies(target):
    model, _ = built(target)
    for clone in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        agree(clone, model, rtol=0, atol=0)
        assert clone[0].weight.values is not model[0].weight.values


@pytest.mark.parametrize("dtype", mostly_long([torch.float64, torch.float16, torch.bfloat16], torch.bfloat16))
def test_to_dtype(target, dtype):
    model = make_model().eval()
    make_schedule(model, target).build()
    agree(model, masked(model))  # the float32 kernels are in use before the change
    model.to(dtype)
    assert model[0].weight.values.dtype == dtype and model[0].weight.pos1.dtype == torch.int32
    bounds = {} if dtype == torch.float64 else {"rtol": 2e-2, "atol": 2e-2}
    agree(model, masked(model), dtype, **bounds)


def test_state_dict_round_trip(target, tmp_path):
    model, _ = built(target)
    stream = io.BytesIO()
    torch.save(model.state_dict(), stream)
    stream.seek(0)
    other, _ = built(target)
    with torch.no_grad():
        for p in other.parameters():
            p.zero_()
    other.load_state_dict(torch.load(stream, weights_only=True))
    agree(other, model, rtol=0, atol=0)
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file(model.state_dict(), tmp_path / "m.safetensors")
    other.load_state_dict(safetensors.load_file(tmp_path / "m.safetensors"))
    agree(other, model, rtol=0, atol=0)


def test_state_dict_of_another_pattern_resizes_the_parameter(target):
    model, _ = built(target, seed=1)
    other = make_model()
    s = make_schedule(other, target, seed=2)
    s["0.weight"].site.steps[0] = lacis.steps.Sparsify(lacis.Random(0.8, 3))
    s.build()
    agree(model, masked(model))
    parameter = model[0].weight.values
    count = parameter.numel()
    model.load_state_dict(other.state_dict())
    assert model[0].weight.values is parameter and parameter.numel() != count
    agree(model, other, rtol=0, atol=0)


def test_malformed_state_dict_changes_nothing(target):
    model, _ = built(target)
    before = copy.deepcopy(model.state_dict())
    bad = copy.deepcopy(before)
    as_array(bad["0.weight.crd1"])[3] = 1000
    with pytest.raises(RuntimeError, match="'crd1' at \\[3\\]: coordinate 1000 is out of range"):
        model.load_state_dict(bad)
    assert torch.equal(model.state_dict()["0.weight.crd1"], before["0.weight.crd1"])
    missing = copy.deepcopy(before)
    del missing["0.weight.pos1"]
    with pytest.raises(RuntimeError, match="0.weight.pos1"):
        model.load_state_dict(missing)
    with pytest.raises(RuntimeError, match="0.weight.what"):
        model.load_state_dict({**before, "0.weight.what": torch.zeros(1)})


def test_dense_state_dict_is_packed_in_place(target):
    model, _ = built(target)
    dense = make_model()
    with torch.no_grad():
        for p in dense.parameters():
            p.mul_(3)
    masks = {name: model.get_submodule(name).weight.packed().pattern.to_mask() for name in NAMES}
    model.load_state_dict(dense.state_dict())
    for name, mask in masks.items():
        dense.get_submodule(name).weight.data *= mask
    agree(model, dense)
    wrong = {**dense.state_dict(), "0.weight": torch.zeros(3, 3)}
    with pytest.raises(RuntimeError, match="dense weight has shape"):
        model.load_state_dict(wrong)


def test_build_is_all_or_nothing(target):
    model = make_model()
    modules = list(model.modules())
    s = make_schedule(model, target)
    s["2.weight"].site.steps[0] = lacis.steps.Sparsify(lacis.Given(torch.ones(3, 3, dtype=torch.bool)))
    with pytest.raises(lacis.DataError, match="'2.weight'"):
        s.build()
    assert list(model.modules()) == modules and model[0].weight.numel() == 24 * 40


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(32, 2)
        self.norm = torch.nn.LayerNorm(32)
        self.fixed = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(8, 8))


UNSUPPORTED = {
    "norm.weight": "has no sparse operator",
    "fixed.parametrizations.weight.original": "parametrised|has no sparse operator",
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_owners_are_named(target, name):
    s = lacis.create_schedule(Attention(), target=target)
    rank = len(s[name].shape)
    s[name].set_format(lacis.Csr if rank == 2 else lacis.Coo)
    with pytest.raises(lacis.ScheduleError, match=f"(?s)'{name}'.*({UNSUPPORTED[name]})"):
        s.build()


def test_what_a_built_schedule_refuses(target):
    model, s = built(target)
    for call in (lambda: s["0.weight"].block(2, 2), s.build):
        with pytest.raises(lacis.ScheduleError, match="built"):
            call()
    s.restore()
    for call in (s.restore, s.report, lambda: s["0.weight"].packed):
        with pytest.raises(lacis.ScheduleError, match="not built"):
            call()


def test_report(target, tmp_path):
    model, s = built(target)
    report = s.report(torch.randn(8, 40))
    rows = report.to_dict()["rows"]
    assert [row["name"] for row in rows] == ["0.weight", "1.0.weight", "2.weight"]
    assert all(row["ms"] > 0 and row["dense_ms"] > 0 and row["faster"] in ("sparse", "dense") for row in rows)
    assert all(row["ms_spread"] >= 0 and row["dense_ms_spread"] >= 0 for row in rows)
    assert rows[0]["density"] == 0.5 and rows[0]["dense_bytes"] == 24 * 40 * 4
    assert rows[0]["format"] == str(weight_format(lacis.Csc(), (24, 40)))
    assert 0 < rows[2]["padding"] < 1 or rows[2]["padding"] == 0
    assert "1.0.weight" in str(report) and "total" in str(report)
    pytest.importorskip("matplotlib")
    report.plot(tmp_path / "report.png")
    assert (tmp_path / "report.png").stat().st_size > 0
