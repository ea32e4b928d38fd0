# SPDX-License-Identifier: Apache-2.0
"""Everyday operations of PyTorch on a built model, one test each: it behaves as the dense model with masked weights."""

import copy
import io
import pickle

import lacis
import pytest
import torch
from torch.func import functional_call, grad, vmap
from torch.nn.utils import clip_grad_norm_, parametrizations, prune, vector_to_parameters, parameters_to_vector
from training import SHAPE, build, masked

X = torch.randn(6, SHAPE[0], generator=torch.Generator().manual_seed(1))


@pytest.fixture
def model():
    return build("csr", target="eager")[0]


@pytest.fixture
def compiled_model():
    return build("csr", target="cpu")[0]


def loss(model, x=X):
    return (model(x) - 1).square().mean()


def step(model, optimizer):
    optimizer.zero_grad()
    loss(model).backward()
    optimizer.step()


def agree(model, twin, x=X, **tolerance):
    torch.testing.assert_close(model(x), twin(x), **tolerance)


def test_deepcopy_trains_alone(model):
    before, other = model(X), copy.deepcopy(model)
    step(other, torch.optim.SGD(other.parameters(), lr=1.0))
    assert torch.equal(model(X), before) and not torch.equal(other(X), before)


def test_pickle(model):
    agree(pickle.loads(pickle.dumps(model)), model)


def test_torch_save_of_the_whole_model(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    agree(torch.load(file, weights_only=False), model)


def test_state_dict_loads_as_weights_only(model):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = build("csr", target="eager")[0]
    step(other, torch.optim.SGD(other.parameters(), lr=1.0))
    other.load_state_dict(torch.load(file, weights_only=True))
    agree(other, model)


def test_state_dict_of_another_pattern_resizes_the_same_parameter(model):
    other = build("csr", target="eager")[0]
    parameter = other[0].weight.values
    other[0].weight.set_packed(lacis.pack(torch.eye(SHAPE[1], SHAPE[0]), lacis.Csr))
    other.load_state_dict(model.state_dict())
    assert other[0].weight.values is parameter
    agree(other, model)


def test_safetensors(model, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file(model.state_dict(), tmp_path / "model.safetensors")
    other = build("csr", target="eager")[0]
    other.load_state_dict(safetensors.load_file(tmp_path / "model.safetensors"))
    agree(other, model)


def test_load_by_assignment_into_meta(model):
    other = copy.deepcopy(model).to("meta")
    other.load_state_dict(model.state_dict(), assign=True)
    agree(other, model)


def test_to_empty_runs_once_it_is_loaded(model):
    other = copy.deepcopy(model).to_empty(device="cpu")
    with pytest.raises(lacis.DataError):
        other(X)
    other.load_state_dict(model.state_dict())
    agree(other, model)


def test_dense_checkpoint_packs_into_the_pattern(model):
    twin = masked(model)
    with torch.no_grad():
        twin[0].weight.mul_(2)
    model.load_state_dict(twin.state_dict())
    agree(model, twin)


def test_double(model):
    assert model.double()(X.double()).dtype == torch.float64


def test_half(model):
    twin = masked(model)
    torch.testing.assert_close(model.bfloat16()(X.bfloat16()).float(), twin(X), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("options", [{"foreach": True}, {"fused": True}, {"foreach": False}], ids=str)
def test_adamw(model, options):
    twin = masked(model)
    for each in (model, twin):
        optimizer = torch.optim.AdamW(each.parameters(), lr=0.01, weight_decay=0.0, **options)
        for _ in range(4):
            step(each, optimizer)
    agree(model, twin)


def test_sgd_with_momentum_and_decay(model):
    twin = masked(model)
    for each in (model, twin):
        optimizer = torch.optim.SGD(each.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
        for _ in range(4):
            step(each, optimizer)
    agree(model, twin)


def test_optimizer_state_is_saved_and_loaded(model):
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, optimizer)
    other = copy.deepcopy(model)
    resumed = torch.optim.AdamW(other.parameters())
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    step(model, optimizer), step(other, resumed)
    assert torch.equal(model(X), other(X))


def test_clip_grad_norm(model):
    twin = masked(model)
    norms = []
    for each in (model, twin):
        loss(each).backward()
        norms.append(clip_grad_norm_(each.parameters(), 0.1))
    torch.testing.assert_close(*norms)


def test_gradient_accumulation(model):
    loss(model).backward()
    once = model[0].weight.values.grad.clone()
    loss(model).backward()
    torch.testing.assert_close(model[0].weight.values.grad, 2 * once)


def test_frozen_weights_have_no_gradient(model):
    model[0].requires_grad_(False)
    loss(model).backward()
    assert model[0].weight.values.grad is None and model[2].weight.values.grad is not None


def test_autocast(model):
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(model(X), masked(model)(X), rtol=0.05, atol=0.05)


def test_checkpointing(model):
    twin = copy.deepcopy(model)
    loss(model).backward()
    (torch.utils.checkpoint.checkpoint(twin, X, use_reentrant=False) - 1).square().mean().backward()
    torch.testing.assert_close(twin[0].weight.values.grad, model[0].weight.values.grad)


def test_compile(compiled_model):
    torch._dynamo.reset()
    agree(torch.compile(compiled_model, fullgraph=True, backend="aot_eager"), compiled_model)


def test_export(compiled_model):
    agree(torch.export.export(compiled_model.eval(), (X,)).module(), compiled_model)


def test_make_fx(compiled_model):
    with torch.no_grad():
        agree(torch.fx.experimental.proxy_tensor.make_fx(compiled_model)(X), compiled_model)


def test_functional_call(model):
    given = {name: 2 * parameter.detach() for name, parameter in model.named_parameters()}
    twin = masked(model)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(2)
    torch.testing.assert_close(functional_call(model, given, (X,)), twin(X))


def test_vmap(model):
    torch.testing.assert_close(vmap(model)(X.reshape(2, 3, -1)), model(X).reshape(2, 3, -1))


def test_gradients_per_sample(model):
    given = {name: parameter.detach() for name, parameter in model.named_parameters()}
    one = lambda given, x: (functional_call(model, given, (x[None],)) - 1).square().mean()
    found = vmap(grad(one), (None, 0))(given, X)["0.weight.values"]
    loss(model).backward()
    torch.testing.assert_close(found.mean(0), model[0].weight.values.grad)


def test_hooks(model):
    seen = []
    model[0].register_forward_hook(lambda module, args, output: seen.append(output.shape))
    model[0].register_full_backward_hook(lambda module, given, arrived: seen.append(arrived[0].shape))
    loss(model).backward()
    assert seen == [(len(X), SHAPE[1])] * 2


def test_tied_weights_stay_one():
    layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    layers[1].weight = layers[0].weight
    s = lacis.create_schedule(layers, target="eager")
    s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    layers = copy.deepcopy(s.build())
    assert layers[0].weight is layers[1].weight and len(list(layers.parameters())) == 3


def test_pruning_masks_become_patterns():
    layers = torch.nn.Sequential(torch.nn.Linear(8, 8))
    prune.l1_unstructured(layers[0], "weight", amount=0.5)
    expected = layers(X[:, :8])
    masks = lacis.take_masks(layers)
    s = lacis.create_schedule(layers, target="eager")
    s["0.weight"].sparsify(masks["0.weight"]).set_format(lacis.Csr)
    torch.testing.assert_close(s.build()(X[:, :8]), expected)


def test_parametrizations_are_refused_by_name():
    layers = torch.nn.Sequential(parametrizations.spectral_norm(torch.nn.Linear(8, 8)))
    with pytest.raises(lacis.ScheduleError, match="'0.weight' is parametrised; call .*remove_parametrizations"):
        lacis.create_schedule(layers)["0.weight"]


def test_profiler(compiled_model):
    with torch.profiler.profile() as profile:
        compiled_model(X)
    assert any(event.name.startswith("lacis::einsum") for event in profile.events())


def test_average_of_weights(model):
    average = torch.optim.swa_utils.AveragedModel(model)
    before = model(X)
    average.update_parameters(model)
    torch.testing.assert_close(average(X), before)


def test_parameters_as_a_vector(model):
    vector = parameters_to_vector(model.parameters())
    vector_to_parameters(torch.zeros_like(vector), model.parameters())
    assert not model(X).any()


def test_inference_modes(model):
    expected = model(X)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            torch.testing.assert_close(model(X), expected)


def test_restore_gives_the_dense_model_back():
    model, s = build("csr", target="eager")
    expected = model(X)
    torch.testing.assert_close(s.restore()(X), expected)
    assert isinstance(model[0].weight, torch.nn.Parameter)


def test_peft_wraps_what_stays_dense():
    peft = pytest.importorskip("peft")
    layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    s = lacis.create_schedule(layers, target="eager")
    s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    wrapped = peft.get_peft_model(s.build(), peft.LoraConfig(target_modules=["1"]))
    assert wrapped(X[:, :8]).shape == (len(X), 8)


def test_accelerate(model):
    accelerator = pytest.importorskip("accelerate").Accelerator(cpu=True)
    prepared, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    before = loss(prepared)
    accelerator.backward(before)
    optimizer.step()
    assert loss(prepared) < before
