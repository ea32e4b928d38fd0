# SPDX-License-Identifier: Apache-2.0
"""Transforms of `torch.func` and forward mode, on einsums and built layers, against the dense product."""

import copy

import lacis
import pytest
import torch
from lacis.errors import DataError
from lacis.runtime import gradients
from lacis.runtime.gradients import BackwardError
from strategies import mostly_long
from test_gradients import FORMATS, problem
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap
from training import SHAPE


def products(name="csr", expression="ij,bj->bi"):
    """The sparse and the dense product as functions of (values, x), and such arguments."""
    packed, _, others = problem(FORMATS[name], expression, dtype=torch.float32)
    sparse = lambda values, *rest: lacis.einsum(expression, packed.with_values(values), *rest)
    dense = lambda values, *rest: torch.einsum(expression, packed.with_values(values).to_dense(), *rest)
    return sparse, dense, (packed.values, *(other.detach() for other in others))


def squares(function):
    return lambda *arguments: function(*arguments).square().sum()


def forward_mode(function):
    def run(*arguments):
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(each, torch.ones_like(each)) for each in arguments]
            return forward_ad.unpack_dual(function(*duals)).tangent

    return run


ONES = lambda arguments: tuple(map(torch.ones_like, arguments))
TRANSFORMS = {
    "jvp": lambda f: lambda *a: jvp(f, a, ONES(a)),
    "jvp of one": lambda f: lambda v, x: jvp(lambda x: f(v, x), (x,), ONES((x,))),
    "jacfwd": lambda f: jacfwd(f, argnums=(0, 1)),
    "jacrev": lambda f: jacrev(f, argnums=(0, 1)),
    "grad": lambda f: grad(squares(f), argnums=(0, 1)),
    "vjp": lambda f: lambda *a: vjp(f, *a)[1](f(*a)),
    "hessian": lambda f: hessian(squares(f), argnums=1),
    "dual numbers": forward_mode,
    "dual numbers in inference": lambda f: torch.no_grad()(forward_mode(f)),
    "vmap": lambda f: lambda v, x: vmap(f, (None, 0))(v, torch.stack([x, 2 * x])),
    "vmap in inference": lambda f: torch.no_grad()(lambda v, x: vmap(f, (None, 1))(v, torch.stack([x, 2 * x], 1))),
    "vmap over values": lambda f: lambda v, x: vmap(f, (0, None))(torch.stack([v, 2 * v, 3 * v]), x),
    "vmap over nothing": lambda f: lambda v, x: vmap(f, (None, 0))(v, x.new_empty(0, *x.shape)),
    "gradients per sample": lambda f: lambda v, x: vmap(grad(squares(f)), (None, 0))(v, torch.stack([x, 2 * x])),
    "gradient of a batch": lambda f: grad(lambda v, x: vmap(f, (None, 0))(v, torch.stack([x, 2 * x])).sum()),
    "forward over reverse": lambda f: lambda *a: jvp(grad(squares(f), argnums=(0, 1)), a, ONES(a)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_products(transform):
    sparse, dense, arguments = products()
    torch.testing.assert_close(TRANSFORMS[transform](sparse)(*arguments), TRANSFORMS[transform](dense)(*arguments))


def test_no_values_at_all():
    sparse, _, (values, x) = products()
    assert vmap(sparse, (0, None))(values.new_empty(0, *values.shape), x).shape == (0, 3, 7)


@pytest.mark.parametrize("name", mostly_long(["coo", "ell", "bsr", "sum"]))
def test_formats(name):
    """The tangents of padding count for nothing, as its gradient is 0."""
    packed, _, (x,) = problem(FORMATS[name])
    stored = packed.values_by_part

    def function(product):
        def run(*values):
            values = dict(zip(stored, values))
            return product(packed.with_values(values if isinstance(packed.values, dict) else values[""]))

        return run

    sparse = function(lambda w: lacis.einsum("ij,bj->bi", w, x.detach()))
    dense = function(lambda w: x.detach() @ w.to_dense().T)
    forward = lambda f: jvp(f, tuple(stored.values()), ONES(stored.values()))
    for transform in (forward, lambda f: jacrev(f)(*stored.values())):
        torch.testing.assert_close(transform(sparse), transform(dense))


@pytest.mark.parametrize("transform", mostly_long(["jvp", "grad", "vmap over values", "vmap"], "jvp"))
def test_one_column(transform):
    sparse, dense, arguments = products(expression="ij,j->i")
    torch.testing.assert_close(TRANSFORMS[transform](sparse)(*arguments), TRANSFORMS[transform](dense)(*arguments))


@pytest.mark.long
def test_sampled():
    packed, _, others = problem(FORMATS["csr"], "ij,ik,jk->ij")
    arguments = (packed.values, *(other.detach() for other in others))
    sparse = lambda v, l, r: lacis.einsum("ij,ik,jk->ij", packed.with_values(v), l, r).values
    dense = lambda v, l, r: packed.pattern.gather(packed.with_values(v).to_dense() * (l @ r.T))
    torch.testing.assert_close(jvp(sparse, arguments, ONES(arguments)), jvp(dense, arguments, ONES(arguments)))
    for argument in range(3):
        torch.testing.assert_close(jacrev(sparse, argument)(*arguments), jacrev(dense, argument)(*arguments))


@pytest.mark.long
def test_gradients_of_gradients_of_a_pattern():
    """The gradient of its values reads no values; those that arrive are others."""
    packed, _, others = problem(FORMATS["csr"], "ij,ik,jk->ij")
    left, right = (other.detach() for other in others)
    sparse = lambda l: lacis.einsum("ij,ik,jk->ij", packed.pattern, l, right).values
    dense = lambda l: packed.pattern.gather(l @ right.T)
    twice = lambda f: grad(lambda l: squares(grad(lambda l: (f(l) ** 3).sum()))(l))
    torch.testing.assert_close(twice(sparse)(left), twice(dense)(left))


def test_epilogues():
    packed, _, (x,) = problem(FORMATS["csr"], dtype=torch.float32)
    bias = torch.randn(7)

    def sparse(x, bias):
        after = lacis.Epilogue(bias=bias, activation="relu", scale=2.0)
        return lacis.einsum("ij,bj->bi", packed, x, epilogue=after)

    dense = lambda x, bias: torch.relu(2 * x @ packed.to_dense().T + bias)
    arguments = x.detach(), bias
    torch.testing.assert_close(jvp(sparse, arguments, ONES(arguments)), jvp(dense, arguments, ONES(arguments)))
    torch.testing.assert_close(jacrev(sparse, (0, 1))(*arguments), jacrev(dense, (0, 1))(*arguments))


def test_other_semirings_raise():
    w, x = lacis.pack(torch.eye(3), lacis.Csr), torch.ones(2, 3)
    function = lambda x: lacis.einsum("ij,bj->bi", w, x, semiring="max_plus")
    for transform in (lambda: jvp(function, (x,), (x,)), lambda: grad(lambda x: function(x).sum())(x)):
        with pytest.raises(BackwardError, match="semiring 'max_plus' is forward only"):
            transform()
    assert vmap(function)(x[None])[0].equal(function(x))


def build(seed=0, train=True, **options):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(*SHAPE[:2]), torch.nn.Tanh(), torch.nn.Linear(*SHAPE[1:])).train(train)
    s = lacis.create_schedule(model, **options)
    s["0.weight"].sparsify(lacis.Magnitude(0.75)).set_format(lacis.Csr)
    return s.build()


X = torch.randn(3, SHAPE[0], generator=torch.Generator().manual_seed(1))


def twin(model):
    dense = copy.deepcopy(model)
    weight = model[0].weight.to_dense().detach()
    dense[0] = torch.nn.Linear(*SHAPE[:2])
    dense[0].weight, dense[0].bias = torch.nn.Parameter(weight), copy.deepcopy(model[0].bias)
    return dense


@pytest.mark.parametrize("options", [{}, {"target": "eager"}, {"allow_dense": True}], ids=["kernel", "eager", "dense"])
@pytest.mark.parametrize("train", [True, False])
def test_built_models(options, train):
    model = build(train=train, **options)
    dense = twin(model)
    for each in (model, dense):  # what calls like this one are bound to is not taken for those of a transform
        each(X)
    for transform in (jacfwd, jacrev, lambda f: lambda x: jvp(f, (x,), (x,)), lambda f: vmap(grad(squares(f)))):
        torch.testing.assert_close(transform(model)(X), transform(dense)(X))
    with torch.no_grad():
        torch.testing.assert_close(jvp(model, (X,), (X,)), jvp(dense, (X,), (X,)))
    model(X).sum().backward()
    assert not any(torch._C._functorch.is_functorch_wrapped_tensor(each) for each in model.buffers())


def test_gradients_per_sample():
    model = build()
    dense = twin(model)

    def found(model):
        loss = lambda parameters, x: functional_call(model, parameters, (x[None],)).square().sum()
        return vmap(grad(loss), (None, 0))(dict(model.named_parameters()), X)

    mine, theirs = found(model), found(dense)
    torch.testing.assert_close(mine["0.bias"], theirs["0.bias"])
    gather = model[0].weight.packed().pattern.gather
    torch.testing.assert_close(mine["0.weight.values"], torch.stack([gather(each) for each in theirs["0.weight"]]))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_ensembles(device):
    """Models with patterns of their own, of as many entries each."""
    models = [build(seed) for seed in range(3)]
    parameters, buffers = stack_module_state(models)
    base = copy.deepcopy(models[0]).to(device)
    run = lambda p, b, x: functional_call(base, (p, b), (x,))
    torch.testing.assert_close(vmap(run, (0, 0, None))(parameters, buffers, X), torch.stack([m(X) for m in models]))
    found = vmap(grad(squares(run)), (0, 0, None))(parameters, buffers, X)
    expected = [grad(squares(run))(dict(m.named_parameters()), dict(m.named_buffers()), X) for m in models]
    for name in parameters:
        torch.testing.assert_close(found[name], torch.stack([each[name] for each in expected]))


def test_ensembles_need_all_arrays(monkeypatch):
    monkeypatch.setattr(gradients, "_families", {})  # else the arrays are there that other tests asked for
    models = [build(seed, train=False) for seed in range(2)]
    parameters, buffers = stack_module_state(models)
    run = lambda base: lambda p, b, x: functional_call(base, (p, b), (x,)).sum()
    with pytest.raises(DataError, match="of several patterns at once.*call .train.. of each, before"):
        vmap(grad(run(models[0]), argnums=(0, 2)), (0, 0, None))(parameters, buffers, X)
    models[0].train()
    with pytest.raises(DataError, match="vmap: the patterns of several weights are stacked, .* is that of one"):
        vmap(grad(run(models[0]), argnums=(0, 2)), (0, 0, None))(parameters, buffers, X)


def test_autocast():
    model = build()
    with torch.autocast("cpu", torch.bfloat16):
        tangent = jvp(model, (X,), (X,))[1]
        gradient = grad(squares(model))(X)
    expected = jvp(twin(model), (X,), (X,))[1], grad(squares(twin(model)))(X)
    torch.testing.assert_close((tangent.float(), gradient), expected, rtol=0.1, atol=0.1)
