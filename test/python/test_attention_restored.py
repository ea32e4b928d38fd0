# SPDX-License-Identifier: Apache-2.0
"""What happens to scheduled modules between `build` and `restore`: checkpoints, graphs, other classes, other places."""

import copy

import pytest
import torch
import torch.nn.functional as F
from test_attention_modules import WIDTH, Model, made, sample
from torch.utils.checkpoint import checkpoint

import lacis


def scheduled(model, *paths, rule=lacis.Local(2), score=None):
    s = lacis.create_schedule(model, target="eager")
    for path in paths:
        handle = s[path].sparsify(rule).block(8, 8).set_format(lacis.Bsr)
        if score is not None:
            handle.score(score)
    return s


class Heads(torch.nn.Module):
    """Attention of one head; `around` is what runs it."""

    def __init__(self, around=None):
        super().__init__()
        self.scale, self.around = torch.nn.Parameter(torch.ones(1)), around

    def attend(self, q):
        return F.scaled_dot_product_attention(q, q, q)

    def forward(self, x):
        q = (x * self.scale)[:, None]
        return (self.attend(q) if self.around is None else self.around(self.attend, q))[:, 0]


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Heads()
        self.second = self.first

    def forward(self, x):
        return self.second(self.first(x))


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_inside_recomputes_on_the_pattern(reentrant):
    gradients = []
    for around in (None, lambda function, q: checkpoint(function, q, use_reentrant=reentrant)):
        model = torch.nn.Sequential(Heads(around))
        scheduled(model, "0").build()
        model(sample()).square().sum().backward()
        gradients.append(model[0].scale.grad)
    torch.testing.assert_close(*gradients)


class Outer(torch.nn.Module):
    """Attends after its inner module; a checkpoint runs both."""

    def __init__(self, around):
        super().__init__()
        self.inner, self.around = Heads(), around

    def forward(self, x):
        both = lambda x: F.scaled_dot_product_attention(*[self.inner(x)[:, None]] * 3)[:, 0]
        return both(x) if self.around is None else self.around(both, x)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_recomputation_of_doors_within_each_other(reentrant):
    gradients = []
    for around in (None, lambda function, q: checkpoint(function, q, use_reentrant=reentrant)):
        model, x = torch.nn.Sequential(Outer(around)), sample().requires_grad_()
        s = scheduled(model, "0")
        s["0.inner"].sparsify(lacis.Local(5)).block(8, 8).set_format(lacis.Bsr)
        output = s.build()(x)
        output.square().sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)


class Same(lacis.PatternRule):
    """Of a user's class, whose fields may not say all."""

    def layout(self, heads, q, k, block):
        return torch.eye(*self.grid(q, k, block), dtype=torch.bool)[None]


@pytest.mark.parametrize("rule", [lacis.Local, Same])
def test_one_module_of_two_names_has_one_door(rule):
    model, x = Tied(), sample()
    expected = model(x)
    s = lacis.create_schedule(model, target="eager")
    for name in ("first", "second"):
        s[name].sparsify(rule(2) if rule is lacis.Local else rule()).block(8, 8).set_format(lacis.Bsr)
    s.build()
    assert model.first._lacis_door.names == ["first", "second"] and not torch.equal(model(x), expected)
    assert type(s.restore().first) is Heads
    torch.testing.assert_close(model(x), expected)


def test_two_names_with_other_verbs_are_refused():
    model = Tied()
    s = scheduled(model, "first")
    s["second"].sparsify(lacis.Local(4)).block(8, 8).set_format(lacis.Bsr)
    with pytest.raises(lacis.ScheduleError, match="'first': 'second' is the same module, with other verbs"):
        s.build()
    assert type(model.first) is Heads


def test_a_second_schedule_is_refused():
    model, x = torch.nn.Sequential(Heads()), sample()
    first = scheduled(model, "0")
    expected = first.build()(x)
    second = scheduled(model, "0", rule=lacis.Local(4))
    with pytest.raises(lacis.ScheduleError, match="'0': another schedule was built on it; restore"):
        second.build()
    torch.testing.assert_close(model(x), expected)
    first.restore()
    assert not torch.equal(second.build()(x), expected)


def test_another_class_on_top_stays():
    model, x = torch.nn.Sequential(Heads()), sample()
    expected = model(x)
    s = scheduled(model, "0")
    s.build()
    model[0].__class__ = type("Top", (type(model[0]),), {"on_top": True})
    assert not torch.equal(model(x), expected)
    s.restore()
    assert model[0].on_top and type(model[0]).__mro__[1] is Heads
    torch.testing.assert_close(model(x), expected)


def test_a_class_on_top_that_calls_super_is_refused():
    model, x = torch.nn.Sequential(Heads()), sample()
    s = scheduled(model, "0")
    expected = s.build()(x)

    class Top(type(model[0])):
        def extra_repr(self):
            return super().extra_repr()

    model[0].__class__ = Top
    with pytest.raises(lacis.ScheduleError, match="'0': Top was put on top of it and calls super"):
        s.restore()
    torch.testing.assert_close(model(x), expected)
    model[0].__class__ = Top.__bases__[0]
    assert type(s.restore()[0]) is Heads


def test_weight_norm_after_the_build():
    model, x = torch.nn.ModuleDict({"a": torch.nn.MultiheadAttention(WIDTH, 4, batch_first=True)}), sample()
    run = lambda: model["a"](x, x, x, need_weights=False)[0]
    expected = run()
    s = scheduled(model, "a")
    s.build()
    torch.nn.utils.parametrizations.weight_norm(model["a"], "in_proj_weight")
    assert not torch.allclose(run(), expected)
    s.restore()
    torch.testing.assert_close(run(), expected)
    torch.nn.utils.parametrize.remove_parametrizations(model["a"], "in_proj_weight")
    assert type(model["a"]) is torch.nn.MultiheadAttention


def test_layers_that_moved_are_found():
    layers = [Heads() for _ in range(3)]
    model = torch.nn.ModuleDict({"layers": torch.nn.ModuleList(layers)})
    s = scheduled(model, "layers.0", "layers.1", "layers.2")
    s.build()
    model["layers"] = torch.nn.ModuleList([layers[2], Heads()])
    s.restore()
    assert all(type(each) is Heads and "_lacis_door" not in vars(each) for each in layers)
    model = torch.nn.Sequential(Heads())
    s = scheduled(model, "0")
    s.build()
    model[0] = Heads()
    s.restore()  # nobody holds the first one


def test_classes_that_are_told_of_subclasses():
    class Named(Heads):
        def __init_subclass__(cls, *, name, **options):
            raise AssertionError("not to be asked")

    model, x = torch.nn.Sequential(Named()), sample()
    s = scheduled(model, "0")
    s.build(x)
    assert type(s.restore()[0]) is Named


def test_a_class_that_takes_no_subclass_is_refused():
    class Final(type):
        def __new__(meta, name, bases, space):
            if any(isinstance(base, Final) for base in bases):
                raise TypeError("final")
            return super().__new__(meta, name, bases, space)

    class Last(Heads, metaclass=Final):
        pass

    model = torch.nn.Sequential(Last())
    with pytest.raises(lacis.ScheduleError, match="'0': its class Last takes no subclass"):
        scheduled(model, "0").build()
    assert type(model[0]) is Last and not model[0]._forward_pre_hooks


class Broken(Heads):
    def forward(self, x):
        torch._dynamo.graph_break()
        return super().forward(x)


@pytest.mark.parametrize("case", ["break", "score", "inside", "inside with a score"])
def test_graphs_that_break_in_a_scheduled_module(case):
    """What was compiled before by itself stays compiled."""
    import torch._dynamo

    torch._dynamo.reset()
    attend = torch.compile(lambda function, q: F.scaled_dot_product_attention(q, q, q), backend="eager")
    model = torch.nn.Sequential({"break": Broken, "score": Heads}.get(case, lambda: Heads(attend))())
    x, score = sample(), (lambda s, b, h, i, j: s - (i - j)) if "score" in case else None
    expected = scheduled(torch.nn.Sequential(Heads()), "0", score=score).build()(x)
    scheduled(model, "0", score=score).build()
    compiled = model if "inside" in case else torch.compile(model, backend="eager")
    for _ in range(2):
        torch.testing.assert_close(compiled(x), expected)


def test_an_encoder_of_torch_makes_no_nested_tensors_meanwhile():
    layer = torch.nn.TransformerEncoderLayer(WIDTH, 4, 24, batch_first=True)
    model, x = torch.nn.TransformerEncoder(layer, 2).eval(), sample()
    padding = torch.arange(x.shape[1]) >= torch.tensor([[x.shape[1]], [25]])
    there = ~padding[..., None]
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=padding) * there
        s = scheduled(model, "layers.0.self_attn", "layers.1.self_attn", rule=lacis.Local(99))
        found = s.build(x, src_key_padding_mask=padding)(x, src_key_padding_mask=padding) * there
        torch.testing.assert_close(found, expected)
        s.restore()
        assert model.use_nested_tensor
        torch.testing.assert_close(model(x, src_key_padding_mask=padding) * there, expected)


def test_weights_of_a_copy_are_its_own():
    """A copy of a built model has a door of its own, which holds nothing of the first."""
    model, x = made(Model), sample()
    scheduled(model, "attention").build()
    other = copy.deepcopy(model)
    assert other.attention._lacis_door.module is None
    torch.testing.assert_close(other(x), model(x))
