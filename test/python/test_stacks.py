# SPDX-License-Identifier: Apache-2.0
"""Stacks of matrices that a forward reads one at a time, as the experts of a mixture, against the dense model."""

import copy

import lacis
import pytest
import torch
import torch.nn.functional as F

nn = torch.nn


class Experts(nn.Module):
    """Three experts, each for the tokens that chose it; the last is chosen by none."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Parameter(torch.randn(3, 8, 5)), nn.Parameter(torch.randn(3, 8, 6))

    def forward(self, x, chosen):
        y = x.new_zeros(*x.shape[:-1], self.down.shape[-1])
        for e in chosen.unique():
            at = chosen == e
            y[at] = torch.tanh(F.linear(x[at], self.up[e])) @ self.down[int(e)]
        return y


class Batched(nn.Module):
    """All experts at once, on as many tokens each, and on groups of tokens."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Parameter(torch.randn(3, 5, 8)), nn.Parameter(torch.randn(3, 8, 6))

    def forward(self, x, chosen):
        return torch.bmm(torch.tanh(torch.bmm(x[:3], self.up)), self.down)


ell = lambda handle: handle.set_format(lacis.Ell)
csr = lambda handle: handle.set_format(lacis.Csr)
bsr = lambda handle: handle.block(4, 3).set_format(lacis.Bsr)  # 3 does not divide 5


def of_three_axes(handle):
    return handle.set_format(lacis.Format.parse("(e, i, j) -> (e : dense, i : dense, j : compressed)"))


def build(formatted, make=Experts, target="eager", dtype=torch.float64, name=r"up|down"):
    torch.manual_seed(0)
    model = make().to(dtype)
    twin = copy.deepcopy(model)
    s = lacis.create_schedule(model, target=target)
    for handle in s.match(name):
        formatted(handle.sparsify(lacis.Magnitude(0.6)))
    s.build()
    with torch.no_grad():
        for site in s.sites:
            twin.get_parameter(site.name).copy_(s[site.name].packed.to_dense().reshape(site.shape))
    x = torch.randn(4, 7, 5, dtype=dtype, requires_grad=True)
    return model, s, twin, x, torch.randint(0, 2, (4, 7))


def check(model, s, twin, x, chosen, tolerance):
    y, expected = model(x, chosen), twin(x, chosen)
    torch.testing.assert_close(y, expected, **tolerance)
    given = torch.randn_like(y)
    (found,) = torch.autograd.grad((y * given).sum(), x, retain_graph=True)
    torch.testing.assert_close(
        found, torch.autograd.grad((expected * given).sum(), x, retain_graph=True)[0], **tolerance
    )
    (y * given).sum().backward()
    (expected * given).sum().backward()
    for site in s.sites:
        weight = getattr(model, site.name)
        dense = twin.get_parameter(site.name).grad.reshape(weight.packed_shape)
        torch.testing.assert_close(weight.values.grad, weight.packed().pattern.gather(dense), **tolerance)


@pytest.mark.parametrize("make", [Experts, Batched])
@pytest.mark.parametrize("formatted", [csr, ell, bsr, of_three_axes], ids=["csr", "ell", "bsr", "of_three_axes"])
def test_as_the_dense_stack(formatted, make):
    name = "down" if formatted is bsr and make is Batched else r"up|down"  # blocks of 4 rows do not divide 5
    check(*build(formatted, make, name=name), {"rtol": 1e-9, "atol": 1e-9})


def test_kernels():
    model, s, *others = build(csr, target="cpu", dtype=torch.float32, name="up")
    check(model, s, *others, {"rtol": 1e-4, "atol": 1e-4})
    model.eval()
    with pytest.raises(lacis.ScheduleError, match="'up' is a stack, whose matrices run one kernel"):
        s["up"].kernel
    _, x, chosen = others
    with torch.no_grad():
        torch.testing.assert_close(model(x, chosen), others[0](x, chosen), rtol=1e-4, atol=1e-4)


def test_state_dicts_copies_and_restore():
    model, s, twin, x, chosen = build(csr)
    expected, again = twin(x, chosen), build(csr)[0]
    again.load_state_dict({name: 2 * tensor for name, tensor in twin.state_dict().items()})  # dense
    assert not torch.allclose(again(x, chosen), expected)
    again.load_state_dict(model.state_dict())
    for each in (again, copy.deepcopy(model), lacis.densify(copy.deepcopy(model))):
        torch.testing.assert_close(each(x, chosen), expected)
    assert [row.operator for row in s.report(x, chosen).rows] == ["stacked", "transposed_stacked"]
    s.restore()
    assert isinstance(model.up, nn.Parameter) and model.up.shape == (3, 8, 5)
    torch.testing.assert_close(model(x, chosen), expected)


def test_patterns_change_under_the_matrices():
    model, s, twin, x, chosen = build(csr)
    model(x, chosen)
    updates = s.attach(torch.optim.SGD(model.parameters(), lr=0.1))
    s["up"].resparsify(lacis.Magnitude(0.9))
    assert not updates.step()
    with torch.no_grad():
        twin.up.copy_(s["up"].packed.to_dense().reshape(3, 8, 5))
        torch.testing.assert_close(model(x, chosen), twin(x, chosen))


def test_one_matrix():
    model, s, twin, x, _ = build(csr)
    one = model.up[-1]
    assert one.shape == (8, 5) and torch.equal(one.to_dense(), twin.up[2])
    torch.testing.assert_close(x @ one.T, x @ twin.up[2].T)
    torch.testing.assert_close(one @ x[0].T, twin.up[2] @ x[0].T)
    assert torch.equal(torch.cat([each.to_dense() for each in model.up]), twin.up.reshape(-1, 5))


def test_no_entries_and_nan():
    model, s, _, x, chosen = build(csr, name="up")
    s["up"].resparsify(lacis.Magnitude(1.0))
    with torch.no_grad():
        assert not model(torch.full_like(x, torch.nan), chosen).any()


def test_mixtral_by_configuration():
    transformers = pytest.importorskip("transformers")
    sizes = dict(hidden_size=16, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, vocab_size=30)
    config = transformers.MixtralConfig(**sizes, num_key_value_heads=1, num_local_experts=4)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    s = lacis.create_schedule(model, target="eager")
    s.match(r".*experts\..*_proj|.*gate\.weight").sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    twin = copy.deepcopy(model)
    model, ids = s.build(), torch.arange(20).reshape(2, 10)
    with torch.no_grad():
        for site in s.sites:
            twin.get_parameter(site.name).copy_(s[site.name].packed.to_dense().reshape(site.shape))
        for way in ("eager", "grouped_mm"):
            model.set_experts_implementation(way)
            torch.testing.assert_close(model(ids).logits, twin(ids).logits)
        model.set_experts_implementation("batched_mm")
        with pytest.raises(TypeError, match="a packed stack .4, 24, 16. is read one matrix at a time, w.3., and the"):
            model(ids)


class Whole(Experts):
    def forward(self, x, chosen):
        return x @ self.up.sum(0).T


class Unread(Experts):
    def forward(self, x, chosen):
        return x


class Four(Experts):
    def __init__(self):
        super().__init__()
        self.up = nn.Parameter(torch.randn(2, 2, 3, 4))


Hidden = type("Hidden", (Experts,), {})
exec("def forward(self, x): return x @ self.up[0]", made := {})
Hidden.forward = made["forward"]
COLUMNS = (csr, "its forward uses it in another way than self.up.number.; make its matrices layers, one each")
REFUSED = {
    "whole": (Whole, *COLUMNS),
    "unread": (Unread, csr, "its forward does not read self.up.number.; make its matrices layers"),
    "four axes": (Four, csr, "a bare tensor of more than three axes has no product of its own"),
    "hidden": (Hidden, csr, "the source of its forward is not there to see how it uses the stack"),
    "csc": (Experts, lambda h: h.set_format(lacis.Csc), "is a stretch of rows, which '.*' has not; take Csr, Ell, Bsr"),
    "edge": (
        Experts,
        lambda h: h.block(3, 5).set_format(lacis.Bsr),
        "blocks of 3 rows reach over the edge of matrices",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    make, formatted, message = REFUSED[case]
    with pytest.raises(lacis.ScheduleError, match=f"'up'.*{message}"):
        build(formatted, make, name="up")


def test_what_is_wrong_with_a_call():
    model, s, _, x, _ = build(csr)
    for index, error in ((3, IndexError), (-4, IndexError), (slice(1), TypeError), (torch.tensor([0, 1]), TypeError)):
        with pytest.raises(error, match="packed stack"):
            model.up[index]
    with pytest.raises(lacis.DataError, match="a batch .2, 7, 5. does not fit a packed stack .3, 8, 5."):
        torch.bmm(x[:2], model.up)
    with pytest.raises(lacis.DataError, match="grouped_mm with a packed stack takes rows"):
        F.grouped_mm(x, model.up.mT)
    with pytest.raises(lacis.DataError, match="a packed weight .3, 8, 5. is no matrix: only matrices have products"):
        F.linear(x, model.up)
    layer = nn.Sequential(nn.Linear(4, 4))
    s = lacis.create_schedule(layer, target="eager")
    s["0.weight"].set_format(lacis.Csr)
    with pytest.raises(TypeError, match="a packed weight .4, 4. is no stack of matrices; weight.to_dense()"):
        s.build()[0].weight[0]


def test_a_gradient_of_empty_places_is_refused():
    torch.manual_seed(0)
    model = Experts()
    s = lacis.create_schedule(model, target="eager")
    policy = lacis.Regrow(0.5, when=range(0, 10, 2), grow="gradient")
    s["up"].sparsify(policy).set_format(lacis.Csr)
    s.build()
    with pytest.raises(
        lacis.DataError, match="'up': Regrow reads the gradient of empty places, which 'stacked' does not"
    ):
        s.attach(torch.optim.SGD(model.parameters(), lr=0.1))
