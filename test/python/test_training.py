# SPDX-License-Identifier: Apache-2.0
"""A built model trains: its gradients are those of the masked dense model, and padding never becomes weight."""

import copy

import lacis
import pytest
import torch
from lacis.nn import bound_step
from lacis.runtime import library
from lacis.runtime.compile import Kernel
from strategies import mostly_long
from training import FORMATS, SHAPE, assert_gradients_match, build, entries, gathered, masked, values


def loss_of(model, x):
    return model(x).float().square().mean()


@pytest.mark.parametrize("target", ["cpu", "eager"])
@pytest.mark.parametrize("format", mostly_long(FORMATS, "csr", "csc", "bsr", "nest", "sum"))
def test_gradients_are_those_of_the_masked_dense_model(format, target):
    model, _ = build(format, target)
    twin = masked(model)
    x = torch.randn(3, 5, SHAPE[0], requires_grad=True)
    y = x.detach().clone().requires_grad_()
    loss_of(model, x).backward()
    loss_of(twin, y).backward()
    torch.testing.assert_close(x.grad, y.grad)
    assert_gradients_match(model, twin)


OPTIMIZERS = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.3),
    "AdamW foreach": lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.3, foreach=True),
    "AdamW fused": lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.3, fused=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.05),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
    "SGD foreach": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "SGD fused": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("format", mostly_long(["ell", "bsr", "uneven", "sum"], "bsr", "sum"))
def test_padding_stays_zero_under_any_optimizer(format, optimizer):
    model, _ = build(format)
    twin = masked(model)
    ours, theirs = OPTIMIZERS[optimizer](model.parameters()), OPTIMIZERS[optimizer](twin.parameters())
    x = torch.randn(16, SHAPE[0])
    for _ in range(10):
        for each, steps in ((model, ours), (twin, theirs)):
            steps.zero_grad()
            (each(x) - 1).square().mean().backward()
            torch.nn.utils.clip_grad_norm_(each.parameters(), 0.5)
            steps.step()
    for n in (0, 2):
        torch.testing.assert_close(model[n].weight.to_dense(), twin[n].weight, rtol=1e-3, atol=1e-4)
        for part, tensor in values(model[n]).items():
            assert not tensor[~entries(model[n])[part]].any()


@pytest.mark.parametrize("quick", [True, False])
def test_only_gradients_that_are_asked_for_are_computed(monkeypatch, quick):
    monkeypatch.setattr(Kernel, "bind_layer", staticmethod(lambda *call: None))  # a node's are in test_quick_steps
    model, _ = build("csr")
    launched = []
    monkeypatch.setattr(library, "einsum", lambda *a, run=library.einsum: launched.append(a[3]) or run(*a))
    keys = {role: kernel.key for role, kernel in model_kernels(model).items()}
    for name, role in (("_input_gradient", "x"), ("_values_gradient", "values")):
        run = getattr(bound_step.Bound, name)
        ran = lambda *a, run=run, role=role: launched.append(keys[role]) or run(*a)
        monkeypatch.setattr(bound_step.Bound, name, ran)
    if not quick:
        model[0]._quick_steps = lambda x: None

    def backward(x):
        launched.clear()
        loss = loss_of(model[0], x)
        launched.clear()
        loss.backward()
        return {role for role, key in keys.items() if key in launched}

    x = torch.randn(4, SHAPE[0])
    assert backward(x) == {"values"}
    assert backward(x.requires_grad_()) == {"values", "x"}
    model[0].weight.requires_grad_(False)
    assert backward(x) == {"x"}
    assert backward(x.detach()) == set()  # the bias alone


def model_kernels(model):
    family = model[0].family()
    return {slot: family.gradient(slot).kernel for slot in family.slots}


HALVES = [(format, dtype) for format in ("csc", "nest", "sum") for dtype in (torch.float16, torch.bfloat16)]


@pytest.mark.parametrize("format, dtype", mostly_long(HALVES))
def test_half_types_accumulate_in_float32(format, dtype):
    model, _ = build(format, dtype=dtype)
    twin = masked(model, torch.float64)
    x = torch.randn(200, SHAPE[0], dtype=dtype, requires_grad=True)
    y = x.detach().double().requires_grad_()
    model[0](x).sum().backward()
    twin[0](y).sum().backward()
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(x.grad.double(), y.grad, rtol=2 * unit, atol=unit)
    expected = gathered(model[0], twin[0].weight.grad)
    for part, tensor in values(model[0]).items():
        assert tensor.grad.dtype == dtype
        torch.testing.assert_close(tensor.grad.double(), expected[part], rtol=2 * unit, atol=4 * unit)


def test_restore_gives_back_trained_values():
    model, s = build("nest")
    before = model[0].weight.to_dense().detach()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    loss_of(model, torch.randn(8, SHAPE[0])).backward()
    optimizer.step()
    trained = model[0].weight.to_dense().detach()
    s.restore()
    assert torch.equal(model[0].weight, trained) and not torch.equal(trained, before)


def test_trains_after_build_in_evaluation_mode():
    model, s = build("csr")
    s.restore().eval()
    s.build()
    assert not model[0]._bound
    x = torch.randn(2, SHAPE[0])
    with torch.no_grad():
        model(x)
    assert not model[0]._bound
    loss_of(model, x).backward()  # compiled at the first step
    assert model[0]._bound and model[0].weight.values.grad is not None


def test_a_copy_trains_by_itself():
    model, _ = build("csc")
    twin = copy.deepcopy(model)
    x = torch.randn(2, SHAPE[0])
    loss_of(twin, x).backward()
    assert model[0].weight.values.grad is None
    loss_of(model, x).backward()
    assert torch.equal(model[0].weight.values.grad, twin[0].weight.values.grad)


def test_a_new_pattern_trains():
    model, _ = build("csc")
    dense = torch.randn(SHAPE[1], SHAPE[0]) * (torch.rand(SHAPE[1], SHAPE[0]) < 0.3)
    model[0].weight.set_packed(lacis.pack(dense, lacis.Csc))
    twin = masked(model)
    x = torch.randn(4, SHAPE[0])
    loss_of(model, x).backward()
    loss_of(twin, x).backward()
    torch.testing.assert_close(model[0].weight.values.grad, gathered(model[0], twin[0].weight.grad)[""])


def test_gradients_take_steps_of_their_own():
    torch.manual_seed(0)
    plain, _ = build("csr")
    x = torch.randn(6, SHAPE[0], requires_grad=True)
    loss_of(plain, x).backward()
    expected, x.grad = x.grad, None
    model = torch.nn.Sequential(torch.nn.Linear(*SHAPE[:2]), torch.nn.Tanh(), torch.nn.Linear(*SHAPE[1:]))
    s = lacis.create_schedule(model, target="cpu")
    s.match(r"\d\.weight").sparsify(lacis.Magnitude(0.8)).set_format(lacis.Csr)
    given = s["0:in0"].grad.split("b", 2).parallel("j")
    assert repr(given) == 's["0:in0.grad"].split("b", 2).parallel("j")' and "0:in0.grad.split" in str(s)
    s.build().load_state_dict(plain.state_dict())
    loss_of(model, x).backward()
    torch.testing.assert_close(x.grad, expected)
    assert s["0.weight"].kernels["grad_input"].steps[:2] == given.steps == given.kernel.steps[:2]
    assert s["2.weight"].kernels["grad_input"].steps[:2] != given.steps


def test_gradients_make_no_dense_temporary():
    """The largest allocation of a backward pass is far from the size of the dense weight."""
    dense = torch.randn(1024, 1024) * (torch.rand(1024, 1024) < 0.01)
    packed = lacis.pack(dense, lacis.Csr)
    tensor, x = packed.values.clone().requires_grad_(), torch.randn(8, 1024, requires_grad=True)
    for _ in range(2):  # the first call compiles and makes the companion index
        y = lacis.einsum("ij,bj->bi", packed.with_values(tensor), x)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
            y.sum().backward()
    largest = max(event.cpu_memory_usage for event in profile.events())
    assert 0 < largest < dense.numel() * 4 // 8
