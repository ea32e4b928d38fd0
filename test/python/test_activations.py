# SPDX-License-Identifier: Apache-2.0
"""Activations and gradients that are packed as they pass: numbers of the masked dense model, and what is refused."""

import copy
import io

import lacis
import pytest
import torch
from lacis.runtime.activation import PackedActivation
from torch.utils.checkpoint import checkpoint

IN, HIDDEN, OUT = 24, 32, 16
X = torch.randn(5, 3, IN, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
MASK = torch.rand(15, HIDDEN, generator=torch.Generator().manual_seed(1)) < 0.3


def make(dtype=torch.float64):
    torch.manual_seed(0)
    layers = torch.nn.Linear(IN, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, OUT)
    return torch.nn.Sequential(*layers).to(dtype)


def record(s, edge, sparsifier, format, steps=()):
    handle = s[edge.removesuffix(".grad")]
    handle = handle.grad if edge.endswith(".grad") else handle
    handle = (handle if sparsifier is None else handle.sparsify(sparsifier)).set_format(format)
    for step in steps:
        handle._take(step)


def build(*edges, target="eager", dtype=torch.float64):
    """A built model with `(edge, sparsifier, format, steps)` packed, and its schedule."""
    model = make(dtype)
    s = lacis.create_schedule(model, target=target)
    for edge in edges:
        record(s, *edge)
    return s.build(), s


class Masked(torch.autograd.Function):
    """The identity, whose gradient is masked."""

    @staticmethod
    def forward(ctx, x, mask):
        ctx.mask = mask
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * kept(grad, ctx.mask), None


def kept(x, sparsifier):
    rows = x.detach().reshape(-1, x.shape[-1])
    return (rows != 0 if sparsifier is None else sparsifier(rows)).reshape(x.shape)


def masked(model, x, edges):
    """What the dense model answers when the edges (module 0 to 2) are masked."""

    def through(edge, x):
        if f"{edge}.grad" in edges:
            x = Masked.apply(x, edges[f"{edge}.grad"])
        return x * kept(x, edges[edge]) if edge in edges else x

    for n, module in enumerate(model):
        x = through(f"{n}:out", module(through(f"{n}:in0", x)))
    return x


def compare(model, twin, x, edges):
    results = []
    for run in (lambda x: model(x), lambda x: masked(twin, x, edges)):
        mine = x.clone().requires_grad_()
        y = run(mine)
        parameters = [p for m in (model if not results else twin) for p in m.parameters()]
        results.append([y, *torch.autograd.grad(y.square().sum() / 7, [mine, *parameters])])
    for ours, theirs in zip(*results):
        torch.testing.assert_close(ours + 0, theirs)


STEPS = (lacis.steps.Split("i", 8), lacis.steps.Parallel("b"))
TRAINED = (("1:out", lacis.Magnitude(0.75), lacis.Csr, STEPS), ("0:out.grad", lacis.Magnitude(0.5), lacis.Csr))


def test_products_run_on_packed_activations_and_gradients():
    model, s = build(*TRAINED, target="cpu")
    compare(model, make(), X, {edge[0]: edge[1] for edge in TRAINED})
    assert list(s["1:out"].kernels) == ["bj,ij->bi"]
    assert set(s["0:out"].grad.kernels) == {"bj,ji->bi", "bj,bi->ji", "bj->j"}  # of the input, the weight, the bias
    assert s["1:out"].kernel.steps[:2] == s["1:out"].steps[2:] == STEPS


BLOCKS = lacis.BlockMagnitude(0.5, block=(4, 4))
CASES = {
    "coo": ("1:out", lacis.Magnitude(0.5), lacis.Coo),
    "csc": ("2:in0", lacis.Random(0.5), lacis.Csc),
    "ell": ("1:out", lacis.NM(2, 4), lacis.Ell(width=16)),
    "bsr": ("1:out", BLOCKS, lacis.Bsr(4, 4)),  # 15 rows: the last blocks reach beyond
    "dense": ("1:out", None, lacis.Dense),
    "first": ("0:in0", lacis.Magnitude(0.5), lacis.Csr),
    "last": ("2:out", lacis.Magnitude(0.5), lacis.Csr),
    "given": ("1:out", lacis.sparsifiers.Given(MASK), lacis.Csr),
    "gradient of an input": ("1:in0.grad", lacis.Magnitude(0.5), lacis.Csr),
    "gradient in blocks": ("2:out.grad", BLOCKS, lacis.Bsr(4, 4)),
    "gradient of the input": ("0:in0.grad", lacis.NM(1, 4), lacis.Ell(width=8)),
}


@pytest.mark.parametrize("case", CASES)
def test_every_static_format_has_the_numbers_of_the_masked_model(case):
    edge, sparsifier, _ = CASES[case]
    compare(build(CASES[case])[0], make(), X, {edge: sparsifier})


def test_leaves_have_plain_gradients():
    model, _ = build(CASES["gradient of the input"])
    x = X.clone().requires_grad_()
    model(x).square().sum().backward()
    assert all(type(tensor.grad) is torch.Tensor for tensor in (x, *model.parameters()))


def test_gradcheck():
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3)).double()
    s = lacis.create_schedule(model, target="eager")
    record(s, "1:out", lacis.sparsifiers.Given(MASK[:2, :6]), lacis.Csr)
    x = X[0, :2, :4].clone().requires_grad_()
    s.build()
    assert torch.autograd.gradcheck(model, (x,)) and torch.autograd.gradgradcheck(model, (x,))


def test_other_readers_see_the_dense_tensor():
    edge = build(CASES["coo"])[0][:2](X)
    assert isinstance(edge, PackedActivation) and "PackedActivation(1:out, [5, 3, 32]" in repr(edge)
    dense = edge + 0
    assert type(dense) is torch.Tensor and torch.equal(dense != 0, (dense + edge) != 0)
    weight = torch.randn(HIDDEN, 7, dtype=torch.float64)
    flat = edge.view(15, HIDDEN)
    assert isinstance(flat, PackedActivation) and isinstance(flat.T, torch.Tensor)
    bias = torch.randn(7, dtype=torch.float64)
    for answer in (edge @ weight, torch.matmul(edge, weight), (flat @ weight).view(5, 3, 7)):
        torch.testing.assert_close(answer, dense @ weight)
    torch.testing.assert_close(torch.addmm(bias, flat, weight), dense.view(15, -1) @ weight + bias)
    torch.testing.assert_close(bias[:5] @ edge.new_ones(5, 15) @ flat, (bias[:5].sum() * dense.view(15, -1)).sum(0))
    torch.testing.assert_close(torch.ones(2, 15).double() @ flat, torch.ones(2, 15).double() @ dense.view(15, -1))
    torch.testing.assert_close(flat.t().matmul(dense.view(15, -1)), dense.view(15, -1).T @ dense.view(15, -1))


def test_without_gradients_and_restored():
    model, s = build(*TRAINED, target="cpu")
    expected = model(X)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert torch.equal(model(X), expected)
    model = s.restore()
    assert torch.equal(model(X), make()(X)) and not model[1]._forward_hooks


def test_copies_and_files_pack_as_well():
    model, _ = build(*TRAINED, target="cpu")
    torch.save(model, file := io.BytesIO())
    file.seek(0)
    for twin in (copy.deepcopy(model), torch.load(file, weights_only=False)):
        assert torch.equal(twin(X), model(X)) and isinstance(twin[:2](X), PackedActivation)


@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing(reentrant):
    x = X.clone().requires_grad_()
    again, model = (build(*TRAINED, target="cpu")[0] for _ in range(2))
    checkpoint(again, x, use_reentrant=reentrant).sum().backward()
    model(x).sum().backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(again.parameters(), model.parameters()))


def test_autocast_packs_in_the_dtype_of_the_region():
    model, _ = build(*TRAINED, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        y = model(X.float())
    assert y.dtype == torch.bfloat16
    y.float().sum().backward()
    assert model[0].weight.grad.dtype == torch.float32
    torch.testing.assert_close(
        y.float(), masked(make(torch.float32), X.float(), {"1:out": TRAINED[0][1]}), atol=0.1, rtol=0.1
    )


@pytest.mark.parametrize("grad", [True, False])
def test_torch_compile_traces_masked_operators(grad):
    torch._dynamo.reset()
    model, _ = build(*TRAINED)
    with torch.set_grad_enabled(grad):
        compare_with = masked(make(), X, {edge[0]: edge[1] for edge in TRAINED})
        traced = torch.compile(model, fullgraph=True, backend="aot_eager")(X)
    torch.testing.assert_close(traced, compare_with)
    if grad:
        traced.sum().backward()
        assert int((model[0].weight.grad != 0).sum()) > 0


def test_a_sum_is_refused():
    s = lacis.create_schedule(make())
    s["1:out"].sparsify(lacis.Magnitude(0.5)).decompose(ell=lacis.Ell(width=2), rest=lacis.Coo)
    with pytest.raises(lacis.FormatError, match="parts of a sum"):
        s.build()


@pytest.mark.parametrize("edge", ["2:in0", "2:out.grad"])
def test_two_packed_operands_are_refused_at_build(edge):
    model = make()
    s = lacis.create_schedule(model)
    record(s, edge, lacis.Magnitude(0.5), lacis.Csr)
    record(s, "2.weight", lacis.Magnitude(0.5), lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match=rf"'{edge}' is packed and so is '2.weight'"):
        s.build()
    assert type(model[2]) is torch.nn.Linear and not model[2]._forward_pre_hooks


def test_two_packed_operands_are_refused_where_they_meet():
    csr = (lacis.Magnitude(0.5), lacis.Csr)
    weight = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(24, 24)).eval()
    s = lacis.create_schedule(weight, target="cpu")
    record(s, "0:out", *csr)
    record(s, "1.weight", lacis.Magnitude(0.5), lacis.Csc)
    s.build()
    both, _ = build(TRAINED[0], ("2:out.grad", *csr), target="cpu")
    message = r"test_activations.py:\d+: '([01]:out|2:out.grad)' is packed: .*leave one of them dense"
    with pytest.raises(lacis.ScheduleError, match=message), torch.no_grad():
        weight(X.float())
    with pytest.raises(lacis.ScheduleError, match=message):
        both(X).sum().backward()


REFUSED = {
    "loops": (lambda s: s["2:out"].grad.split("b", 2), "no kernel of its own makes this gradient"),
    "values": (lambda s: s["2.weight"].grad.set_format(lacis.Csr), "is no operand of a product"),
    "twice": (lambda s: s["2:out"].grad.grad, "gradients of gradients"),
    "again": (lambda s: s["1:out"].set_format(lacis.Csr).set_format(lacis.Csc), "set_format"),
    "no format": (lambda s: (s["1:out"].sparsify(lacis.Magnitude(0.5)), s.build()), "has no format"),
    "no run": (lambda s: (s["1:out"].set_format(lacis.Dense), s.build(), s["1:out"].kernel), "no product has run"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_is_refused(case):
    verb, message = REFUSED[case]
    with pytest.raises(lacis.ScheduleError, match=message):
        verb(lacis.create_schedule(make()))


class Odd(torch.nn.Module):
    def forward(self, x, kind="tuple"):
        return {"tuple": (x, x), "int": x.long(), "same": x}[kind]


PASSING = {
    "a tuple passes there": ("0:out", lambda m: m(X)),
    "a tensor of torch.int64 with 3 axes": ("0:out", lambda m: m[0](X, "int")),
    "called with 0 arguments by position": ("0:in0", lambda m: m[0](x=X)),
    "'aten.relu_.default' changes it in place": ("0:out", lambda m: m[0](X, "same").relu_()),
}


@pytest.mark.parametrize("message", PASSING)
def test_what_cannot_be_packed_says_so_when_it_passes(message):
    edge, call = PASSING[message]
    model = torch.nn.Sequential(Odd())
    s = lacis.create_schedule(model, target="eager")
    record(s, edge, lacis.Magnitude(0.5), lacis.Csr)
    s.build()
    with pytest.raises(lacis.ScheduleError, match=rf"test_activations.py:\d+: '{edge}'.*{message}"):
        call(model)


def test_a_width_that_is_too_small_names_the_edge():
    with pytest.raises(lacis.DataError, match="'1:out': 'packed' has width 8, but row 0 holds 16"):
        build(("1:out", lacis.NM(2, 4), lacis.Ell(width=8)))[0](X)


def test_no_second_derivative_of_a_packed_gradient():
    model, _ = build(TRAINED[1])
    with pytest.raises(lacis.ScheduleError, match="leave create_graph out"):
        torch.autograd.grad(model(X.clone().requires_grad_()).square().sum(), model[0].weight, create_graph=True)
