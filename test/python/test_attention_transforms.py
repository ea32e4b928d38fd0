# SPDX-License-Identifier: Apache-2.0
"""Transforms of `torch.func` over attention and softmax, against dense attention in float64."""

import pytest
import torch
from dense_attention import B, H, S, T, D, E, agree, dense, drawn, grid, tensors
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

import lacis

KEPT = drawn(S, T)
WEIGHT = torch.randn(S, T, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
SINK = WEIGHT[0, :H]
ARRIVED = torch.randn(B, H, S, E, generator=torch.Generator().manual_seed(6), dtype=torch.float64)


def attention(pattern, **keywords):
    score = lambda s, b, h, i, j: s * WEIGHT[i, j]
    changes = {"score": score, "bias": WEIGHT, "sink": SINK, "causal": True, "target": "eager", **keywords}
    return lambda q, k, v: lacis.attention(q, k, v, pattern, **changes)


def expected(kept=KEPT):
    _, _, i, j = grid()
    return lambda q, k, v: dense(q, k, v, kept & (j <= i), change=lambda s: s * WEIGHT + WEIGHT, sink=SINK)[0]


def loss(call, *others):
    return lambda x: (call(x, *others) * ARRIVED).sum()


def of_loss(call, *operands):
    return (call(*operands) * ARRIVED).sum()


TRANSFORMS = {
    "grad": lambda call, *x: grad(lambda *x: of_loss(call, *x), (0, 1, 2))(*x),
    "grad of grad": lambda call, q, *x: [grad(lambda q: grad(loss(call, *x))(q).square().sum())(q)],
    "vjp": lambda call, *x: vjp(call, *x)[1](ARRIVED),
    "jvp": lambda call, *x: jvp(call, x, tuple(each.cos() for each in x)),
    "jacrev": lambda call, *x: [jacrev(call, 1)(*x)],
    "jacfwd": lambda call, *x: [jacfwd(call, 2)(*x)],
    "hessian": lambda call, q, *x: [hessian(lambda row: of_loss(call, q + row, *x))(torch.zeros(D).double())],
    "vmap": lambda call, *x: [vmap(call)(*(torch.stack([each, each.sin()]) for each in x))],
    "vmap of grad": lambda call, q, *x: [vmap(grad(loss(call, *x)))(torch.stack([q, q.sin()]))],
}


@pytest.mark.parametrize("target", ["eager", pytest.param("auto", marks=pytest.mark.long)])
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms_of_attention(transform, target):
    pattern = lacis.Pattern.from_mask(KEPT, lacis.Csr)
    found = transform(attention(pattern, target=target), *tensors(heads=2))
    agree(found, transform(expected(), *tensors(heads=2)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["grad", "vmap", "jvp"])
def test_a_rule_makes_its_pattern_outside_of_transforms(name):
    rule, transform = lacis.Causal(block=4), TRANSFORMS[name]
    agree(transform(attention(rule), *tensors()), transform(expected(torch.ones(S, T).bool()), *tensors()))
    agree(transform(attention(rule), *tensors()), transform(attention(lacis.Causal(block=4)), *tensors()))


class Nearest(lacis.TopKBlocks):
    def __init__(self):
        super().__init__(1, block=4)


def test_patterns_that_follow_the_data():
    q, k, v = tensors()
    rule = lacis.TopKBlocks(2, block=4)
    for pattern in (rule, Nearest, rule.blocks(q[:, :, :8], k[:, :, :8])[:, :, [0, 1, 0]]):
        leaf = q.clone().requires_grad_()
        plain = torch.autograd.grad(loss(attention(pattern), k, v)(leaf), leaf)
        agree([grad(loss(attention(pattern), k, v))(q)], plain)
    with pytest.raises(lacis.DataError, match="torch.vmap has several; make its first axis one of B"):
        vmap(attention(rule), (0, None, None))(q[None], k, v)


def test_transforms_of_softmax():
    packed = lacis.pack(torch.randn(S, T, dtype=torch.float64) * KEPT, lacis.Csr)
    places = KEPT.nonzero(as_tuple=True)

    def sparse(values):
        return lacis.softmax(lacis.PackedTensor(packed.pattern, {"": values}), "j", target="eager").values

    def full(values):
        return torch.full((S, T), -torch.inf).double().index_put(places, values).softmax(1)[places]

    for transform in (jacrev, jacfwd, lambda f: jacrev(jacrev(f)), lambda f: grad(lambda x: f(x)[3])):
        agree([transform(sparse)(packed.values)], [transform(full)(packed.values)])
    several = torch.stack([packed.values, packed.values.sin()])
    agree([vmap(sparse)(several)], [vmap(full)(several)])
