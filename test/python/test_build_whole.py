# SPDX-License-Identifier: Apache-2.0
"""A build that fails or is interrupted leaves the model as it was, wherever that happens; so does a restore, and what
makes a model dense again."""

import collections
import copy
import gc
import pickle
import sys
import warnings

import lacis
import pytest
import torch

from lacis.runtime import edges, engine, swap


def scheduled():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(12, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8), torch.nn.Linear(8, 4)]
    model = torch.nn.Sequential(collections.OrderedDict(zip(("a", "b", "c", "d"), layers)))
    model.a.register_buffer("kept", torch.ones(2))
    model.d.weight = torch.nn.Parameter(torch.randn(4, 8))
    model.b.register_forward_hook(lambda *_: None)
    model(torch.randn(3, 12)).sum().backward()
    s = lacis.create_schedule(model, target="eager")
    for name in ("a.weight", "c.weight", "d.weight"):
        s[name].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    s["b:in0"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    return model, s


def state(model):
    """What a user can see of a model: objects, hooks, numbers, in order."""
    modules = [(path, id(module), module.training) for path, module in model.named_modules()]
    hooks = [(path, list(m._forward_hooks.items()), list(m._forward_pre_hooks)) for path, m in model.named_modules()]
    tensors = [(name, id(t), t.data_ptr(), tuple(t.shape), t.requires_grad) for name, t in model.named_parameters()]
    grads = [(id(t.grad), None if t.grad is None else t.grad.sum().item()) for t in model.parameters()]
    numbers = [(name, tensor.clone().numpy().tobytes()) for name, tensor in model.state_dict().items()]
    return modules, hooks, tensors, grads, numbers, [id(buffer) for buffer in model.buffers()]


FILES = tuple(module.__file__ for module in (swap, engine, edges))
BACK = ("_refill", "_refill_entries")  # the way back


def interrupted(call, at: int, error) -> bool:
    """Call it with an error at so many lines of the files that change the model; False where it has fewer."""
    left = [at]

    def trace(frame, event, _):
        if frame.f_code.co_filename not in FILES or frame.f_code.co_name in BACK:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] < 0:
                sys.settrace(before)
                raise error
        return trace

    def traced(change):
        sys.settrace(trace)
        try:
            return swap.as_a_whole(change)
        finally:
            sys.settrace(before)

    before = sys.gettrace()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "as_a_whole", traced)  # before it, nothing is changed
            call()
    except type(error):
        return True
    return False


@pytest.mark.parametrize("error, each", [(KeyboardInterrupt(), 1), (MemoryError("no memory"), 9)])
def test_a_build_that_is_interrupted_changes_nothing(error, each):
    model, s = scheduled()
    x = torch.randn(3, 12)
    y, before = model(x), state(model)
    for at in range(0, 10000, each):
        if not interrupted(s.build, at, error):
            break
        assert state(model) == before, f"after {at} lines"
        assert torch.equal(model(x), y)
    assert at > 60
    assert type(model.a).__name__ == "SparseModule"
    s.restore()
    assert [name for name, *_ in state(model)[2]] == [name for name, *_ in before[2]]


def test_a_restore_that_is_interrupted_changes_nothing():
    model, s = scheduled()
    s.build()
    x = torch.randn(3, 12)
    model(x).sum().backward()
    y, before = model(x), state(model)
    for at in range(10000):
        if not interrupted(s.restore, at, KeyboardInterrupt()):
            break
        assert state(model) == before, f"after {at} lines"
        assert torch.equal(model(x), y)
    assert at > 60
    assert type(model.a) is torch.nn.Linear


def test_a_module_that_is_gone_is_named_and_nothing_changes():
    model, s = scheduled()
    del model.b
    before = state(model)
    with pytest.raises(lacis.ScheduleError, match="'b' is no module of the model any more"):
        s.build()
    assert state(model) == before


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.AdamW])
def test_an_optimizer_made_before_the_build_is_named(make):
    model, s = scheduled()
    optimizer = make(model.parameters(), lr=0.1)
    text = r" was made before build\(\) and holds the dense parameters of 'a.weight', 'c.weight', 'd.weight', which"
    with pytest.warns(UserWarning, match=make.__name__ + text) as caught:
        s.build()
    assert caught[0].filename == __file__
    s.restore()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = state(model)
        with pytest.raises(UserWarning, match="made before build"):
            s.build()
        assert state(model) == before
        del optimizer
        s.build()
        gc.collect()
        torch.optim.SGD(model.parameters(), lr=0.1)


def test_nobody_looks_for_optimizers_where_the_model_alone_holds_its_parameters(monkeypatch):
    monkeypatch.setattr("lacis.runtime.optimizers._optimizers", lambda: pytest.fail("looked through all objects"))
    model, s = scheduled()
    s.build()


def test_who_else_holds_a_parameter_is_no_matter():
    model, s = scheduled()
    held, other = list(model.parameters()), torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s.build()
    assert held and other


class Counted(torch.nn.Linear):
    """A class and attributes of the user, one of which a sparse module has, too."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.target, self.register = "mine", [1]


def counted():
    torch.manual_seed(0)
    model = torch.nn.Sequential(Counted(12, 12), torch.nn.ReLU(), torch.nn.Linear(12, 12, bias=False))
    model[2].weight = model[0].weight
    model[2].requires_grad_(False)
    s = lacis.create_schedule(model, target="eager")
    s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    s["1:in0"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    return model, s


def test_a_copy_is_made_dense():
    model, s = counted()
    s.build()
    x = torch.randn(3, 12)
    for clone in (copy.deepcopy(model).eval(), pickle.loads(pickle.dumps(model))):
        clone[0].weight.values.data *= 2
        expected = clone[0](x)
        training = clone.training
        assert lacis.densify(clone) is clone
        assert [type(each) for each in clone] == [Counted, torch.nn.ReLU, torch.nn.Linear]
        assert clone[0].target == "mine" and clone[0].register == [1] and clone[0].training == training
        assert clone[0].weight is clone[2].weight and not clone[0].weight.requires_grad and clone[0].weight.is_leaf
        assert list(clone.state_dict()) == ["0.weight", "0.bias", "2.weight"] and not clone[1]._forward_pre_hooks
        torch.testing.assert_close(clone[0](x), expected)
        torch.testing.assert_close(clone(x), clone[2](expected.relu()))
        lacis.create_schedule(clone)["0.weight"].set_format(lacis.Csr)
    assert type(lacis.densify(copy.deepcopy(model)[0])) is Counted
    assert lacis.densify(model[1]) is model[1]


def test_a_model_that_cannot_be_made_dense_stays_as_it_is():
    model, s = scheduled()
    s.build()
    model.d.to_empty(device="cpu")
    before = [(path, id(module)) for path, module in model.named_modules()]
    with pytest.raises(lacis.DataError, match=r"'values' holds no numbers since to_empty\(\)"):
        lacis.densify(model)
    assert [(path, id(module)) for path, module in model.named_modules()] == before


PACKED = r"'0.weight\S*' is packed already; call restore\(\) on the schedule that did it, or lacis.densify\(model\)"
PRUNED = r"'0.weight\S*' is pruned by torch; call torch.nn.utils.prune.remove\(module, 'weight'\) first"
PARAMETRISED = r"is parametrised; call torch.nn.utils.parametrize.remove_parametrizations\(module, 'weight'\) first"


@pytest.mark.parametrize(
    "change, own, text",
    [
        (None, "0.weight.values", PACKED),
        (lambda layer: torch.nn.utils.prune.random_unstructured(layer, "weight", 0.5), "0.weight_orig", PRUNED),
        (torch.nn.utils.parametrizations.weight_norm, "0.parametrizations.weight.original1", PARAMETRISED),
    ],
)
def test_a_layer_whose_weight_is_something_else_says_what_to_do(change, own, text):
    """By the name of the weight, by a pattern, by its present names, and where it changed after the schedule."""
    model, s = counted()
    late = lacis.create_schedule(model, target="eager")
    late["0.weight"].set_format(lacis.Csr)
    s.build() if change is None else change(model[0])
    other = lacis.create_schedule(model, target="eager")
    for call in (lambda: other["0.weight"], lambda: other.match(r"0\.weight"), late.build):
        with pytest.raises(lacis.ScheduleError, match=text):
            call()
    other[own].set_format(lacis.Csr if change else lacis.Coo)
    with pytest.raises(lacis.ScheduleError, match=text):
        other.build()


@pytest.mark.parametrize("grad", [False, True])
def test_an_input_that_does_not_fit_names_the_layer(grad):
    """The kernel is that of every small CSR layer."""
    model = torch.nn.Sequential(torch.nn.Linear(40, 24), torch.nn.Linear(24, 24))
    s = lacis.create_schedule(model, target="cpu")
    s["1.weight"].sparsify(lacis.Magnitude(0.8)).set_format(lacis.Csr)
    s.build()
    with torch.set_grad_enabled(grad):
        model(torch.randn(2, 40))
        with pytest.raises(RuntimeError, match=r"linear '1': the input has shape \[2, 40\], its last axis must be 24"):
            model[1](torch.randn(2, 40))
        with pytest.raises(
            lacis.DataError, match="linear '1': the weight is torch.float32 on cpu, an operand torch.float64"
        ):
            model[1](torch.randn(2, 24, dtype=torch.float64))
